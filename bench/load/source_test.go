package load

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"queuelab/bench/ledger"
)

func TestBodiesHaveTheirSizeAndAreTheSameAgain(t *testing.T) {
	for _, c := range Contents() {
		for _, size := range []int{0, 1, 2, 3, 7, 8, 100, 119, 120, 121, 180, 1024, 100_000} {
			s := Source{Size: size, Content: c, Seed: 9}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			one, two := s.Messages(), s.Messages()
			for _, n := range []uint64{0, 1, 5, math.MaxUint64} {
				a, b := one(n).Body, two(n).Body
				if len(a) != size || !bytes.Equal(a, b) {
					t.Fatalf("%s of %d bytes: message %d has %d, the same again: %t", c, size, n, len(a), bytes.Equal(a, b))
				}
			}
			if c == JSON && size > 0 && !json.Valid(one(0).Body) {
				t.Errorf("of %d bytes: got %q, want JSON", size, one(0).Body)
			}
			s.Seed++
			if other := s.Messages()(0).Body; c != Zeros && size >= 100 && bytes.Equal(one(0).Body, other) {
				t.Errorf("%s of %d bytes: another seed gives the same", c, size)
			}
		}
	}
}

func TestTheGreatestBodyIsAllowed(t *testing.T) {
	for _, c := range Contents() {
		s := Source{Size: MaxSize, Content: c}
		if got := len(s.Messages()(1).Body); s.Check() != nil || got != MaxSize {
			t.Errorf("%s: got %d bytes, %v, want %d", c, got, s.Check(), MaxSize)
		}
	}
}

func TestEachContentCompressesAsItsNameSays(t *testing.T) {
	for content, want := range map[Content][2]float64{ // of a batch of 400 messages
		Zeros: {0, 0.02}, Text: {0.1, 0.5}, JSON: {0.1, 0.6}, Random: {0.999, 1.1},
	} {
		message := Source{Size: 1000, Content: content}.Messages()
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		for n := range uint64(400) {
			w.Write(message(n).Body)
		}
		w.Close()
		if got := float64(out.Len()) / 400_000; got < want[0] || got > want[1] {
			t.Errorf("%s: got %v of the size, want %v", content, got, want)
		}
	}
}

func TestAJSONBodyIsAnOrder(t *testing.T) {
	var order struct {
		Order string
		User  uint64
		Items []struct {
			SKU             string
			Quantity, Cents int
		}
		Note string
	}
	if err := json.Unmarshal(Source{Size: 1000, Content: JSON}.Messages()(3).Body, &order); err != nil {
		t.Fatal(err)
	}
	if len(order.Order) != 12 || order.User == 0 || len(order.Items) < 10 || order.Items[0].Cents == 0 || len(order.Note) > 60 {
		t.Errorf("got %+v", order)
	}
}

func TestRandomBodiesDoNotRepeatWithinABatch(t *testing.T) {
	for _, size := range []int{32, 100, 1000, 100_000} {
		message := Source{Size: size, Content: Random}.Messages()
		seen := map[string]bool{}
		for n := range uint64(ringBytes / size) {
			if b := string(message(n).Body); seen[b] && n < ringMost {
				t.Fatalf("of %d bytes: message %d repeats another", size, n)
			} else {
				seen[b] = true
			}
		}
	}
}

func TestABadSourceIsNamedWithWhatIsAllowed(t *testing.T) {
	for _, c := range []struct {
		source Source
		want   []string
	}{
		{Source{Size: -1}, []string{"-1 bytes", "10485760"}},
		{Source{Size: MaxSize + 1}, []string{"10485761 bytes", "10 MB"}},
		{Source{Content: "xml"}, []string{`"xml"`, "zeros", "text", "random", "json"}},
		{Source{KeyPlan: KeyPlan{Keys: 5, HotShare: 2}}, []string{"5 keys", "2"}},
		{Source{KeyPlan: KeyPlan{Keys: maxKeys + 1}}, []string{"1000001 keys"}},
		{Source{KeyPlan: KeyPlan{Keys: 2, HotShare: math.NaN()}}, []string{"NaN"}},
	} {
		err := c.source.Check()
		if err == nil {
			t.Errorf("%+v: got nil, want an error", c.source)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("got %q, want it to say %q", err, w)
			}
		}
		if m := c.source.Messages()(1); m.Body != nil {
			t.Errorf("%+v: got a body of %d bytes, want none", c.source, len(m.Body))
		}
	}
}

func TestKeyPlansReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]KeyPlan{
		"": {}, "none": {}, "uniform:1": {Keys: 1, Seed: 5}, "uniform:1000": {Keys: 1000, Seed: 5},
		"hot:1000,0.8": {Keys: 1000, HotShare: 0.8, Seed: 5}, "hot:2,0.001": {Keys: 2, HotShare: 0.001, Seed: 5},
	} {
		got, err := ParseKeys(text, 5)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseKeys(got.String(), 5); err != nil || again != got {
			t.Errorf("%q: written as %q, that is %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"zipf:5": "uniform:N", "none:1": "none", "uniform": `"" keys`, "uniform:0": "1 to 1000000", "uniform:-1": `"-1"`,
		"uniform:1000001": "1000001", "hot:1,0.5": "2 to 1000000", "hot:5": `share ""`, "hot:5,0": `share "0"`,
		"hot:5,1": `share "1"`, "hot:5,NaN": `share "NaN"`, "hot:5,-0.1": "above 0 and below 1",
	} {
		if k, err := ParseKeys(text, 5); err == nil || !strings.Contains(err.Error(), want) || k != (KeyPlan{}) {
			t.Errorf("%q: got %+v, %v, want an error that says %q", text, k, err, want)
		}
	}
}

func TestKeysTakeTheirShares(t *testing.T) {
	const n = 100_000
	for text, hot := range map[string]float64{"uniform:10": 0.1, "hot:10,0.7": 0.7} {
		plan, err := ParseKeys(text, 11)
		if err != nil {
			t.Fatal(err)
		}
		message := Source{Trial: 1, Producer: 2, KeyPlan: plan}.Messages()
		counts := map[string]float64{}
		for i := range uint64(n) {
			counts[message(i).Key]++
		}
		if len(counts) != 10 {
			t.Errorf("%s: got %d keys, want 10", text, len(counts))
		}
		for key, got := range counts {
			share := hot
			if key != "k0" {
				share = (1 - hot) / 9
			}
			if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(got-n*share) > 5*sigma {
				t.Errorf("%s: %s was taken by %v of %d messages, want %v", text, key, got, n, n*share)
			}
		}
	}
}

func TestProducersAndSeedsDrawTheirOwnKeys(t *testing.T) {
	sequence := func(s Source) string {
		var keys strings.Builder
		message := s.Messages()
		for n := range uint64(50) {
			keys.WriteString(message(n).Key)
		}
		return keys.String()
	}
	plan := KeyPlan{Keys: 100, Seed: 1}
	base := sequence(Source{KeyPlan: plan})
	if sequence(Source{Trial: 9, KeyPlan: plan}) != base {
		t.Error("another trial of the same seed: got other keys, want the same")
	}
	for name, s := range map[string]Source{
		"another producer":    {Producer: 1, KeyPlan: plan},
		"another incarnation": {Incarnation: 1, KeyPlan: plan},
		"another seed":        {KeyPlan: KeyPlan{Keys: 100, Seed: 2}},
	} {
		if sequence(s) == base {
			t.Errorf("%s: got the same keys", name)
		}
	}
}

// The ledger's account asks with the id alone, of a source that knows nothing
// of the producer.
func TestKeyOfIsTheKeyThatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Source{
			Trial: rapid.Uint32().Draw(t, "trial"), Producer: rapid.Uint16().Draw(t, "producer"),
			Incarnation: rapid.Uint16().Draw(t, "incarnation"), Keys: rapid.SampledFrom([]uint64{0, 0, 3}).Draw(t, "turns"),
			KeyPlan: KeyPlan{Keys: rapid.Uint64Range(0, maxKeys).Draw(t, "keys"), Seed: rapid.Uint64().Draw(t, "seed")},
		}
		if s.KeyPlan.Keys > 1 && rapid.Bool().Draw(t, "hot") {
			s.KeyPlan.HotShare = rapid.Float64Range(0, 0.99).Draw(t, "share")
		}
		n := rapid.Uint64().Draw(t, "n")
		got := Source{Keys: s.Keys, KeyPlan: s.KeyPlan}.KeyOf(ledger.ID{Trial: s.Trial, Producer: s.Producer, Incarnation: s.Incarnation, Seq: n})
		if want := s.Messages()(n).Key; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAMessageAllocatesItsIDAndNothingElse(t *testing.T) {
	for _, s := range []Source{
		{Size: 100}, {Size: 100, Content: Random, Keys: 16}, {Size: 1000, Content: JSON, KeyPlan: KeyPlan{Keys: 1000}},
		{Size: 100, Content: Text, KeyPlan: KeyPlan{Keys: 1000, HotShare: 0.5}},
	} {
		message := s.Messages()
		n := uint64(1000)
		if got := testing.AllocsPerRun(1000, func() { n++; _ = message(n) }); got > 1 {
			t.Errorf("%+v: got %v allocations, want 1", s, got)
		}
	}
}
