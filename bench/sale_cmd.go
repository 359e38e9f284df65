package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"queuelab/bench/host"
	"queuelab/bench/host/meter"
	"queuelab/bench/sale"
	"queuelab/bench/trial"
)

type saleCmd struct {
	Ways   string `default:"all" help:"Ways of selling, separated by commas: sync, queue, script, queue-first, two-databases."`
	Queues string `default:"durable" help:"Backends or backend/setting names, separated by commas; durable: every queue that keeps what it accepted, and memory."`
	Zero   bool   `help:"Install nothing: the memory queue, SQLite, and admission in the service's process."`

	Buyers      int           `default:"4000" help:"Buyers; each clicks once, and again only where there was no answer or the sale was busy."`
	Stock       int           `default:"1000" help:"Units."`
	Rate        float64       `default:"1000" help:"Clicks a second, at moments by chance, and whatever the answers take."`
	Trials      int           `default:"1" help:"Sales of each way and queue, in turns; the table has their medians."`
	Connections int           `default:"512" help:"Connections that the buyers share."`
	Deadline    time.Duration `default:"1m" help:"For the final answers, once everyone has clicked."`
	Seed        uint64        `default:"0" help:"Seed of the moments and of the order of buyers and sales; 0: by chance. It is in the result."`

	JSON bool `name:"json" xor:"form" help:"Machine-readable."`
	CSV  bool `name:"csv" xor:"form" help:"A line for each sale."`

	brokerFlags

	Seckill string `placeholder:"FILE" help:"The service's program; default: beside this one, else built from ./app."`
}

func (saleCmd) Help() string {
	return `Runs the same sale over the real service, once for each architecture and queue: the
same buyers click at the same moments. It shows what a queue gains, or not: how long
buyers wait for an answer and for their order, how fast units are sold, what the
database has to do, and whether anything was oversold, undersold or sold twice to one
buyer. A row that is not valid has dashes for figures, and its reason beneath the table.

Exit status: 0 every sale was valid, 1 nothing was measured, 3 one was not valid.

Examples:
  queuelab sale --zero
      in seconds, with nothing installed
  queuelab sale --ways sync,queue --queues redis-streams
      does a queue help?
  queuelab sale --ways queue,queue-first --queues kafka,rabbitmq/quorum --rate 2000 --trials 5
  queuelab sale --json > sale.json`
}

func (c *saleCmd) Validate() error {
	switch {
	case c.Buyers < 1 || c.Buyers > 200_000:
		return fmt.Errorf("--buyers=%d: want 1 to 200000", c.Buyers)
	case c.Stock < 1 || c.Stock > 200_000:
		return fmt.Errorf("--stock=%d: want 1 to 200000", c.Stock)
	case !(c.Rate >= 1 && c.Rate <= 100_000):
		return fmt.Errorf("--rate=%v: want 1 to 100000", c.Rate)
	case c.Trials < 1 || c.Trials > 100:
		return fmt.Errorf("--trials=%d: want 1 to 100", c.Trials)
	case c.Connections < 1 || c.Connections > 10_000:
		return fmt.Errorf("--connections=%d: want 1 to 10000", c.Connections)
	case c.Deadline < time.Second || c.Deadline > time.Hour:
		return fmt.Errorf("--deadline=%v: want 1s to 1h", c.Deadline)
	case c.Zero && c.Queues != "durable" && c.Queues != "memory":
		return errors.New("--zero is the memory queue: leave --queues out")
	}
	return nil
}

// durable are the queues that keep what they accepted, one row for each promise,
// and memory to compare them with. Clusters are asked for by name.
const durable = "memory,redis-streams/aof-everysec,redis-streams/aof-always,redis-list-reliable,redis-doing/atomic,redis-zset,redis-xread/tracked,redis-sharded," +
	"rabbitmq/classic,rabbitmq/quorum,kafka/acks-all,kafka/acks-all-flush,nats,postgres/default"

func (c *saleCmd) Run(e *env) error {
	specs, err := c.specs()
	if err != nil {
		return usage(e, err)
	}
	program, cleanup, err := session{seckill: c.Seckill}.service(e)
	if err != nil {
		return err
	}
	defer cleanup()
	lab, err := trial.NewLab(c.external(), program)
	if err != nil {
		return err
	}
	defer lab.Close()
	var settings []trial.Setting
	for _, s := range specs {
		settings = append(settings, s.Setting)
	}
	if err := lab.CheckExternal(e.ctx, settings); err != nil {
		return err
	}
	r := sale.Result{Schema: sale.Schema, StartedAt: time.Now(), Commit: commit(), Host: host.Facts(e.ctx, os.TempDir()), Load: sale.Load{
		Buyers: c.Buyers, Stock: c.Stock, Rate: c.Rate, Connections: c.Connections, Seed: c.Seed, Trials: c.Trials, Database: c.database(),
	}, Rows: []sale.Row{}}
	watch := meter.Start()
	err = c.hold(e, lab, specs, &r)
	r.Host = host.Watched(r.Host, watch.Stop())
	r.FinishedAt, r.Complete = time.Now(), err == nil
	// Before anything is printed: a reader that went away ends this process.
	if cerr := lab.Close(); cerr != nil {
		fmt.Fprintln(e.stderr, "queuelab:", cerr)
	}
	if perr := c.print(e, r); perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	return c.conclude(e, r)
}

