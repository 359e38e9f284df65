// Command seckill runs flash sales over a queue of your choice.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
)

// flags is the command line; each is also an environment variable.
type flags struct {
	Listen          string `default:"127.0.0.1:8080" help:"Address to serve on; port 0 is a free one, printed at the start. Default: 127.0.0.1:8080." placeholder:"HOST:PORT"`
	Queue           string `placeholder:"NAME|URL" help:"Queue between click and order: memory, redis-streams, rabbitmq, kafka or another name (an unknown one lists them all), or a URL with its settings. Default: memory."`
	DB              string `name:"db" default:"sqlite:seckill.db" placeholder:"URL" help:"Database: postgres://USER:PASSWORD@HOST/NAME or sqlite:PATH. Default: sqlite:seckill.db."`
	Redis           string `placeholder:"URL" help:"Redis for admission, such as redis://127.0.0.1:6379/0, or a Redis Cluster: redis+cluster://127.0.0.1:7001,127.0.0.1:7002. Default: admission in this process, which other instances do not share."`
	OperatorToken   string `placeholder:"TOKEN" help:"Bearer token of operators, at least 16 characters. Default: made up, and printed where a person reads, otherwise written to a file that the log names."`
	AllowLossy      bool   `help:"Accept a queue that can lose orders."`
	TrustUserHeader bool   `help:"Take the buyer's name from X-User-ID, without a login. For load tests; only while listening on loopback."`

	TokenKey    string        `placeholder:"SECRET" help:"Key that signs login tokens, at least 32 characters. Default: a new one at each start, so that everybody logs in again. Instances must share it."`
	Rescan      time.Duration `default:"5s" help:"Age at which an order that is not in the database yet is queued again; 0 turns that off."`
	Enqueue     string        `enum:"auto,script,publish" default:"auto" placeholder:"HOW" help:"How an order gets into a queue in Redis: script (by the script that takes its unit, so that nothing can happen in between), publish (after it), or auto: script where the queue and admission use the same Redis and database."`
	Streams     int           `default:"4096" placeholder:"N" help:"Event streams of buyers who wait and watch at a time, of this instance; those beyond it are told to ask instead. Each takes a goroutine and a connection."`
	StartQueue  string        `placeholder:"URL" help:"Queue that brings start signals to every instance: one that broadcasts, or that has groups. Default: a Pub/Sub channel of --redis; without it, instances look into the database twice a second."`
	IDs         string        `name:"ids" enum:"snowflake,redis" default:"snowflake" placeholder:"FROM" help:"Where order ids come from: snowflake (the clock and a number of this instance) or redis (a counter beside admission). All instances must agree."`
	WorkerID    int           `default:"-1" placeholder:"N" help:"Number of this instance in order ids, 0 to 1023. Default: one that is free, leased in the database."`
	Lanes       int           `default:"4" help:"Batches of orders decided at the same time."`
	Batch       int           `default:"256" help:"Most orders in one database transaction."`
	MaxAttempts int           `default:"5" help:"How often an order that cannot be decided is tried, before it fails."`
	Reconcile   time.Duration `default:"30s" help:"Pause between two comparisons of gate, queue and database, which put right what has drifted; 0 turns that off."`

	modeFlags  `embed:""`
	doorFlags  `embed:""`
	operations `embed:""`
	labFlags   `embed:""`

	Version kong.VersionFlag `env:"-" help:"Print the version and exit."`
}

// commands is the command line: the flags are those of every command.
type commands struct {
	flags
	Serve    struct{}    `cmd:"" default:"1" help:"Run the service: what seckill does without a command."`
	Verify   verifyCmd   `cmd:"" help:"Compare gate, queue and database, print the ledger of every voucher, and exit 3 where it does not balance."`
	Operator operatorCmd `cmd:"" help:"Operators' accounts."`
	Migrate  migrateCmd  `cmd:"" help:"Bring the database's schema up to date, or tell how it is."`
}

const description = `A flash-sale service over a queue of your choice.

Examples:
  seckill
      memory queue, SQLite and admission in this process: nothing to install
  seckill --queue redis-streams --redis redis://127.0.0.1:6379/0 --db postgres://shop@127.0.0.1/shop
      a durable queue, shared admission, and a database server
  seckill --queue 'amqp://guest:guest@127.0.0.1:5672/?queue=orders&type=quorum' --redis redis://127.0.0.1:6379/0
      settings of the queue go into its URL
  curl -H "Authorization: Bearer $TOKEN" -d '{"title":"Tea","stock":10,"payValue":100,"actualValue":500,
      "beginTime":"2026-01-01T00:00:00Z","endTime":"2030-01-01T00:00:00Z"}' http://127.0.0.1:8080/api/vouchers
      create a voucher, with the operator token
  seckill verify --queue redis-streams --redis redis://127.0.0.1:6379/0 --db postgres://shop@127.0.0.1/shop
      does every ledger balance, and has everybody an answer? exit 0 yes, 3 no
`

