package main

import (
	"fmt"

	"queuelab/bench/learn"
	"queuelab/bench/museum"
)

type museumCmd struct {
	Exhibits   []string `arg:"" optional:"" help:"Numbers, names, or words. None: all of them."`
	List       bool     `help:"List them, and run nothing."`
	Transcript bool     `help:"Show what was read on the wire."`
	JSON       bool     `name:"json" help:"Machine-readable."`
	langFlag
	seckillFlag
	brokerFlags
}

func (museumCmd) Help() string {
	return `Each exhibit is a mistake that tutorials of flash sales teach: it is run on the
real broker to show the damage, then repaired and run again, with the counts of
both. Exit status 3 where one does not show what it says.

Examples:
  queuelab museum
  queuelab museum --list
  queuelab museum 11 --transcript
  queuelab museum xdel --lang zh`
}

func (c museumCmd) Run(e *env) error {
	all := museum.All()
	lang := c.lang()
	if c.List {
		if len(c.Exhibits) > 0 {
			return usage(e, fmt.Errorf("--list lists all of them: leave out %q, or --list", c.Exhibits[0]))
		}
		return c.list(e, all, lang)
	}
	chosen := all
	if len(c.Exhibits) > 0 {
		found, err := learn.Find(museum.Lessons(all), c.Exhibits)
		if err != nil {
			return usage(e, err)
		}
		chosen = nil
		for _, l := range found {
			for _, x := range all {
				if x.Number == l.Number {
					chosen = append(chosen, x)
				}
			}
		}
	}
	if err := c.answer(e.ctx, museum.Lessons(chosen)); err != nil {
		return err
	}
	find, cleanup := c.find(e)
	defer cleanup()
	results, err := museum.Run(e.ctx, chosen, learn.Options{
		External: c.external(), Seckill: find, Log: e.stderr,
		Done: func(r learn.Result) { fmt.Fprintf(e.stderr, "exhibit %d: %.1f s\n", r.Number, r.Millis/1000) },
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = encode(e.stdout, results)
	}
	for i, r := range results {
		if c.JSON || err != nil {
			break
		}
		if err = museum.Print(e.stdout, chosen[i], r, lang); err == nil && c.Transcript {
			err = learn.PrintTranscript(e.stdout, r, lang)
		}
	}
	if err != nil {
		return err
	}
	return learned(e, results)
}

func (c museumCmd) list(e *env, all []museum.Exhibit, lang learn.Lang) error {
	if c.JSON {
		return encode(e.stdout, learn.Index(museum.Lessons(all)))
	}
	for _, x := range all {
		if _, err := fmt.Fprintf(e.stdout, "%2d  %-28s %s\n", x.Number, x.Name, x.Idea.In(lang)); err != nil {
			return err
		}
	}
	return nil
}
