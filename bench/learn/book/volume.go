package book

import (
	"fmt"
	"strings"
	"time"

	"queuelab/bench/learn"
)

// volume is the book in one language.
type volume struct {
	Edition
	Lang     learn.Lang
	Chapters []chapter
}

type chapter struct {
	Title string
	Pages []*page
}

// page is a lesson, or an exhibit of the museum.
type page struct {
	*volume
	learn.Result
	File, Title  string
	Found        string // the tutorials of an exhibit; "": it is a lesson
	Answer       string // the measured one
	Prev, Next   *page
	Damage, Mend []learn.Figure
}

func newVolume(e Edition, lang learn.Lang) *volume {
	v := &volume{Edition: e, Lang: lang}
	for topic := learn.Basics; topic <= learn.Criteria; topic++ {
		c := chapter{Title: topic.Title().In(lang)}
		for _, r := range e.Lessons {
			if r.Topic == topic {
				c.Pages = append(c.Pages, v.lesson(r))
			}
		}
		v.add(c)
	}
	c := chapter{Title: learn.Text{EN: "The bug museum", ZH: "Bug 博物馆"}.In(lang)}
	for i, r := range e.Museum {
		p := v.lesson(r)
		p.File = fmt.Sprintf("museum-%02d-%s.html", r.Number, r.Name)
		p.Found = strings.Join(e.Exhibits[i].Found, ", ")
		for _, f := range r.Figures {
			if strings.HasPrefix(f.Name, "damage-") {
				p.Damage = append(p.Damage, f)
			} else {
				p.Mend = append(p.Mend, f)
			}
		}
		c.Pages = append(c.Pages, p)
	}
	v.add(c)
	all := v.pages()
	for i, p := range all {
		if i > 0 {
			p.Prev, all[i-1].Next = all[i-1], p
		}
	}
	return v
}

func (v *volume) add(c chapter) {
	if len(c.Pages) > 0 {
		v.Chapters = append(v.Chapters, c)
	}
}

func (v *volume) lesson(r learn.Result) *page {
	p := &page{volume: v, Result: r, File: fmt.Sprintf("%02d-%s.html", r.Number, r.Name), Title: r.Question.In(v.Lang)}
	if r.Measured >= 0 {
		p.Answer = learn.Fill(r.Choices[r.Measured].In(v.Lang), r.Figures)
	}
	return p
}

func (v *volume) pages() (all []*page) {
	for _, c := range v.Chapters {
		all = append(all, c.Pages...)
	}
	return all
}

// Other is the other language, and what it calls itself.
func (v *volume) Other() (lang learn.Lang) {
	if v.Lang == learn.ZH {
		return learn.EN
	}
	return learn.ZH
}

// Date is when the figures came about.
func (v *volume) Date() string { return v.At.Format("2006-01-02 15:04 MST") }

// When is when this lesson was run.
func (p *page) When() string { return p.Result.At.Format("2006-01-02 15:04:05 MST") }

// Took is how long it took.
func (p *page) Took() string {
	return (time.Duration(p.Millis) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// text is what a reader may search for.
func (p *page) text() string {
	parts := []string{p.Name, p.Answer, p.Why.In(p.Lang), p.Say.In(p.Lang)}
	for _, s := range p.Said {
		switch {
		case s.Step != nil:
			parts = append(parts, s.Step.In(p.Lang))
		case s.Line != nil:
			parts = append(parts, s.Line.Command)
		}
	}
	return strings.ToLower(strings.Join(parts, " "))
}