// Validate is called by kong.
func (f *flags) Validate() error {
	host, _, err := net.SplitHostPort(f.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen=%q: want HOST:PORT, such as 127.0.0.1:8080", f.Listen)
	case f.TrustUserHeader && !loopback(host):
		return fmt.Errorf("--trust-user-header lets anybody buy as anybody, so it works only while listening on loopback, not on %q", f.Listen)
	case f.Rescan < 0 || f.Rescan > 0 && f.Rescan < 100*time.Millisecond:
		return fmt.Errorf("--rescan=%v: want 0, or at least 100ms", f.Rescan)
	case f.Reconcile < 0 || f.Reconcile > 0 && f.Reconcile < time.Second:
		return fmt.Errorf("--reconcile=%v: want 0, or at least 1s", f.Reconcile)
	case f.WorkerID < -1 || f.WorkerID > sale.MaxWorker:
		return fmt.Errorf("--worker-id=%d: want 0 to %d", f.WorkerID, sale.MaxWorker)
	case f.Lanes < 1 || f.Lanes > 64:
		return fmt.Errorf("--lanes=%d: want 1 to 64", f.Lanes)
	case f.Batch < 1 || f.Batch > 1000:
		return fmt.Errorf("--batch=%d: want 1 to 1000", f.Batch)
	case f.MaxAttempts < 1:
		return fmt.Errorf("--max-attempts=%d: want at least 1", f.MaxAttempts)
	case f.Streams < 1:
		return fmt.Errorf("--streams=%d: want at least 1", f.Streams)
	case f.StartQueue != "" && !strings.Contains(f.StartQueue, "://"):
		return fmt.Errorf("--start-queue=%q: want a URL, with a name of its own for the queue, such as redis+pubsub://127.0.0.1:6379/0?queue=start", f.StartQueue)
	case f.StartQueue != "" && f.StartQueue == f.Queue:
		return errors.New("--start-queue is the queue of the orders: give it another name")
	case f.IDs == "redis" && f.Redis == "":
		return errors.New("--ids=redis counts in the Redis of admission: name it with --redis")
	case f.OperatorToken != "" && len(f.OperatorToken) < 16 && !f.Lab && !f.LabWorker:
		return errors.New("--operator-token is too short to keep anybody out: want at least 16 characters, such as those of openssl rand -hex 32")
	case f.TokenKey != "" && len(f.TokenKey) < 32:
		return errors.New("--token-key is too short: want at least 32 characters")
	}
	if err := f.checkMode(); err != nil {
		return err
	}
	if err := f.operations.validate(f.Queue, f.Redis); err != nil {
		return err
	}
	if err := f.labFlags.validate(f, host); err != nil {
		return err
	}
	return f.checkDoor(host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// usageError is a wrong command line.
type usageError struct{ error }

// silent keeps go-redis from writing to standard error by itself: whatever it
// has to say is also in the errors that we get.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the second one kills, as usual.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "seckill: "+oneLine(err))
		switch {
		case errors.As(err, new(usageError)):
			os.Exit(2)
		case errors.Is(err, errDrift), errors.Is(err, errPending):
			os.Exit(3)
		}
		os.Exit(1)
	}
}

// oneLine makes a sentence of an error of several lines, such as pgx has them.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}

// run is the program: it serves until ctx ends, and nil says that it stopped
// in order. The flags' environment variables are those of the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, command, err := parse(args, stdout, stderr)
	if c == nil || err != nil {
		return err
	}
	f := &c.flags
	if strings.HasPrefix(command, "operator add") {
		return c.Operator.Add.run(ctx, f, os.Stdin, stdout, stderr)
	}
	switch {
	case strings.HasPrefix(command, "operator remove"):
		return c.Operator.Remove.run(ctx, f, stdout)
	case strings.HasPrefix(command, "verify"):
		return c.Verify.run(ctx, f, stdout, stderr)
	case command == "migrate status":
		return migrateStatus(ctx, f, stdout)
	case strings.HasPrefix(command, "migrate"):
		return migrateUp(ctx, f, stdout)
	}
	if f.args = args; f.LabWorker {
		var stop context.CancelFunc
		ctx, stop = untilAbandoned(ctx, os.Stdin)
		defer stop()
	}
	s, err := open(ctx, f, stdout, stderr)
	if err != nil {
		return err
	}
	s.announce(stdout)
	if err := s.tellToken(stderr); err != nil {
		s.leave()
		s.close()
		return err
	}
	return s.serve(ctx)
}

// parse returns the command that was asked for; nil commands when the command line asked for help or the version.
func parse(args []string, stdout, stderr io.Writer) (*commands, string, error) {
	var c commands
	answered := false
	k, err := kong.New(&c, kong.Name("seckill"), kong.Description(description), kong.DefaultEnvars("SECKILL"),
		kong.Vars{"version": "seckill " + version()}, kong.Writers(stdout, stderr), kong.Exit(func(int) { answered = true }),
		kong.Help(help), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}))
	if err != nil {
		return nil, "", fmt.Errorf("command line: %w", err)
	}
	parsed, err := k.Parse(args)
	switch {
	case answered:
		return nil, "", nil
	case err != nil:
		return nil, "", usageError{err}
	}
	if err := errors.Join(checkVariables(k.Model.Flags, os.Environ()), checkLeftOut(inFile(k.Model))); err != nil {
		return nil, "", usageError{err}
	}
	if c.PrintConfig {
		return nil, "", printConfig(stdout, parsed)
	}
	return &c, parsed.Command(), nil
}

// built is the version that an image or a package was built as: the linker sets it,
// where the source has no repository to tell it.
var built string

func version() string {
	if built != "" {
		return built
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return info.Main.Version
}
