package choose

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatCannotBeMeantIsOneSentence(t *testing.T) {
	for name, c := range map[string]struct {
		needs Needs
		want  string
	}{
		"nothing":          {Needs{}, "nothing is needed"},
		"one group":        {Needs{Groups: 1}, "nothing is needed"},
		"an unknown need":  {Needs{Must: []string{"orderd-per-key"}}, `did you mean "ordered-per-key"?`},
		"an empty need":    {Needs{Must: []string{""}}, `unknown need ""`},
		"an unknown loss":  {Needs{Loses: "some"}, "nothing-on-crash"},
		"an unknown broke": {Needs{Only: []string{"Kafak"}}, `did you mean "kafka"?`},
		"no number":        {Needs{Rate: math.NaN()}, "a rate of NaN"},
		"beyond reason":    {Needs{Rate: math.Inf(1)}, "a rate of +Inf"},
		"a minus":          {Needs{Backlog: -1}, "a backlog of -1"},
		"too slow a p99":   {Needs{P99: 2 * time.Hour}, "a p99 of 2h0m0s"},
		"too many groups":  {Needs{Groups: 1001}, "1001 groups"},
	} {
		if err := c.needs.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for name, n := range map[string]Needs{"that anything may be lost": {Loses: MayLose}, "two groups": {Groups: 2}, "a need twice": {Must: []string{"durable", "durable"}}} {
		if err := n.Check(); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
}

func TestOppositesContradictWhateverQueuesThereAre(t *testing.T) {
	for name, c := range map[string]struct {
		needs Needs
		want  []string
	}{
		"one consumer and all":       {Needs{Must: []string{"broadcast", "competing"}}, []string{"competing", "broadcast"}},
		"groups by name and all":     {Needs{Must: []string{"broadcast", "groups"}}, []string{"groups", "broadcast"}},
		"groups by number and all":   {Needs{Must: []string{"broadcast"}, Groups: 3}, []string{"groups", "broadcast"}},
		"once or again":              {Needs{Must: []string{"at-least-once", "at-most-once"}}, []string{"at-most-once", "at-least-once"}},
		"once, and lost in no crash": {Needs{Must: []string{"at-most-once"}, Loses: NothingOnCrash}, []string{"at-most-once", NothingOnCrash}},
		"once, and lost in no cut":   {Needs{Must: []string{"at-most-once"}, Loses: NothingOnPowerLoss}, []string{"at-most-once", NothingOnPowerLoss}},
	} {
		var contradiction *Contradiction
		if err := c.needs.Check(); !errors.As(err, &contradiction) || !cmp.Equal(contradiction.Needs, c.want) {
			t.Errorf("%s: got %v, want a contradiction of %v", name, err, c.want)
		}
	}
	for name, n := range map[string]Needs{"one consumer of each group": {Must: []string{"competing"}, Groups: 3}, "once, and whatever lost": {Must: []string{"at-most-once"}, Loses: MayLose}} {
		if err := n.Check(); err != nil {
			t.Errorf("%s: got %v, want no contradiction", name, err)
		}
	}
}

// No two needs that are asked for in one line may be told to contradict each other
// where one setting has both.
func TestAContradictionIsOneInEverySetting(t *testing.T) {
	e := stored(t)
	for _, a := range featureNames() {
		for _, b := range featureNames() {
			n := Needs{Must: []string{a, b}}
			var contradiction *Contradiction
			if a == b || !errors.As(n.Check(), &contradiction) {
				continue
			}
			if fit := names(e.ranked(n, false).Fitting()); len(fit) > 0 {
				t.Errorf("%s and %s are said to contradict each other, and %v have both", a, b, fit)
			}
		}
	}
}

func TestFiveAnswersAreNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		answers string
		want    Needs
	}{
		"all of them":            {"3\n1\n1, 2\n5000\nredis kafka\n", Needs{Must: []string{"competing", "ordered-per-key", "replay"}, Loses: NothingOnPowerLoss, Rate: 5000, Only: []string{"redis", "kafka"}}},
		"as few as can be":       {"1\n3\n\n\n\n", Needs{Must: []string{"broadcast"}, Loses: MayLose}},
		"no line at the end":     {"2\n2\n3,4\n\nkafka", Needs{Must: []string{"groups", "delay", "routing"}, Loses: NothingOnCrash, Only: []string{"kafka"}}},
		"wrong ones before each": {"\n4\nx\n1 2\n2\n0\n1\n5\n1\nmany\nNaN\n-3\n7\nredsi\nredis\n", Needs{Must: []string{"competing", "ordered-per-key"}, Loses: NothingOnCrash, Rate: 7, Only: []string{"redis"}}},
	} {
		var out strings.Builder
		got, err := Ask(strings.NewReader(c.answers), &out)
		if err != nil {
			t.Errorf("%s: got %v\n%s", name, err, out.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if n := strings.Count(out.String(), " of 5. "); n != 5 {
			t.Errorf("%s: got %d questions, want five", name, n)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%s: got needs that cannot be meant: %v", name, err)
		}
	}
}

func TestAnswersThatEndAreNoNeeds(t *testing.T) {
	if _, err := Ask(strings.NewReader("1\n1\n1\n"), io.Discard); err == nil || !strings.Contains(err.Error(), "question 4 of 5") {
		t.Errorf("got %v, want that they end before question 4", err)
	}
}
