package learn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrNobody means that nobody answers: the input has ended.
var ErrNobody = errors.New("nobody answers")

// Asker asks a person for predictions.
type Asker struct {
	In   *bufio.Reader
	Out  io.Writer
	Lang Lang
}

// Predict shows the question and its choices, and waits for one of them. What is
// none of them is asked for again; an empty line predicts nothing.
func (a Asker) Predict(ctx context.Context, l Lesson) (choice int, predicted bool, err error) {
	a.Ask(l)
	for {
		fmt.Fprintf(a.Out, a.Lang.words("Your prediction, 1 to %d (Enter: none): ", "你的预测，1 到 %d（回车跳过）："), len(l.Choices))
		line, err := a.line(ctx)
		if err != nil {
			return 0, false, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			return 0, false, nil
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(l.Choices) {
			return n - 1, true, nil
		}
		fmt.Fprintf(a.Out, a.Lang.words("%q is none of them.\n", "没有 %q 这个选项。\n"), line)
	}
}

// Ask shows the question with its choices.
func (a Asker) Ask(l Lesson) {
	fmt.Fprintf(a.Out, "\n%d. %s\n   %s\n\n", l.Number, l.Question.In(a.Lang), l.Question.In(a.Lang.other()))
	for i, c := range l.Choices {
		fmt.Fprintf(a.Out, "  %d) %s\n", i+1, c.In(a.Lang))
	}
}

func (l Lang) other() Lang {
	if l == ZH {
		return EN
	}
	return ZH
}

// line reads one, or ends with ctx: a terminal that is read cannot be woken.
func (a Asker) line(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		line, err := a.In.ReadString('\n')
		got <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-got:
		if r.err != nil && r.line == "" {
			return "", ErrNobody
		}
		return r.line, nil
	}
}
