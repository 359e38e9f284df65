package envelope

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"queuelab/queue"
)

func TestAMessageSurvivesTheTrip(t *testing.T) {
	for _, m := range []queue.Message{
		{ID: "1"},
		{ID: "1", Key: "k", Body: []byte("body")},
		{ID: "编号", Key: "键\x00", Body: []byte{0, 1, 0xff}, Headers: map[string]string{"": "", "trace": "a\nb"}},
		{ID: strings.Repeat("i", 300), Key: strings.Repeat("k", 70000), Body: make([]byte, 4096)},
	} {
		v := Append(nil, m)
		if len(v) > Size(m) {
			t.Errorf("size: got %d bytes, want at most %d", len(v), Size(m))
		}
		got, err := Decode(string(v))
		if err != nil {
			t.Errorf("decode: %v", err)
		}
		if d := cmp.Diff(m, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("message (-want +got):\n%s", d)
		}
	}
}

func TestAForeignValueIsRefused(t *testing.T) {
	whole := string(Append(nil, queue.Message{ID: "id", Key: "key", Headers: map[string]string{"h": "v"}}))
	for name, v := range map[string]string{
		"nothing":                    "",
		"a text typed by a person":   "hello",
		"json":                       `{"id":"1"}`,
		"a head cut short":           whole[:len(whole)-1],
		"an empty id":                string(Append(nil, queue.Message{Body: []byte("x")})),
		"a header count of billions": "\x01\x01a\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"a length beyond the end":    "\x01\xff\xff\x03a",
		"a number without an end":    "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"one header name twice":      "\x01\x01a\x00\x02\x01h\x01v\x01h\x01w",
	} {
		if m, err := Decode(v); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %+v, %v, want ErrForeign", name, m, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("", "hello")
	f.Add("\x01", string(Append(nil, queue.Message{ID: "1", Key: "k", Body: []byte("b"), Headers: map[string]string{"a": "b"}})))
	f.Fuzz(func(t *testing.T, id, v string) {
		// What decodes must mean the same after another trip.
		if m, err := Decode(v); err == nil {
			again, err := Decode(string(Append(nil, m)))
			if err != nil {
				t.Fatalf("second trip: %v", err)
			}
			if d := cmp.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("second trip (-want +got):\n%s", d)
			}
		}
		// Whatever is in a message survives.
		if id == "" {
			return
		}
		m := queue.Message{ID: id, Key: v, Body: []byte(v), Headers: map[string]string{v: id, id: v}}
		got, err := Decode(string(Append(nil, m)))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if d := cmp.Diff(m, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("message (-want +got):\n%s", d)
		}
	})
}
