package learn

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Entry is a lesson in the list, without its experiment.
type Entry struct {
	Number   int           `json:"number"`
	Name     string        `json:"name"`
	Topic    Text          `json:"topic"`
	Question Text          `json:"question"`
	Needs    []string      `json:"needs"`
	Takes    time.Duration `json:"takesNanos"`
}

// Index is the list for programs.
func Index(all []Lesson) []Entry {
	entries := []Entry{}
	for _, l := range all {
		entries = append(entries, Entry{l.Number, l.Name, l.Topic.Title(), l.Question, l.kinds(), l.Takes})
	}
	return entries
}

// kinds are the brokers that it needs, each once.
func (l Lesson) kinds() []string {
	kinds := []string{}
	for _, n := range l.Needs {
		if !slices.Contains(kinds, n.Kind) {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

// List lists lessons by topic, with what each needs and how long it takes once
// its brokers are up.
func List(w io.Writer, all []Lesson, lang Lang) error {
	p := &printer{w: w}
	for topic := Basics; topic <= Criteria; topic++ {
		some := pick(all, func(l Lesson) bool { return l.Topic == topic })
		if len(some) == 0 {
			continue
		}
		p.say("\n%s", topic.Title().In(lang))
		for _, l := range some {
			needs := strings.Join(l.kinds(), ", ")
			if needs == "" {
				needs = lang.words("nothing", "无")
			}
			p.say("  %2d  %-26s %s\n      %-26s (%s; %.0f s)", l.Number, l.Name, l.Question.In(lang), "", needs, max(1, l.Takes.Seconds()))
		}
	}
	p.say("\n%s", lang.words("`queuelab learn NUMBER` does one, `queuelab learn --all --no-ask` all of them.",
		"`queuelab learn 编号` 做一课；`queuelab learn --all --no-ask` 全部做完。"))
	return p.err
}

// PrintLine tells in one line what became of a lesson.
func PrintLine(w io.Writer, r Result, lang Lang) error {
	status, more := lang.words("ok", "通过"), ""
	switch {
	case r.Skipped != "":
		status, more = lang.words("skipped", "跳过"), ": "+r.Skipped
	case r.Error != "":
		status, more = lang.words("FAILED", "失败"), ": "+r.Error
	}
	_, err := fmt.Fprintf(w, "%-7s %2d  %5.1f s  %s%s\n", status, r.Number, r.Millis/1000, r.Question.In(lang), more)
	return err
}
