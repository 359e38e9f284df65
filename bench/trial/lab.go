package trial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"queuelab/bench/broker"
	"queuelab/compose"
)

// StampsDir is the directory of stamps beside a result.
const StampsDir = "stamps"

// Lab is what the trials of a run share: brokers, a scratch directory for
// ledgers, and the number of the next trial.
type Lab struct {
	// External brokers by kind, given by the user; the others are started.
	External map[string]string
	// Seckill is the service's program.
	Seckill string
	// Mutant spoils every consumer of a crash trial on purpose; see node.Mutants.
	Mutant string
	// Stamps is the directory for the stamps of every message of a cell's first
	// latency trial; "": they are not kept.
	Stamps string
	// Evidence is the directory for the ledgers of the trials of a campaign; "":
	// they are not kept.
	Evidence string

	dir     string
	name    string // begins the names of all that the run makes in brokers, which may be the user's
	trials  atomic.Uint32
	mu      sync.Mutex
	brokers map[string]*brokerSlot

	databases   []string // made in a PostgreSQL that was given by URL
	effectsOnce sync.Once
	effectsURL  string
	effectsErr  error
}

type brokerSlot struct {
	once sync.Once
	b    *broker.Broker
	err  error
}

// NewLab makes a lab. Ledgers go to shared memory where there is some: they
// must survive a killed process, not a power cut, and their writeback must not
// disturb what is measured.
func NewLab(external map[string]string, seckill string) (*Lab, error) {
	parent := ""
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		parent = "/dev/shm"
	}
	sweep(parent)
	sweep("")
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("queuelab-%d-", os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("make a directory for ledgers: %w", err)
	}
	name := "queuelab_" + strings.ToLower(rand.Text()[:10])
	return &Lab{External: external, Seckill: seckill, dir: dir, name: name, brokers: map[string]*brokerSlot{}}, nil
}

// sweep removes what labs left behind whose process was killed.
func sweep(parent string) {
	if parent == "" {
		parent = os.TempDir()
	}
	dirs, _ := filepath.Glob(filepath.Join(parent, "queuelab-*-*")) // the pattern is well-formed
	for _, d := range dirs {
		var pid int
		if n, _ := fmt.Sscanf(filepath.Base(d), "queuelab-%d-", &pid); n == 1 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.RemoveAll(d)
		}
	}
}

// Close stops every broker that the lab started and removes its directory.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{os.RemoveAll(l.dir), l.dropDatabases()}
	for _, s := range l.brokers {
		if s.b != nil && !s.b.External() {
			errs = append(errs, s.b.Stop())
		}
	}
	return errors.Join(errs...)
}

// start returns the one broker of that kind, settings file and purpose.
func (l *Lab) start(ctx context.Context, kind, conf, purpose string) (*broker.Broker, error) {
	l.mu.Lock()
	name := kind + "/" + conf + "/" + purpose
	slot, ok := l.brokers[name]
	if !ok {
		slot = &brokerSlot{}
		l.brokers[name] = slot
	}
	l.mu.Unlock()
	slot.once.Do(func() {
		if raw, ok := l.External[kind]; ok && purpose == "" {
			slot.b, slot.err = broker.External(kind, raw)
			return
		}
		slot.b, slot.err = broker.Start(ctx, broker.Options{Kind: kind, Setting: conf, Storage: purpose == "storage", Network: purpose == "network"})
	})
	return slot.b, slot.err
}

// admission is the Redis of the sale's gate: one of our own where one can be
// had, so that a Redis that was given by URL is asked for its queues alone.
func (l *Lab) admission(ctx context.Context) (*broker.Broker, error) {
	b, err := l.start(ctx, "redis", "aof-everysec", "admission")
	if errors.Is(err, broker.ErrUnavailable) && l.External["redis"] != "" {
		return l.start(ctx, "redis", "", "")
	}
	return b, err
}

// CheckExternal asks each broker that was given by URL, and that the settings
// need, whether it serves, so that a wrong URL or password is one sentence
// before anything is measured.
func (l *Lab) CheckExternal(ctx context.Context, settings []Setting) error {
	needed := map[string]bool{}
	for _, s := range settings {
		needed[s.Broker] = true
		needed["postgres"] = needed["postgres"] || s.Broker != ""
	}
	for _, kind := range append(broker.Kinds(), broker.Clusters()...) {
		if l.External[kind] == "" || !needed[kind] {
			continue
		}
		b, err := broker.External(kind, l.External[kind])
		if err == nil {
			err = b.Ready(ctx)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", kind, err)
		}
	}
	return nil
}

