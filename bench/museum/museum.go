// Package museum shows bugs: each exhibit is a mistake that tutorials of flash
// sales teach, in words and code of our own, run on the real broker to show the
// damage, and then repaired and run again, with the numbers of both.
package museum

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"queuelab/bench/learn"
)

// Exhibit is one mistake and its repair.
type Exhibit struct {
	Number int
	Name   string     // in links and on the command line
	Found  []string   // the tutorials that have it, as "001"
	Idea   learn.Text // what they do, or say, in our words
	Needs  []learn.Need
	Takes  time.Duration
	// Damage runs the original idea, and notes figures whose names begin with
	// "damage-"; Repair runs the repaired version, and notes those with "repair-".
	Damage, Repair func(s *learn.Stand)
	Shows          learn.Conditions // what the figures must be
	Happens        learn.Text       // what really happens, with {figures}
	Mend           learn.Text       // how it is repaired, with {figures}
	Further        []learn.Link
}

// lesson is the exhibit as something to be run.
func (x Exhibit) lesson() learn.Lesson {
	return learn.Lesson{
		Number: x.Number, Name: x.Name, Question: x.Idea, Needs: x.Needs, Takes: x.Takes, Further: x.Further,
		Choices: []learn.Choice{{Text: x.Happens, If: x.Shows}},
		Why:     x.Happens, Say: x.Mend,
		Try: func(s *learn.Stand) {
			s.Step("The original idea.", "原来的做法。")
			x.Damage(s)
			s.Step("The repaired version.", "修好之后。")
			x.Repair(s)
		},
	}
}

// Lessons are exhibits as lessons, to be found and run like them.
func Lessons(xs []Exhibit) []learn.Lesson {
	var ls []learn.Lesson
	for _, x := range xs {
		ls = append(ls, x.lesson())
	}
	return ls
}

// Run shows the exhibits, and returns what was seen in the same order.
func Run(ctx context.Context, xs []Exhibit, o learn.Options) ([]learn.Result, error) {
	return learn.Run(ctx, Lessons(xs), o)
}

// Print tells what was seen of an exhibit: the idea, the damage and the repair,
// side by side.
func Print(w io.Writer, x Exhibit, r learn.Result, lang learn.Lang) error {
	say := func(en, zh string) string { return learn.Text{EN: en, ZH: zh}.In(lang) }
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d. %s (%s)\n", x.Number, x.Idea.In(lang), strings.Join(x.Found, ", "))
	switch {
	case r.Skipped != "":
		fmt.Fprintf(&b, "   %s %s\n", say("skipped:", "跳过："), r.Skipped)
	default:
		for _, part := range []struct{ prefix, title string }{{"damage-", say("damage", "损害")}, {"repair-", say("repaired", "修复后")}} {
			for _, f := range r.Figures {
				if strings.HasPrefix(f.Name, part.prefix) {
					fmt.Fprintf(&b, "   %-9s %12s  %s\n", part.title, f, f.Means.In(lang))
				}
			}
		}
		if r.Error != "" {
			fmt.Fprintf(&b, "   %s %s\n", say("FAILED:", "失败："), r.Error)
			break
		}
		fmt.Fprintf(&b, "   %s\n   %s\n", r.Why.In(lang), r.Say.In(lang))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
