package envelope

import (
	"errors"
	"fmt"
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
		if len(v) != Size(m) {
			t.Errorf("size: got %d bytes, want %d", Size(m), len(v))
		}
		got, err := decode(string(v))
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
		if m, err := decode(v); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %+v, %v, want ErrForeign", name, m, err)
		}
	}
}

func TestBodiesThatShareMemoryDoNotTouch(t *testing.T) {
	bodies := make([]byte, 0, 64)
	var ms []queue.Message
	for _, text := range []string{"one", "", "three"} {
		m, err := Decode(string(Append(nil, queue.Message{ID: "1", Body: []byte(text)})), &bodies)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	for i := range ms {
		_ = append(ms[i].Body, "more"...)
	}
	if got := fmt.Sprintf("%s,%s,%s", ms[0].Body, ms[1].Body, ms[2].Body); got != "one,,three" {
		t.Errorf("after something was appended to each: got %s, want one,,three", got)
	}
}

func decode(v string) (queue.Message, error) { return Decode(v, new([]byte)) }

func FuzzDecode(f *testing.F) {
	f.Add("", "hello")
	f.Add("\x01", string(Append(nil, queue.Message{ID: "1", Key: "k", Body: []byte("b"), Headers: map[string]string{"a": "b"}})))
	f.Fuzz(func(t *testing.T, id, v string) {
		// What decodes must mean the same after another trip.
		if m, err := decode(v); err == nil {
			again, err := decode(string(Append(nil, m)))
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
		got, err := decode(string(Append(nil, m)))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if d := cmp.Diff(m, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("message (-want +got):\n%s", d)
		}
	})
}
