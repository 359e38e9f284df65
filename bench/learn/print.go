package learn

import (
	"fmt"
	"io"
	"strings"
)

// Lang is the language that a lesson is told in.
type Lang string

// The languages.
const (
	EN Lang = "en"
	ZH Lang = "zh"
)

// In is the text in a language.
func (t Text) In(l Lang) string {
	if l == ZH {
		return t.ZH
	}
	return t.EN
}

// words are what pages and terminals say around a lesson.
func (l Lang) words(en, zh string) string { return Text{en, zh}.In(l) }

// Print tells a lesson that was run. transcript says whether what was read on the
// wire is told too.
func Print(w io.Writer, r Result, l Lang, transcript bool) error {
	p := &printer{w: w}
	if transcript && len(r.Said) > 0 {
		if p.err = PrintTranscript(w, r, l); p.err != nil {
			return p.err
		}
	}
	if r.Skipped != "" {
		p.say("%s %s", l.words("Skipped:", "跳过："), r.Skipped)
		return p.err
	}
	for _, f := range r.Figures {
		p.say("  %-12s %s", f.String(), f.Means.In(l))
	}
	if r.Measured >= 0 {
		p.say("\n%s %s", l.words("Measured answer:", "实测答案："), Fill(r.Choices[r.Measured].In(l), r.Figures))
	}
	// Against what was measured, as an exam is scored.
	if r.Guess != nil {
		verdict := l.words("Your prediction was right.", "你的预测是对的。")
		if *r.Guess != r.Measured {
			verdict = l.words("You predicted: ", "你的预测是：") + r.Choices[*r.Guess].In(l)
		}
		p.say("%s", verdict)
	}
	if r.Error != "" {
		p.say("\n%s %s", l.words("FAILED:", "失败："), r.Error)
		return p.err
	}
	p.say("\n%s\n  %s", l.words("Why:", "为什么："), r.Why.In(l))
	p.say("\n%s\n  %s", l.words("In an interview:", "面试时这样答："), r.Say.In(l))
	for i, f := range r.Further {
		if i == 0 {
			p.say("\n%s", l.words("Further:", "进一步："))
		}
		p.say("  %s", f.in(l))
	}
	return p.err
}

// PrintTranscript tells what was done and what was read on the wire.
func PrintTranscript(w io.Writer, r Result, l Lang) error {
	p := &printer{w: w}
	p.say("%s", l.words("What was done, and what was read on the wire:", "做了什么，线路上读到了什么："))
	for _, s := range r.Said {
		p.said(s, l)
	}
	p.say("")
	return p.err
}

func (f Link) in(l Lang) string {
	at := f.URL
	if f.Cell != "" {
		at = l.words("the report's cell ", "报告单元格 ") + f.Cell
	}
	return strings.TrimSpace(f.In(l) + " " + at)
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) said(s Said, l Lang) {
	switch {
	case s.Step != nil:
		p.say("\n# %s", s.Step.In(l))
	case s.Line != nil:
		who := ">"
		if !s.Line.Client {
			who = "<"
		}
		p.say("  %-8s %3d %s %s", s.Broker, s.Line.Conn, who, s.Line.Text)
	default:
		p.say(l.words("  … %d more lines", "  … 另有 %d 行"), s.Left)
	}
}