func (c *saleCmd) database() string {
	if c.Zero {
		return "SQLite, admission in the service's process"
	}
	return "PostgreSQL, admission in Redis"
}

// specs are the sales of one trial. A way without a queue is one of them.
func (c *saleCmd) specs() ([]trial.SaleSpec, error) {
	ways, err := trial.SelectWays(c.Ways)
	if err != nil {
		return nil, fmt.Errorf("--ways: %w", err)
	}
	list := c.Queues
	if list == "durable" || list == "all" {
		list = durable
	}
	if c.Zero {
		list = "memory"
	}
	settings, err := trial.SelectSettings(list)
	if err != nil {
		return nil, fmt.Errorf("--queues: %w", err)
	}
	if c.Seed == 0 {
		c.Seed = newSeed()
	}
	var specs []trial.SaleSpec
	seen := map[string]bool{}
	for _, w := range ways {
		for _, s := range settings {
			name := w.Name + " " + s.String()
			if w.NoQueue {
				s, name = trial.Setting{}, w.Name
			}
			if seen[name] {
				continue
			}
			seen[name] = true
			specs = append(specs, trial.SaleSpec{Setting: s, Way: w, Zero: c.Zero, Buyers: c.Buyers, Stock: c.Stock, Rate: c.Rate,
				Connections: c.Connections, Deadline: c.Deadline})
		}
	}
	return specs, nil
}

// hold runs the sales, each trial in an order of its own. The error is that of
// an interruption.
func (c *saleCmd) hold(e *env, lab *trial.Lab, specs []trial.SaleSpec, r *sale.Result) error {
	began, total := time.Now(), len(specs)*c.Trials
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	fmt.Fprintf(e.stderr, "queuelab: %d sales of %d buyers for %d units, seed %d\n", total, c.Buyers, c.Stock, c.Seed)
	for n := 1; n <= c.Trials; n++ {
		rng.Shuffle(len(specs), func(i, j int) { specs[i], specs[j] = specs[j], specs[i] })
		for _, s := range specs {
			s.Seed = c.Seed + uint64(n) - 1
			row, err := lab.HoldSale(e.ctx, s)
			if e.ctx.Err() != nil {
				return e.ctx.Err()
			}
			x := sale.Row{Trial: n, SaleRow: row}
			if err != nil {
				x.Error = oneLine(err)
			}
			r.Rows = append(r.Rows, x)
			fmt.Fprintf(e.stderr, "[%v] %d of %d: %s %s: %s\n", time.Since(began).Round(time.Second), len(r.Rows), total, row.Way, row.Setting, said(x))
		}
	}
	return nil
}

// said is a row in a few words.
func said(x sale.Row) string {
	switch {
	case x.Error != "":
		return "failed: " + x.Error
	case x.Skipped != "":
		return "left out: " + x.Skipped
	case len(x.Invalid) > 0:
		return "not valid: " + strings.Join(x.Invalid, ", ")
	case x.AnswerMicros == nil:
		return "sold"
	}
	return fmt.Sprintf("sold %d, answered within %.1f ms (p99)", x.Sold, float64(x.AnswerMicros.P99)/1000)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func (c *saleCmd) print(e *env, r sale.Result) error {
	switch {
	case c.JSON:
		return sale.JSON(e.stdout, r)
	case c.CSV:
		return sale.CSV(e.stdout, r)
	}
	return sale.Table(e.stdout, r, e.color, width(e.stdout))
}

// conclude chooses the exit status.
func (c *saleCmd) conclude(e *env, r sale.Result) error {
	held, skipped := 0, ""
	var err error
	for _, x := range r.Rows {
		switch {
		case x.Skipped != "":
			skipped = x.Skipped
		case x.Error != "" || len(x.Invalid) > 0:
			err = exitError(3)
			held++
		default:
			held++
		}
	}
	if held == 0 && skipped != "" {
		return fmt.Errorf("nothing was measured: %s", skipped)
	}
	return err
}
