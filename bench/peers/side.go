package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// SideCommand is the hidden command that a side of ours runs as.
const SideCommand = "peers-side"

// sideVar holds a side's orders. An argument could be read by anybody.
const sideVar = "QUEUELAB_PEERS_SIDE"

// outcomeMark begins the line of a side's output that is its outcome: client
// libraries may write around it.
const outcomeMark = "peers-side outcome: "

// The orders that a side knows.
const (
	doPublish = "publish"
	doConsume = "consume"
	doLatency = "latency"
)

// orders is what a side is to do.
type orders struct {
	Do   string
	URL  string // of our queue; also what a bare loop takes the broker and the names from
	Bare string // the client library of a bare loop; "": our backend

	Callers, Batch int           // of Publish; Batch is also what Receive asks for
	Count, Warm    int64         // messages, and how many of them pass before the clock starts
	For, WarmFor   time.Duration // by time, where Count is 0
	AckBehind      bool          // acks go on while the next messages are received
	Progress       bool          // tell how far a consumer of what nothing stores has come

	Rate float64 // of latency: messages a second, open loop
}

// outcome is what a side measured.
type outcome struct {
	Rate    float64
	Latency Micros
}

// Side does what the environment orders, and writes the outcome to out. It is
// the body of the hidden command SideCommand.
func Side(ctx context.Context, out io.Writer) error {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(sideVar)), &o); err != nil {
		return fmt.Errorf("%s is for queuelab's own use: its orders: %w", SideCommand, err)
	}
	result, err := o.obey(ctx)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", o.Do, o.who(), err)
	}
	line, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("%s: encode the outcome: %w", SideCommand, err)
	}
	_, err = fmt.Fprintf(out, "%s%s\n", outcomeMark, line)
	return err
}

func (o orders) who() string {
	if o.Bare != "" {
		return "a bare loop over " + o.Bare
	}
	return "our backend"
}

func (o orders) obey(ctx context.Context) (outcome, error) {
	switch {
	case o.Do == doPublish && o.Bare == "":
		return o.publish(ctx)
	case o.Do == doConsume:
		return o.consume(ctx)
	case o.Do == doLatency:
		return o.latency(ctx)
	}
	return outcome{}, errors.New("nobody knows how")
}

// process is this side as a process.
func (o orders) process() (process, error) {
	self, err := os.Executable()
	if err != nil {
		return process{}, fmt.Errorf("find the harness' own program: %w", err)
	}
	line, err := json.Marshal(o)
	if err != nil {
		return process{}, fmt.Errorf("encode the orders of a side: %w", err)
	}
	return process{
		argv: []string{self, SideCommand},
		env:  []string{sideVar + "=" + string(line)},
		rate: func(out string) (float64, error) {
			r, err := parseOutcome(out)
			if err == nil && !(r.Rate > 0) {
				err = errors.New("it measured no rate")
			}
			return r.Rate, err
		},
	}, nil
}

func parseOutcome(out string) (outcome, error) {
	var r outcome
	for _, l := range linesOf(out) {
		if rest, ok := strings.CutPrefix(l, outcomeMark); ok {
			if err := json.Unmarshal([]byte(rest), &r); err != nil {
				return r, fmt.Errorf("%w: %w", notUnderstood(l), err)
			}
			return r, nil
		}
	}
	return r, errors.New("it told no outcome")
}
