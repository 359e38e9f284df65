package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"queuelab/bench/host"
	"queuelab/bench/peers"
)

type peersCmd struct {
	Backends string  `default:"all" help:"Backends, separated by commas."`
	Pairs    int     `default:"3" help:"Runs of either side for each row, in turns; 3 is the least that makes a median."`
	Scale    float64 `default:"1" help:"Multiplies the numbers of messages and the durations."`
	Out      string  `placeholder:"DIR" help:"Where peers.json goes; default bench/results/peers-TIME."`
	Force    bool    `help:"Replace the result in --out."`
	JSON     bool    `name:"json" help:"Machine-readable: print peers.json instead of the table."`
	Check    bool    `help:"Exit with status 3 where a target is missed, or a row was not measured."`
}

func (peersCmd) Help() string {
	return `Runs each broker's own load tool and our backend on the same broker, in turns, and
prints the ratio: redis-benchmark, Kafka's performance tools, RabbitMQ PerfTest,
and a bare client loop where no stock tool consumes. It takes some 15 minutes.
"make peers" fetches the tools first.

Examples:
  queuelab peers
  queuelab peers --backends kafka,rabbitmq --pairs 5
  queuelab peers --backends redis-streams --scale 0.2 --pairs 1
  queuelab peers --check --out results/peers`
}

func (c *peersCmd) Validate() error {
	if c.Pairs < 1 || c.Pairs > 100 {
		return fmt.Errorf("--pairs=%d: want 1 to 100", c.Pairs)
	}
	if !(c.Scale >= 0.001 && c.Scale <= 100) {
		return fmt.Errorf("--scale=%v: want 0.001 to 100", c.Scale)
	}
	return nil
}

func (c *peersCmd) Run(e *env) error {
	o := peers.Options{Backends: c.Backends, Pairs: c.Pairs, Scale: c.Scale, Commit: commit()}
	if err := o.Check(); err != nil {
		return usage(e, err)
	}
	began := time.Now()
	if c.Out == "" {
		c.Out = filepath.Join("bench", "results", "peers-"+began.Format("20060102-150405"))
	}
	if err := peers.Claim(c.Out, c.Force); err != nil {
		return err
	}
	o.Host = host.Facts(e.ctx, os.TempDir())
	o.Say = func(format string, args ...any) {
		fmt.Fprintf(e.stderr, "[%v] "+format+"\n", append([]any{time.Since(began).Round(time.Second)}, args...)...)
	}
	o.Keep = func(r peers.Result) error { return peers.Write(c.Out, r) }
	result, err := peers.Measure(e.ctx, o)
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	if err := peers.Write(c.Out, result); err != nil {
		return err
	}
	if err := c.print(e, result); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "queuelab: %s after %v\n", filepath.Join(c.Out, peers.File), time.Since(began).Round(time.Second))
	return c.conclude(result, interrupted)
}

func (c *peersCmd) print(e *env, result peers.Result) error {
	if !c.JSON {
		return peers.Table(e.stdout, result, e.color, width(e.stdout))
	}
	data, err := peers.Encode(result)
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(data)
	return err
}

// conclude chooses the exit status.
func (c *peersCmd) conclude(r peers.Result, interrupted bool) error {
	switch {
	case interrupted:
		return exitError(130)
	case len(r.Failed) > 0:
		f := r.Failed[0]
		return fmt.Errorf("%d rows failed; the first, %s %s %s: %s", len(r.Failed), f.Backend, f.Client, f.Direction, f.Reason)
	case len(r.Rows)+len(r.Latency) == 0:
		return fmt.Errorf("nothing was measured: %s", r.Skipped[0].Reason)
	case c.Check && (len(r.Skipped) > 0 || !r.Reached()):
		return exitError(3)
	}
	return nil
}

type peersSideCmd struct{}

func (peersSideCmd) Run(e *env) error {
	return peers.Side(context.WithoutCancel(e.ctx), os.Stdout)
}
