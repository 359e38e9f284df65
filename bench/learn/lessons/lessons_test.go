package lessons

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"queuelab/bench/learn"
	"queuelab/bench/node/nodetest"
)

// fasthttp never ends what keeps its date, and lets a pool find later that it was
// stopped: the lesson on fiber's strings leaves both.
func TestMain(m *testing.M) {
	nodetest.Main(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// inCI are the ten that every run of the tests does: each broker, each topic, a
// process that is killed and a service. The others are done with QUEUELAB_SOAK.
var inCI = []int{1, 2, 4, 10, 12, 20, 23, 24, 28, 32}

func TestLessonsMeasureWhatTheySay(t *testing.T) {
	chosen := All()
	soak := os.Getenv("QUEUELAB_SOAK") != ""
	if !soak {
		chosen = slices.DeleteFunc(chosen, func(l learn.Lesson) bool { return !slices.Contains(inCI, l.Number) })
	}
	results, err := learn.Run(t.Context(), chosen, learn.Options{Seckill: nodetest.Seckill(), Log: testWriter{t}})
	if err != nil {
		t.Error(err)
	}
	for i, r := range results {
		switch {
		case r.Skipped != "" && os.Getenv("CI") != "true":
			t.Logf("lesson %d is skipped: %s", r.Number, r.Skipped)
		case !r.Passed():
			var b bytes.Buffer
			_ = learn.PrintTranscript(&b, r, learn.EN) // to a buffer
			t.Errorf("lesson %d, %s: %s%s, %v\n%s", r.Number, r.Name, r.Error, r.Skipped, r.Figures, &b)
		default:
			wellTold(t, chosen[i], r)
		}
	}
}

// wellTold looks at what can only be seen once there are figures.
func wellTold(t *testing.T, l learn.Lesson, r learn.Result) {
	t.Helper()
	left := regexp.MustCompile(`\{[a-z0-9-]+\}`)
	for _, text := range []string{r.Why.EN, r.Why.ZH, r.Say.EN, r.Say.ZH} {
		if name := left.FindString(text); name != "" {
			t.Errorf("lesson %d: the text names the figure %s, which was not measured", l.Number, name)
		}
	}
	if _, err := l.Judge(r.Figures); err != nil {
		t.Fatalf("lesson %d: %v", l.Number, err)
	}
	// Every expectation counts: with any of them changed the lesson fails.
	for _, conditions := range []learn.Conditions{l.Choices[l.Right].If, l.Expect} {
		for name, want := range conditions {
			conditions[name] = learn.Want{Min: math.Inf(1), Max: math.Inf(1)}
			if _, err := l.Judge(r.Figures); err == nil {
				t.Errorf("lesson %d passes whatever %s is", l.Number, name)
			}
			conditions[name] = want
		}
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

func TestEachLessonIsWellFormed(t *testing.T) {
	ascii := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for i, l := range All() {
		if l.Number != i+1 {
			t.Errorf("lesson %d comes at place %d: numbers have no gaps and nothing twice", l.Number, i+1)
		}
		if !ascii.MatchString(l.Name) || seen[l.Name] {
			t.Errorf("lesson %d: the name %q is no words and hyphens, or is there twice", l.Number, l.Name)
		}
		seen[l.Name] = true
		if l.Takes <= 0 || l.Takes.Seconds() > 30 || l.Try == nil || len(l.Choices) < 2 || len(l.Choices) > 4 || l.Right < 0 || l.Right >= len(l.Choices) {
			t.Errorf("lesson %d: got %v, %d choices, %d right", l.Number, l.Takes, len(l.Choices), l.Right)
		}
		texts := map[string]learn.Text{"question": l.Question, "why": l.Why, "say": l.Say}
		for _, c := range l.Choices {
			texts["choice "+c.EN] = c.Text
			if len(c.If) == 0 {
				t.Errorf("lesson %d: nothing measured would prove %q", l.Number, c.EN)
			}
		}
		for what, text := range texts {
			if text.EN == "" || !regexp.MustCompile(`\p{Han}`).MatchString(text.ZH) && !strings.HasPrefix(what, "choice") || text.ZH == "" {
				t.Errorf("lesson %d: the %s is not there in both languages: %q, %q", l.Number, what, text.EN, text.ZH)
			}
		}
		for what, most := range map[string]int{"why": 5, "say": 3} {
			if en, zh := sentences(texts[what].EN), sentences(texts[what].ZH); en > most || zh > most {
				t.Errorf("lesson %d: %s has %d and %d sentences, at most %d", l.Number, what, en, zh, most)
			}
		}
	}
}

// sentences counts what ends like one.
func sentences(text string) int {
	return len(regexp.MustCompile(`[.!?](\s|$)|[。！？]`).FindAllString(text, -1))
}