// unfit says in what a broker that was given by URL is not what the setting is
// about: the same commands on another durability, or on fewer nodes, are another
// setting. It is "" where it fits, as far as the broker tells.
func unfit(s Setting, effective map[string]string) (string, error) {
	wanted := map[string]string{}
	switch s.Broker {
	case "kafka-3":
		if n, err := strconv.Atoi(effective["brokers"]); err == nil && n < 3 {
			return fmt.Sprintf("the Kafka that was given by URL has %d of the three brokers that this setting is about", n), nil
		}
		return "", nil
	case "redis-sentinel":
		wanted["min-replicas-to-write"] = "0"
	case "redis":
		if s.Backend == "redis-pubsub" { // it stores nothing
			return "", nil
		}
	default:
		return "", nil
	}
	_, conf, err := compose.SettingsFile("redis", s.Conf)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(conf)) {
		if name, want, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			wanted[name] = want
		}
	}
	for _, name := range []string{"appendonly", "appendfsync", "min-replicas-to-write"} {
		if got, want := effective[name], wanted[name]; want != "" && got != want {
			return fmt.Sprintf("the Redis that was given by URL has %s %s, and this setting is about %s %s", name, got, name, want), nil
		}
	}
	return "", nil
}

// broker returns the setting's broker; nil for the memory queue.
func (l *Lab) broker(ctx context.Context, s Setting) (*broker.Broker, error) {
	if s.Broker == "" {
		return nil, nil
	}
	return l.start(ctx, s.Broker, s.Conf, "")
}

// brokerOf returns the broker of a spec, which may be one that is only for its
// fault.
func (l *Lab) brokerOf(ctx context.Context, s Spec) (*broker.Broker, error) {
	if s.Setting.Broker == "" {
		return nil, nil
	}
	return l.start(ctx, s.Setting.Broker, s.Setting.Conf, s.purpose())
}

// database makes a database of the run's own and returns its URL.
func (l *Lab) database(ctx context.Context, name string) (string, error) {
	name = l.name + "_" + name
	pg, err := l.start(ctx, "postgres", "", "")
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, pg.URL())
	if err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	u, err := url.Parse(pg.URL())
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	if pg.External() {
		l.mu.Lock()
		l.databases = append(l.databases, name)
		l.mu.Unlock()
	}
	return u.String(), nil
}

// dropDatabases leaves a PostgreSQL that was given by URL as it was found.
func (l *Lab) dropDatabases() error {
	if len(l.databases) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	names := l.databases
	l.databases = nil
	conn, err := pgx.Connect(ctx, l.External["postgres"])
	if err != nil {
		return fmt.Errorf("drop the databases %s: %w", strings.Join(names, ", "), err)
	}
	defer conn.Close(ctx)
	var errs []error
	for _, name := range names {
		if _, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			errs = append(errs, fmt.Errorf("drop the database %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Lab) nextTrial() uint32 { return l.trials.Add(1) }

func (l *Lab) ledgerPath(trial uint32, process uint16) string {
	return filepath.Join(l.dir, fmt.Sprintf("trial-%d-process-%d.ledger", trial, process))
}

func (l *Lab) ledgerPattern(trial uint32) string {
	return filepath.Join(l.dir, fmt.Sprintf("trial-%d-process-*", trial))
}

// removeLedgers frees what a judged trial no longer needs.
func (l *Lab) removeLedgers(trial uint32) {
	paths, _ := filepath.Glob(l.ledgerPattern(trial)) // the pattern is well-formed
	for _, p := range paths {
		os.RemoveAll(p)
	}
}

// queueURL is the URL of a queue of its own for a trial. extra are parameters
// of this trial, such as a lease short enough to wait for.
func (l *Lab) queueURL(b *broker.Broker, s Setting, name string, extra ...string) string {
	var query []string
	for _, q := range append([]string{s.Query}, extra...) {
		if q != "" {
			query = append(query, q)
		}
	}
	q := strings.Join(query, "&")
	name = l.name + "_" + name
	if b == nil {
		return "memory://" + name + "?" + q
	}
	return b.QueueURL(scheme(s.Backend), name, q)
}
