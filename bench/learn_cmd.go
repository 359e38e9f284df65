package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/learn/lessons"
)

// langFlag chooses the language of lessons.
type langFlag struct {
	Lang string `enum:"auto,en,zh" default:"auto" help:"Language: en, zh, or auto, that of the shell."`
}

func (f langFlag) lang() learn.Lang {
	if f.Lang != "auto" {
		return learn.Lang(f.Lang)
	}
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := os.Getenv(name); v != "" {
			if strings.HasPrefix(v, "zh") {
				return learn.ZH
			}
			break
		}
	}
	return learn.EN
}

// seckillFlag finds the service's program, once somebody needs it.
type seckillFlag struct {
	Seckill string `placeholder:"FILE" help:"The service's program; default: beside this one, else built from ./app."`
}

func (f seckillFlag) find(e *env) (find func() (string, error), cleanup func()) {
	done := func() {}
	// Lessons side by side may ask at the same time.
	find = sync.OnceValues(func() (path string, err error) {
		path, done, err = session{seckill: f.Seckill}.service(e)
		return path, err
	})
	return find, func() { done() }
}

type learnCmd struct {
	Lessons    []string `arg:"" optional:"" help:"Numbers, names, or words of the question. None: list them."`
	All        bool     `help:"Do all of them."`
	NoAsk      bool     `help:"Ask for no prediction."`
	Transcript string   `enum:"auto,yes,no" default:"auto" help:"Show what was read on the wire: yes, no, or auto, for a few lessons but not for --all."`
	Book       string   `placeholder:"DIR" help:"Do all of them and the museum, and write them as a site of plain files, in English and Chinese."`
	JSON       bool     `name:"json" help:"Machine-readable: the results as one JSON array."`
	langFlag
	seckillFlag
	brokerFlags
}

func (learnCmd) Help() string {
	return `Each lesson is a question, a prediction, an experiment on the real broker, and
what it measured; the transcript is read on the wire. A broker that is missing
skips the lessons that need it.

Exit status 3 when a lesson does not measure what it says.

Examples:
  queuelab learn                  list them by topic
  queuelab learn 2                do one, with a prediction first
  queuelab learn brpop --lang zh  find it by a word, in Chinese
  queuelab learn --all --no-ask   do all of them, one line each
  queuelab learn 2 9 --json       for a program
  queuelab learn --book book      the book of this run: open book/index.html`
}

func (c learnCmd) Run(e *env) error {
	all := lessons.All()
	lang := c.lang()
	if c.Book != "" {
		if len(c.Lessons) > 0 || c.JSON {
			return usage(e, errors.New("--book does all of them, and writes pages: leave out the lessons and --json"))
		}
		return c.book(e)
	}
	if len(c.Lessons) == 0 && !c.All {
		if c.JSON {
			return encode(e.stdout, learn.Index(all))
		}
		return learn.List(e.stdout, all, lang)
	}
	if c.All && len(c.Lessons) > 0 {
		return usage(e, fmt.Errorf("--all and %q: give one of them", c.Lessons[0]))
	}
	chosen := all
	if !c.All {
		var err error
		if chosen, err = learn.Find(all, c.Lessons); err != nil {
			return usage(e, err)
		}
	}
	if err := c.answer(e.ctx, chosen); err != nil {
		return err
	}
	guesses, err := c.predict(e, chosen, lang)
	if err != nil {
		return err
	}
	brief, show := c.shows(len(chosen), len(guesses) > 0)
	results, err := c.try(e, chosen, guesses, func(r learn.Result) error {
		switch {
		case c.JSON:
			return nil
		case brief:
			return learn.PrintLine(e.stdout, r, lang)
		}
		if len(chosen) > 1 || guesses == nil {
			fmt.Fprintf(e.stdout, "\n%d. %s\n", r.Number, r.Question.In(lang))
		}
		return learn.Print(e.stdout, r, lang, show)
	})
	if c.JSON && results != nil {
		err = errors.Join(encode(e.stdout, results), err)
	}
	if err != nil {
		return err
	}
	return learned(e, results)
}

// shows chooses how n lessons are told: in a line each where they are many, unless
// somebody predicted, or wants to see the wire.
func (c learnCmd) shows(n int, predicted bool) (brief, transcript bool) {
	many := c.All || n > 3
	return many && !predicted && c.Transcript != "yes", c.Transcript == "yes" || c.Transcript == "auto" && !many
}

// predict asks for the reader's predictions; nil: nobody is asked.
func (c learnCmd) predict(e *env, chosen []learn.Lesson, lang learn.Lang) (map[int]int, error) {
	if c.NoAsk || c.JSON || c.All {
		return nil, nil
	}
	return predictions(e, chosen, lang, "--no-ask asks for no prediction")
}

