package learn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/wire"
)

// lesson is one about a figure "kept": none, one, or more.
func lesson() Lesson {
	choice := func(name string, w Want) Choice {
		return Choice{Text: Text{EN: name, ZH: name}, If: Conditions{"kept": w}}
	}
	return Lesson{
		Number: 7, Name: "brpop-loses", Question: Text{"What is kept?", "留下什么？"},
		Choices: []Choice{choice("none", Is(0)), choice("one", Is(1)), choice("more", AtLeast(2))}, Right: 1,
		Expect: Conditions{"sent": Between(1, 3)},
	}
}

func figures(kept, sent float64) []Figure {
	return []Figure{{Name: "kept", Value: kept}, {Name: "sent", Value: sent}}
}

func TestALessonIsJudgedByItsFigures(t *testing.T) {
	for _, c := range []struct {
		name     string
		figures  []Figure
		measured int
		wrong    string // "": nothing
	}{
		{"as expected", figures(1, 3), 1, ""},
		{"another answer is right", figures(0, 3), 0, `the measured answer is "none": kept is 0, expected 1`},
		{"none is right", figures(-1, 3), -1, "none of those"},
		{"a figure beside the choices is not as the words say", figures(1, 4), 1, "sent is 4, expected 1 to 3"},
		{"a figure is missing", figures(1, 3)[:1], 1, "sent was not measured"},
	} {
		measured, err := lesson().Judge(c.figures)
		if measured != c.measured || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: got %d, %v, want %d, %q", c.name, measured, err, c.measured, c.wrong)
		}
	}
	l := lesson()
	l.Choices[2].If = Conditions{"kept": AtLeast(1)}
	if _, err := l.Judge(figures(1, 1)); err == nil {
		t.Error("got no error from two answers that are right at once")
	}
}

func TestFiguresStandInTexts(t *testing.T) {
	fs := []Figure{{Name: "lost", Value: 3}, {Name: "took", Value: 12.3456, Unit: "ms"}, {Name: "rate", Value: 12345, Unit: "/s"}, {Name: "tiny", Value: 0.01234, Unit: "ms"}}
	if got, want := Fill("{lost} lost in {took}, {rate}, {tiny}, {none}", fs), "3 lost in 12.3 ms, 12345 /s, 0.01 ms, {none}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLessonsAreFoundByNumberNameAndWord(t *testing.T) {
	other := lesson()
	other.Number, other.Name, other.Question = 9, "confirms", Text{"What is a confirm?", "confirm 是什么？"}
	all := []Lesson{lesson(), other}
	for want, number := range map[string]int{"7": 7, "brpop-loses": 7, "BRPOP": 7, "confirm": 9, "留下": 7} {
		found, err := Find(all, []string{want, want})
		if err != nil || len(found) != 1 || found[0].Number != number {
			t.Errorf("%q: got %v, %v, want lesson %d once", want, found, err, number)
		}
	}
	for want, near := range map[string]string{"8": "the nearest is 7", "99": "the nearest is 9", "-1": "the nearest is 7", "brpob": "7, brpop-loses", "": "there is none", "confrim": "9, confirms"} {
		if _, err := Find(all, []string{want}); err == nil || !strings.Contains(err.Error(), near) {
			t.Errorf("%q: got %v, want an error with %q", want, err, near)
		}
	}
}

