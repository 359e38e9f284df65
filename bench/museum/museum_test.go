package museum

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"queuelab/bench/learn"
	"queuelab/bench/node/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m) }

// inCI are those that every run of the tests shows: quick, and on Redis alone.
var inCI = []int{1, 2, 5, 6, 7, 9, 13, 15, 18}

func TestExhibitsShowDamageAndRepair(t *testing.T) {
	chosen := All()
	if os.Getenv("QUEUELAB_SOAK") == "" {
		chosen = slices.DeleteFunc(chosen, func(x Exhibit) bool { return !slices.Contains(inCI, x.Number) })
	}
	results, err := Run(t.Context(), chosen, learn.Options{Seckill: nodetest.Seckill()})
	if err != nil {
		t.Error(err)
	}
	for i, r := range results {
		if r.Skipped != "" && os.Getenv("CI") != "true" {
			t.Logf("exhibit %d is skipped: %s", r.Number, r.Skipped)
			continue
		}
		if !r.Passed() {
			t.Errorf("exhibit %d, %s: %s%s, %v", r.Number, r.Name, r.Error, r.Skipped, r.Figures)
			continue
		}
		complete(t, chosen[i], r)
	}
}

// complete looks at what can only be seen once there are figures.
func complete(t *testing.T, x Exhibit, r learn.Result) {
	t.Helper()
	if text := regexp.MustCompile(`\{[a-z0-9-]+\}`).FindString(r.Why.EN + r.Why.ZH + r.Say.EN + r.Say.ZH); text != "" {
		t.Errorf("exhibit %d: a text names the figure %s, which was not measured", x.Number, text)
	}
	for _, prefix := range []string{"damage-", "repair-"} {
		if !slices.ContainsFunc(r.Figures, func(f learn.Figure) bool { return strings.HasPrefix(f.Name, prefix) }) {
			t.Errorf("exhibit %d has no figure %s…", x.Number, prefix)
		}
	}
	// Every expectation counts: with any of them changed the exhibit fails.
	for name, want := range x.Shows {
		x.Shows[name] = learn.Want{Min: math.Inf(1), Max: math.Inf(1)}
		if _, err := x.lesson().Judge(r.Figures); err == nil {
			t.Errorf("exhibit %d passes whatever %s is", x.Number, name)
		}
		x.Shows[name] = want
	}
}

func TestEachExhibitIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for i, x := range All() {
		if x.Number != i+1 {
			t.Errorf("exhibit %d comes at place %d", x.Number, i+1)
		}
		if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(x.Name) || seen[x.Name] || len(x.Found) == 0 || x.Takes <= 0 {
			t.Errorf("exhibit %d: got the name %q, found in %v, %v", x.Number, x.Name, x.Found, x.Takes)
		}
		seen[x.Name] = true
		for what, text := range map[string]learn.Text{"idea": x.Idea, "what happens": x.Happens, "repair": x.Mend} {
			if text.EN == "" || !regexp.MustCompile(`\p{Han}`).MatchString(text.ZH) {
				t.Errorf("exhibit %d: the %s is not there in both languages: %q, %q", x.Number, what, text.EN, text.ZH)
			}
		}
	}
}
