// Command queuelab measures what each queue costs and what it loses when
// something is killed. See `queuelab --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"queuelab/bench/broker"
	"queuelab/bench/node"
)

// cli is the command line; each command is one struct with a Run method.
type cli struct {
	Run       runCmd       `cmd:"" help:"Measure: latency, throughput, loss and duplicates under kills, and a real sale."`
	Faults    faultsCmd    `cmd:"" help:"The crash lab: every fault, every setting, expected against measured."`
	Sale      saleCmd      `cmd:"" help:"Compare ways of selling: with a queue, without one, buyers first, two databases; each over every durable queue."`
	Explain   explainCmd   `cmd:"" help:"Tell the story of one message, or trial, of a fault campaign from its ledgers."`
	Truth     truthCmd     `cmd:"" help:"What the client libraries do by themselves: lost replies sent again, pops that lose, confirms that say nothing."`
	Calibrate calibrateCmd `cmd:"" help:"Prove the harness: queues with known faults, and what it reports of them."`
	Compare   compareCmd   `cmd:"" help:"Tell whether two results differ by more than chance; with a budget, a gate for CI."`
	AB        abCmd        `cmd:"" name:"ab" help:"Measure two settings in turn, in pairs, and compare them."`
	Peers     peersCmd     `cmd:"" help:"Measure our backends side by side with each broker's own load tool."`
	Choose    chooseCmd    `cmd:"" help:"From needs to settings, ranked, each reason with its proof: a measured cell, a claim, a row of the oracle, or a document."`
	Report    reportCmd    `cmd:"" help:"Print and rewrite the reports of a result directory."`
	Lie       lieCmd       `cmd:"" help:"The same run told as bad tools would tell it, beside the truth."`
	Learn     learnCmd     `cmd:"" help:"Lessons: predict, run it on the real broker, see what was said on the wire."`
	Exam      examCmd      `cmd:"" help:"Questions drawn by chance: predictions first, then all are run and scored."`
	Museum    museumCmd    `cmd:"" help:"Mistakes that tutorials teach: the damage, the repair, and the counts of both."`
	Serve     serveCmd     `cmd:"" help:"The live lab: a page on which real queues are seen at work, and struck."`
	List      listCmd      `cmd:"" help:"List backends, settings, tests and faults, with what each promises."`
	Doctor    doctorCmd    `cmd:"" help:"Tell what this machine has, what is missing and how to get it."`
	Up        upCmd        `cmd:"" help:"Run the same brokers in the foreground for hands-on use; Ctrl-C takes them down."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	Node  nodeCmd  `cmd:"" hidden:""`
	Guard guardCmd `cmd:"" hidden:""`

	PeersSide peersSideCmd `cmd:"" hidden:""`

	Readme readmeCmd `cmd:"" hidden:"" help:"Regenerate the tables of the READMEs, on the real brokers."`
}

// env is what commands need of the world.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // stderr is one
	color          bool // stdout is a terminal and NO_COLOR is not set
}

// out is where words for people go when standard output may be for a program.
func (e *env) out(machine bool) io.Writer {
	if machine {
		return e.stderr
	}
	return e.stdout
}

// exitError ends the program with a status and says nothing more.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usage is for what kong cannot check: it ends like every other wrong command line.
func usage(e *env, err error) error {
	fmt.Fprintf(e.stderr, "queuelab: %v\n", err)
	return exitError(2)
}

func main() {
	broker.Init() // a supervisor never gets past this line
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal must end a run that does not stop.
	context.AfterFunc(ctx, stop)
	ctx, lost := context.WithCancelCause(ctx)
	out, errs := &output{f: os.Stdout, lost: lost}, &output{f: os.Stderr, lost: lost}
	err := run(ctx, os.Args[1:], os.Stdin, out, errs)
	if err == nil {
		err = out.failed()
	}
	var exit exitError
	switch {
	case errors.Is(context.Cause(ctx), syscall.EPIPE):
		os.Exit(unread)
	case errors.As(err, &exit):
		os.Exit(int(exit))
	case err != nil:
		fmt.Fprintln(os.Stderr, "queuelab:", err)
		os.Exit(1)
	}
}

// unread is the exit status when nobody reads what is written, as of a program that
// the signal for it has ended.
const unread = 128 + int(syscall.SIGPIPE)

// silent keeps go-redis from writing to standard error what its errors tell too.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var c cli
	code := -1
	parser, err := kong.New(&c, kong.Name("queuelab"),
		kong.Description("One flash sale, many queues, measured truth.\n\nExit status: 0 all as expected, 1 failed, 2 wrong usage, 3 a contradiction or an invalid cell, 130 interrupted."),
		kong.DefaultEnvars("QUEUELAB"), kong.Writers(stdout, stderr), kong.UsageOnError(),
		kong.Exit(func(n int) { code = n }))
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // help was asked for and printed
		return nil
	}
	if err != nil {
		fmt.Fprintf(stderr, "queuelab: %v; `queuelab --help` shows what there is\n", err)
		return exitError(2)
	}
	if !parsed.Selected().Hidden { // those belong to a harness, and end with it
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	err = parsed.Run(&env{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, terminal: isTerminal(stderr), color: isTerminal(stdout) && os.Getenv("NO_COLOR") == ""})
	return interrupted(ctx, stderr, err)
}

// interrupted tells the end that the user wanted from a failure: whatever was
// under way when the signal came fails, in words that would mislead.
func interrupted(ctx context.Context, stderr io.Writer, err error) error {
	var exit exitError
	switch {
	case err == nil, ctx.Err() == nil, errors.As(err, &exit):
		return err
	case errors.Is(context.Cause(ctx), syscall.EPIPE):
		return exitError(unread)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "queuelab: interrupted")
	default:
		fmt.Fprintln(stderr, "queuelab: interrupted:", err)
	}
	return exitError(130)
}

type nodeCmd struct{}

func (nodeCmd) Run(e *env) error {
	// Signals go to the harness, which stops its nodes in order.
	return node.Main(context.WithoutCancel(e.ctx), e.stdin, e.stdout)
}

type guardCmd struct {
	Argv []string `arg:"" passthrough:""`
}

func (g guardCmd) Run(e *env) error {
	argv := g.Argv
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	return node.Guard(argv, e.stdin, e.stdout)
}
