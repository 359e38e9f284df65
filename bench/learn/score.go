package learn

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Score is what became of an exam.
type Score struct {
	Seed      uint64   `json:"seed"`
	Questions int      `json:"questions"` // that were measured here; the others do not count
	Right     int      `json:"right"`
	Answers   []Answer `json:"answers"`
}

// Answer is one question of an exam.
type Answer struct {
	Number    int    `json:"number"`
	Question  Text   `json:"question"`
	Predicted *int   `json:"predicted,omitempty"` // counted from 1; absent: none
	Measured  int    `json:"measured"`            // likewise; 0: not measured
	Right     bool   `json:"right"`
	Misjudged *Text  `json:"misjudged,omitempty"` // what was predicted and is not so
	Truth     Text   `json:"truth"`
	Why       Text   `json:"why"`
	Skipped   string `json:"skipped,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Mark scores predictions against what was measured, never against what was
// expected: a question that was not measured, or failed, does not count.
func Mark(seed uint64, rs []Result) Score {
	s := Score{Seed: seed, Answers: []Answer{}}
	for _, r := range rs {
		a := Answer{Number: r.Number, Question: r.Question, Measured: r.Measured + 1, Why: r.Why, Skipped: r.Skipped, Error: r.Error}
		if r.Guess != nil {
			n := *r.Guess + 1
			a.Predicted = &n
		}
		if r.Passed() {
			s.Questions++
			a.Truth = filled(r.Choices[r.Measured], r.Figures)
			a.Right = r.Guess != nil && *r.Guess == r.Measured
			if a.Right {
				s.Right++
			} else if r.Guess != nil {
				t := r.Choices[*r.Guess]
				a.Misjudged = &t
			}
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

func filled(t Text, fs []Figure) Text { return Text{Fill(t.EN, fs), Fill(t.ZH, fs)} }

// Print tells the score, and of each question that was misjudged what is so and
// why.
func (s Score) Print(w io.Writer, l Lang) error {
	p := &printer{w: w}
	for _, a := range s.Answers {
		switch {
		case a.Right:
			continue
		case a.Skipped != "":
			p.say("\n%d. %s\n   %s %s", a.Number, a.Question.In(l), l.words("not counted, skipped:", "不计分，跳过："), a.Skipped)
			continue
		case a.Error != "":
			p.say("\n%d. %s\n   %s %s", a.Number, a.Question.In(l), l.words("not counted, the lesson failed:", "不计分，实验失败："), a.Error)
			continue
		}
		p.say("\n%d. %s", a.Number, a.Question.In(l))
		if a.Misjudged != nil {
			p.say("   %s %s", l.words("You predicted:", "你的预测："), a.Misjudged.In(l))
		} else {
			p.say("   %s", l.words("You predicted nothing.", "没有预测。"))
		}
		p.say("   %s %s\n   %s", l.words("Measured:", "实测："), a.Truth.In(l), a.Why.In(l))
	}
	p.say("\n"+l.words("%d of %d right (seed %d)", "%d / %d 正确（种子 %d）"), s.Right, s.Questions, s.Seed)
	return p.err
}

// ParseAnswers reads predictions for lessons in their order, such as 1,3,2; 0 is
// none.
func ParseAnswers(drawn []Lesson, list string) (map[int]int, error) {
	parts := strings.Split(list, ",")
	if len(parts) != len(drawn) {
		return nil, fmt.Errorf("--answers has %d predictions for %d questions", len(parts), len(drawn))
	}
	guesses := map[int]int{}
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n > len(drawn[i].Choices) {
			return nil, fmt.Errorf("--answers: %q is no prediction for question %d, which has 1 to %d", part, i+1, len(drawn[i].Choices))
		}
		if n > 0 {
			guesses[drawn[i].Number] = n - 1
		}
	}
	return guesses, nil
}
