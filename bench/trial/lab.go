package trial

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5"

	"queuelab/bench/broker"
)

// Lab is what the trials of a run share: brokers, a scratch directory for
// ledgers, and the number of the next trial.
type Lab struct {
	// External brokers by kind, given by the user; the others are started.
	External map[string]string
	// Seckill is the service's program.
	Seckill string
	// Mutant spoils every consumer of a crash trial on purpose; see Mutants.
	Mutant string

	dir     string
	trials  atomic.Uint32
	mu      sync.Mutex
	brokers map[string]*brokerSlot
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
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("queuelab-%d-", os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("make a directory for ledgers: %w", err)
	}
	return &Lab{External: external, Seckill: seckill, dir: dir, brokers: map[string]*brokerSlot{}}, nil
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
	errs := []error{os.RemoveAll(l.dir)}
	for _, s := range l.brokers {
		if s.b != nil {
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
		if raw, ok := l.External[kind]; ok {
			slot.b, slot.err = broker.External(kind, raw)
			return
		}
		slot.b, slot.err = broker.Start(ctx, broker.Options{Kind: kind, Setting: conf})
	})
	return slot.b, slot.err
}

// broker returns the setting's broker; nil for the memory queue.
func (l *Lab) broker(ctx context.Context, s Setting) (*broker.Broker, error) {
	if s.Broker == "" {
		return nil, nil
	}
	return l.start(ctx, s.Broker, s.Conf, "")
}

// database makes a database of its own and returns its URL.
func (l *Lab) database(ctx context.Context, name string) (string, error) {
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
	return u.String(), nil
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
	if b == nil {
		return "memory://" + name + "?" + q
	}
	return b.QueueURL(scheme(s.Backend), name, q)
}