func TestPredictionsAreAskedUntilTheyAreOne(t *testing.T) {
	for _, c := range []struct {
		typed     string
		choice    int
		predicted bool
		err       error
	}{
		{"2\n", 1, true, nil},
		{"x\n4\n0\n 3 \n", 2, true, nil},
		{"\n", 0, false, nil},
		{"9\n", 0, false, ErrNobody},
		{"1", 0, true, nil},
	} {
		a := Asker{In: bufio.NewReader(strings.NewReader(c.typed)), Out: io.Discard, Lang: EN}
		choice, predicted, err := a.Predict(t.Context(), lesson())
		if choice != c.choice || predicted != c.predicted || !errors.Is(err, c.err) {
			t.Errorf("%q: got %d, %v, %v, want %d, %v, %v", c.typed, choice, predicted, err, c.choice, c.predicted, c.err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, out := io.Pipe()
	defer out.Close()
	if _, _, err := (Asker{In: bufio.NewReader(in), Out: io.Discard}).Predict(ctx, lesson()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that an interrupt ends the wait for an answer", err)
	}
}

func TestAnExamIsScoredAgainstWhatWasMeasured(t *testing.T) {
	guess := func(n int) *int { return &n }
	result := func(number, measured int, g *int, wrong string) Result {
		return Result{Number: number, Choices: []Text{{EN: "none {kept}"}, {EN: "one"}}, Measured: measured, Guess: g, Error: wrong, Figures: figures(5, 1)}
	}
	s := Mark(3, []Result{
		result(1, 1, guess(1), ""), result(2, 0, guess(1), ""), result(3, 1, nil, ""), result(4, 0, guess(0), "failed"),
		{Number: 5, Skipped: "no broker", Guess: guess(0)},
	})
	if s.Right != 1 || s.Questions != 3 {
		t.Errorf("got %d of %d, want 1 of 3", s.Right, s.Questions)
	}
	if a := s.Answers[1]; a.Right || a.Misjudged == nil || a.Misjudged.EN != "one" || a.Truth.EN != "none 5" {
		t.Errorf("got %+v, want what was misjudged, and what is so", a)
	}
	var b bytes.Buffer
	if err := s.Print(&b, EN); err != nil || !strings.Contains(b.String(), "1 of 3 right (seed 3)") || strings.Contains(b.String(), "\n1. ") {
		t.Errorf("got %v, %s", err, &b)
	}
}

func TestAPredictionIsJudgedByWhatWasMeasured(t *testing.T) {
	for _, c := range []struct {
		guess, measured int
		said            string
	}{{1, 1, "was right"}, {0, 1, "You predicted: none"}, {1, 0, "You predicted: one"}, {0, 0, "was right"}, {1, -1, "You predicted: one"}} {
		var b bytes.Buffer
		r := Result{Choices: []Text{{EN: "none"}, {EN: "one"}}, Right: 1, Measured: c.measured, Guess: &c.guess}
		if err := Print(&b, r, EN, true); err != nil || !strings.Contains(b.String(), c.said) || strings.Contains(b.String(), "on the wire") {
			t.Errorf("predicted %d, measured %d: got %v, %q, want %q, and no heading of a transcript that says nothing", c.guess, c.measured, err, &b, c.said)
		}
	}
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	var all []Lesson
	for n := range 50 {
		all = append(all, Lesson{Number: n})
	}
	numbers := func(seed uint64) (ns []int) {
		for _, l := range Draw(all, 10, seed) {
			ns = append(ns, l.Number)
		}
		return ns
	}
	if diff := cmp.Diff(numbers(1), numbers(1)); diff != "" || cmp.Equal(numbers(1), numbers(2)) || len(numbers(1)) != 10 {
		t.Errorf("got %v, %v, %v", numbers(1), numbers(1), numbers(2))
	}
}

func TestAnswersAreForTheQuestionsInOrder(t *testing.T) {
	a, b := lesson(), lesson()
	b.Number = 3
	got, err := ParseAnswers([]Lesson{a, b}, "0, 3")
	if diff := cmp.Diff(map[int]int{3: 2}, got); err != nil || diff != "" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, list := range []string{"", "1", "1,2,3", "1,4", "x,1", "-1,1"} {
		if _, err := ParseAnswers([]Lesson{a, b}, list); err == nil {
			t.Errorf("%q: got no error", list)
		}
	}
}

func TestATranscriptKeepsTheBeginningAndTheEndOfAStep(t *testing.T) {
	var tr transcript
	tr.next(Text{EN: "step"})
	var ls []wire.Line
	for range 100 {
		ls = append(ls, wire.Line{Text: "said"})
	}
	ls[0].Text, ls[99].Text = "first", "last id7"
	ls = append(ls, wire.Line{Text: "PING id7", Noise: true})
	tr.add("id7", "redis", ls[:50])
	if tr.proven("id7") == nil {
		t.Error("got a transcript proven without a line of its own")
	}
	tr.add("id7", "redis", ls[50:])
	said := tr.all()
	left := 0
	for _, s := range said {
		left += s.Left
	}
	if len(said) != mostSaid+2 || left != 100-mostSaid || said[1].Line.Text != "first" || said[len(said)-1].Line.Text != "last id7" {
		t.Errorf("got %d lines, %d left out, %v", len(said), left, said)
	}
	if err := tr.proven("id7"); err != nil {
		t.Error(err)
	}
}

func TestATranscriptKeepsWhatIsSaidOnceAmongMuchElse(t *testing.T) {
	var tr transcript
	tr.next(Text{EN: "step"})
	for n := range 500 {
		l := wire.Line{Client: true, Command: "EVALSHA", Text: "EVALSHA 0a key"}
		if n == 250 {
			l.Text = "EVALSHA 0b key"
		}
		tr.add("id7", "redis", []wire.Line{l})
		tr.add("id7", "redis", []wire.Line{{Command: "EVALSHA", Text: "(nil)"}})
	}
	left, at := []int{}, 0
	for i, s := range tr.all() {
		if s.Left > 0 {
			left = append(left, s.Left)
		}
		if s.Line != nil && s.Line.Text == "EVALSHA 0b key" {
			at = i
		}
	}
	if d := cmp.Diff([]int{500 - mostSaid/2, 499 - mostSaid/2}, left); d != "" || at != 1+mostSaid/2+1 {
		t.Errorf("got it at %d; lines left out before and after it (-want +got):\n%s", at, d)
	}
	var many transcript
	for n := range 500 {
		many.add("id7", "redis", []wire.Line{{Client: true, Command: "SET", Text: fmt.Sprintf("SET key%d 1", n)}})
	}
	lines := slices.DeleteFunc(many.all(), func(s Said) bool { return s.Line == nil })
	if len(lines) != mostSaid+mostNew {
		t.Errorf("got %d lines of 500 that are all of another kind, want %d", len(lines), mostSaid+mostNew)
	}
}

func TestALessonEndsWhereAStepFails(t *testing.T) {
	past := false
	run := func(try func(*Stand)) error {
		s := newStand(t.Context(), &pool{}, lesson(), "id", t.TempDir(), nil)
		return s.run(try)
	}
	if err := run(func(s *Stand) { s.Must(nil, io.EOF); past = true }); !errors.Is(err, io.EOF) || past {
		t.Errorf("got %v, past %v, want the lesson ended by its step", err, past)
	}
	if err := run(func(s *Stand) { panic("oh") }); err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("got %v, want the panic as an error", err)
	}
	if err := run(func(s *Stand) { s.Count("a", 1, "", ""); s.Count("a", 1, "", "") }); err == nil {
		t.Error("got no error from a figure that is noted twice")
	}
	if err := run(func(s *Stand) { s.Broker("redis") }); err == nil || !strings.Contains(err.Error(), "does not say that it needs") {
		t.Errorf("got %v, want a need that was not declared refused", err)
	}
	if err := run(func(s *Stand) { s.Eventually("never", time.Millisecond, func() bool { return false }) }); err == nil {
		t.Error("got no error from a fact that never held")
	}
	if err := run(func(s *Stand) {}); err != nil {
		t.Errorf("got %v", err)
	}
}
