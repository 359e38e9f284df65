package choose

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// question is one of the five. answer puts what was said into the needs.
type question struct {
	text    string
	choices []string // numbered from 1; none: a free answer
	many    bool     // several numbers may be given
	answer  func(n *Needs, said []int, text string) error
}

func questions() []question {
	must := func(n *Needs, names ...string) { n.Must = append(n.Must, names...) }
	return []question{
		{"What may be lost of what was accepted?", []string{"whatever dies with a process: some loss is fine", "nothing when a consumer or the broker is killed", "nothing, even when the power goes"}, false,
			func(n *Needs, said []int, _ string) error {
				n.Loses = []string{MayLose, NothingOnCrash, NothingOnPowerLoss}[said[0]-1]
				return nil
			}},
		{"Who gets a message?", []string{"one of several consumers, which share the work", "each of several services, and one consumer in each", "everybody who listens at that moment"}, false,
			func(n *Needs, said []int, _ string) error {
				must(n, [][]string{{"competing"}, {"groups"}, {"broadcast"}}[said[0]-1]...)
				return nil
			}},
		{"What else? Several numbers are fine, and none.", []string{"a key's messages stay in order", "what was read can be read again", "a message can be sent for later", "a consumer takes some keys only"}, true,
			func(n *Needs, said []int, _ string) error {
				for _, i := range said {
					must(n, []string{"ordered-per-key", "replay", "delay", "routing"}[i-1])
				}
				return nil
			}},
		{"How many messages a second, at the peak? Nothing: it does not matter.", nil, false,
			func(n *Needs, _ []int, text string) (err error) {
				if text != "" {
					n.Rate, err = strconv.ParseFloat(text, 64)
				}
				return err
			}},
		{"Which brokers may it be (" + strings.Join(Brokers(), ", ") + ")? Nothing: any.", nil, false,
			func(n *Needs, _ []int, text string) error {
				if text != "" {
					n.Only = Words(text)
				}
				return nil
			}},
	}
}

// Words are those of a list separated by commas or spaces.
func Words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// Ask asks the five questions on out and reads an answer to each from in, a line
// each. One that cannot be read is asked for again.
func Ask(in io.Reader, out io.Writer) (Needs, error) {
	var n Needs
	lines := bufio.NewScanner(in)
	all := questions()
	for i, q := range all {
		fmt.Fprintf(out, "\n%d of %d. %s\n", i+1, len(all), q.text)
		for j, c := range q.choices {
			fmt.Fprintf(out, "   %d  %s\n", j+1, c)
		}
		for {
			fmt.Fprint(out, "> ")
			if !lines.Scan() {
				return n, errors.Join(fmt.Errorf("the answers end before question %d of %d", i+1, len(all)), lines.Err())
			}
			next := n
			text := strings.TrimSpace(lines.Text())
			said, err := q.numbers(text)
			if err == nil {
				err = q.answer(&next, said, text)
			}
			if err == nil { // what a single answer makes impossible is said at once
				err = next.plausible()
			}
			if err == nil {
				n = next
				break
			}
			fmt.Fprintf(out, "   %v\n", err)
		}
	}
	fmt.Fprintln(out)
	return n, nil
}

// plausible is Check without that something must be needed.
func (n Needs) plausible() error {
	n.Loses = orMayLose(n.Loses)
	return n.Check()
}

func orMayLose(loses string) string {
	if loses == "" {
		return MayLose
	}
	return loses
}

func (q question) numbers(text string) ([]int, error) {
	if q.choices == nil {
		return nil, nil
	}
	var said []int
	for _, w := range Words(text) {
		i, err := strconv.Atoi(w)
		if err != nil || i < 1 || i > len(q.choices) {
			return nil, fmt.Errorf("%q: want a number from 1 to %d", w, len(q.choices))
		}
		said = append(said, i)
	}
	if !q.many && len(said) != 1 {
		return nil, fmt.Errorf("want one number from 1 to %d", len(q.choices))
	}
	return said, nil
}