// predictions are by number of the lesson; otherwise says what to do where nobody
// answers.
func predictions(e *env, chosen []learn.Lesson, lang learn.Lang, otherwise string) (map[int]int, error) {
	asker := learn.Asker{In: bufio.NewReader(e.stdin), Out: e.stderr, Lang: lang}
	guesses := map[int]int{}
	for _, l := range chosen {
		choice, predicted, err := asker.Predict(e.ctx, l)
		if errors.Is(err, learn.ErrNobody) {
			fmt.Fprintln(e.stderr, "\nqueuelab: nobody answers;", otherwise)
			return guesses, nil
		}
		if err != nil {
			return nil, err
		}
		if predicted {
			guesses[l.Number] = choice
		}
	}
	return guesses, nil
}

// try runs lessons and shows each as it ends.
func (c learnCmd) try(e *env, chosen []learn.Lesson, guesses map[int]int, show func(learn.Result) error) ([]learn.Result, error) {
	find, cleanup := c.find(e)
	defer cleanup()
	began := time.Now()
	var shown error
	results, err := learn.Run(e.ctx, chosen, learn.Options{
		External: c.external(), Seckill: find, Log: e.stderr,
		Done: func(r learn.Result) {
			if g, ok := guesses[r.Number]; ok {
				r.Guess = &g
			}
			shown = errors.Join(shown, show(r))
		},
	})
	for i := range results {
		if g, ok := guesses[results[i].Number]; ok {
			results[i].Guess = &g
		}
	}
	if len(results) > 1 {
		fmt.Fprintf(e.stderr, "queuelab: %d lessons in %v\n", len(results), time.Since(began).Round(time.Second))
	}
	return results, errors.Join(shown, err)
}

// learned chooses the exit status.
func learned(e *env, rs []learn.Result) error {
	failed, skipped := 0, 0
	for _, r := range rs {
		switch {
		case r.Skipped != "":
			skipped++
		case r.Error != "":
			failed++
		}
	}
	switch {
	case failed > 0:
		fmt.Fprintf(e.stderr, "queuelab: %d of %d lessons did not measure what they say\n", failed, len(rs))
		return exitError(3)
	case skipped == len(rs):
		return fmt.Errorf("nothing was tried: %s", rs[0].Skipped)
	case skipped > 0:
		fmt.Fprintf(e.stderr, "queuelab: %d of %d lessons were skipped; `queuelab doctor` says what is missing\n", skipped, len(rs))
	}
	return nil
}

func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type examCmd struct {
	Questions int    `default:"10" help:"How many questions."`
	Seed      uint64 `help:"Draws the same questions in the same order; 0: by chance."`
	Answers   string `placeholder:"LIST" help:"Predictions for the questions in order, such as 1,3,2, instead of asking; 0 is none."`
	JSON      bool   `name:"json" help:"Machine-readable."`
	langFlag
	seckillFlag
	brokerFlags
}

func (examCmd) Help() string {
	return `Draws questions from the lessons, takes all predictions first, then runs every
experiment, and scores the predictions against what was measured.

Examples:
  queuelab exam
  queuelab exam --seed 7 --lang zh          the same ten for a whole class
  queuelab exam --seed 7 --answers 1,2,1,3,1,2,2,1,4,1 --json`
}

func (c examCmd) Run(e *env) error {
	all := lessons.All()
	if c.Questions < 1 || c.Questions > len(all) {
		return usage(e, fmt.Errorf("--questions %d: there are 1 to %d", c.Questions, len(all)))
	}
	seed := c.Seed
	if seed == 0 {
		seed = newSeed()
	}
	drawn := learn.Draw(all, c.Questions, seed)
	lang := c.lang()
	var guesses map[int]int
	var err error
	if c.Answers != "" {
		guesses, err = learn.ParseAnswers(drawn, c.Answers)
		if err != nil {
			return usage(e, err)
		}
	}
	if err := c.answer(e.ctx, drawn); err != nil {
		return err
	}
	if c.Answers == "" {
		if guesses, err = predictions(e, drawn, lang, "--answers gives the predictions"); err != nil {
			return err
		}
		if len(guesses) == 0 {
			return usage(e, errors.New("nothing was predicted, so that there is nothing to score"))
		}
	}
	fmt.Fprintf(e.stderr, "queuelab: seed %d; now every experiment is run\n", seed)
	inOrder := slices.Clone(drawn)
	results, err := learnCmd{seckillFlag: c.seckillFlag, brokerFlags: c.brokerFlags}.try(e, inOrder, guesses, func(r learn.Result) error {
		return learn.PrintLine(e.stderr, r, lang)
	})
	if err != nil {
		return err
	}
	score := learn.Mark(seed, results)
	if c.JSON {
		err = encode(e.stdout, score)
	} else {
		err = score.Print(e.stdout, lang)
	}
	if err != nil {
		return err
	}
	return learned(e, results)
}
