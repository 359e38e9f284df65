package params_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/backends/internal/params"
)

type settings struct {
	Queue    string
	Type     string
	Prefetch int
	Confirm  bool
	Claim    time.Duration
}

// read reads one parameter of each kind, as a backend does.
func read(query string) (settings, error) {
	p := params.New(&url.URL{Scheme: "x", RawQuery: query})
	p.Preset(map[string]map[string]string{
		"latency":    {"prefetch": "1"},
		"throughput": {"prefetch": "500", "confirm": "false"},
	})
	s := settings{
		Queue:    p.Name("queue", "orders"),
		Type:     p.OneOf("type", "classic", "quorum"),
		Prefetch: p.Int("prefetch", 64, 1, 1000),
		Confirm:  p.Bool("confirm", true),
		Claim:    p.Duration("claim", 30*time.Second, time.Millisecond, time.Hour),
	}
	return s, p.Err()
}

func TestGoodQueries(t *testing.T) {
	def := settings{Queue: "orders", Type: "classic", Prefetch: 64, Confirm: true, Claim: 30 * time.Second}
	for name, c := range map[string]struct {
		query string
		want  func(*settings)
	}{
		"WithoutParametersTheDefaultsHold": {"", func(*settings) {}},
		"EveryKindIsRead": {"queue=a.b_c-9&type=quorum&prefetch=1000&confirm=false&claim=1m30s", func(s *settings) {
			*s = settings{"a.b_c-9", "quorum", 1000, false, 90 * time.Second}
		}},
		"APresetSetsWhatTheURLDoesNot":  {"preset=throughput", func(s *settings) { s.Prefetch, s.Confirm = 500, false }},
		"AnExplicitParameterWins":       {"preset=throughput&prefetch=2", func(s *settings) { s.Prefetch, s.Confirm = 2, false }},
		"ANameMayBeItsDefault":          {"queue=orders", func(*settings) {}},
		"TheFirstChoiceMayBeNamed":      {"type=classic", func(*settings) {}},
		"TheLowestNumberIsAllowed":      {"prefetch=1", func(s *settings) { s.Prefetch = 1 }},
		"TheShortestDurationIsAllowed":  {"claim=1ms", func(s *settings) { s.Claim = time.Millisecond }},
		"AnEscapedValueIsUnescapedOnce": {"queue=%6frders2", func(s *settings) { s.Queue = "orders2" }},
	} {
		t.Run(name, func(t *testing.T) {
			want := def
			c.want(&want)
			got, err := read(c.query)
			if err != nil {
				t.Fatalf("%q: %v", c.query, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.query, diff)
			}
		})
	}
}

func TestBadQueries(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		says  []string
	}{
		"AnUnknownParameterNamesTheKnownOnes":  {"prefech=3", []string{`"prefech"`, "claim, confirm, prefetch, preset, queue, type"}},
		"AllUnknownParametersAreNamed":         {"b=1&a=2", []string{`"a", "b"`}},
		"AnUnknownPresetNamesTheKnownOnes":     {"preset=fast", []string{`"fast"`, "latency, throughput"}},
		"AnEmptyPresetIsNone":                  {"preset=", []string{"latency, throughput"}},
		"AnUnknownChoiceNamesTheKnownOnes":     {"type=stream", []string{`"stream"`, "classic, quorum"}},
		"ANumberMustBeOne":                     {"prefetch=many", []string{`"many"`, "from 1 to 1000"}},
		"ANumberTooSmallNamesItsBounds":        {"prefetch=0", []string{"from 1 to 1000"}},
		"ANumberTooLargeNamesItsBounds":        {"prefetch=1001", []string{"from 1 to 1000"}},
		"ANumberThatOverflowsNamesItsBounds":   {"prefetch=99999999999999999999", []string{"from 1 to 1000"}},
		"ABoolIsTrueOrFalse":                   {"confirm=yes", []string{"true or false"}},
		"ADurationNeedsAUnit":                  {"claim=30", []string{"from 1ms to 1h0m0s", "500ms"}},
		"ANegativeDurationNamesItsBounds":      {"claim=-1s", []string{"from 1ms to 1h0m0s"}},
		"AnEmptyNameIsRefused":                 {"queue=", []string{"a value"}},
		"ANameWithASlashIsRefused":             {"queue=a/b", []string{`"a/b"`, "letters"}},
		"ANameOfOtherLettersIsRefused":         {"queue=%E7%A7%92%E6%9D%80", []string{"letters"}},
		"ANameTooLongIsRefused":                {"queue=" + strings.Repeat("q", 201), []string{"1 to 200"}},
		"AParameterGivenTwiceIsRefused":        {"prefetch=1&prefetch=2", []string{`"prefetch" is given 2 times`}},
		"AMalformedQueryIsRefused":             {"queue=%zz", []string{"malformed query"}},
		"EveryMistakeIsReportedAtOnce":         {"prefetch=0&type=x&nosuch=1", []string{"prefetch", "type", "nosuch"}},
		"AWrongValueStandsBesideAGoodPreset":   {"preset=latency&prefetch=-1", []string{"prefetch"}},
		"TheNamesOfParametersAreCaseSensitive": {"Prefetch=1", []string{`"Prefetch"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.query)
			if err == nil {
				t.Fatalf("%q: got nil, want an error", c.query)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q: got error %q, want it to say %q", c.query, err, part)
				}
			}
		})
	}
}

// Whatever the query, what is read without an error is within its bounds, and
// what is refused says why.
func FuzzQuery(f *testing.F) {
	f.Add("queue=orders&type=quorum&prefetch=7&confirm=false&claim=2s&preset=latency")
	f.Add("preset=throughput&prefetch=2")
	f.Add("a=%zz;b&&==&prefetch=1&prefetch=2")
	f.Fuzz(func(t *testing.T, query string) {
		s, err := read(query)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Errorf("%q: the error is empty", query)
			}
			return
		}
		if params.CheckName(s.Queue) != nil || s.Type != "classic" && s.Type != "quorum" ||
			s.Prefetch < 1 || s.Prefetch > 1000 || s.Claim < time.Millisecond || s.Claim > time.Hour {
			t.Errorf("%q: got %+v, which is out of bounds", query, s)
		}
		again, err := read(query)
		if err != nil || again != s {
			t.Errorf("%q read twice: got %+v and %v, want %+v", query, again, err, s)
		}
	})
}
