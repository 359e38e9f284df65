package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// labWorkers is how many workers a lab has: one may be killed while the other
	// goes on.
	labWorkers = 2
	// labPause is how long a lab waits before it starts another worker.
	labPause = time.Second
	// labStop is how long its workers may take to stop in order.
	labStop = workerStop + 5*time.Second
)

// labFlags are for watching what a sale makes of a process that dies.
type labFlags struct {
	Lab bool `help:"Decide orders in worker processes of their own, which the operator's page can kill. Only while listening on loopback, with --redis and a queue that processes share."`
	// LabWorker is what a lab starts: it ends with the process that holds the other
	// end of its standard input.
	LabWorker bool `hidden:"" env:"-"`

	args []string // of this process
}

func (l *labFlags) validate(f *flags, host string) error {
	switch {
	case !l.Lab:
		return nil
	case !loopback(host):
		return fmt.Errorf("--lab lets the operator kill processes, so it works only while listening on loopback, not on %q", f.Listen)
	case f.Role != roleAll:
		return errors.New("--lab takes clicks itself and starts workers of its own: leave --role out")
	case f.Mode == modeSync:
		return errors.New("--lab: --mode=sync has no workers that could be killed")
	case f.Redis == "" || inProcess(f.Queue):
		return errors.New("--lab has its workers in processes of their own: give them admission and a queue that are shared, such as --redis redis://127.0.0.1:6379/0 --queue redis-streams")
	}
	return nil
}

// lab keeps workers running, each in a process of its own.
type lab struct {
	args   []string
	stderr io.Writer
	log    *slog.Logger

	mu      sync.Mutex
	running map[int]*os.Process // by their place
}

// newLab runs the workers with the flags of this process, but for what two of
// them must not share.
func newLab(f *flags, stderr io.Writer, log *slog.Logger) *lab {
	args := append(append([]string{}, f.args...), "--lab=false", "--lab-worker", "--role=worker", "--listen=127.0.0.1:0", "--ops-listen=", "--worker-id=-1", "--instance=")
	return &lab{args: args, stderr: stderr, log: log, running: map[int]*os.Process{}}
}

// Run runs the workers until ctx ends, and then has them stop in order.
func (l *lab) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for place := range labWorkers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := l.work(ctx, place); err != nil && ctx.Err() == nil {
					l.log.Warn("a worker of the lab ended, and another one is started", "error", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(labPause):
				}
			}
		})
	}
}

// work runs one worker to its end.
func (l *lab) work(ctx context.Context, place int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	cmd := exec.Command(self, l.args...)
	cmd.Stderr = l.stderr
	cmd.WaitDelay = time.Second
	held, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	l.set(place, cmd.Process)
	ended := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(ended)
	wg.Go(func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		_ = held.Close() // the worker stops
		select {
		case <-ended:
		case <-time.After(labStop):
			_ = cmd.Process.Kill()
		}
	})
	err = cmd.Wait()
	l.set(place, nil)
	return err
}

func (l *lab) set(place int, p *os.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[place] = p; p == nil {
		delete(l.running, place)
	}
}

// Kill ends a worker with SIGKILL: nothing of it gets to say goodbye.
func (l *lab) Kill() (pid int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.running {
		if err := p.Kill(); err != nil {
			return 0, fmt.Errorf("kill worker %d: %w", p.Pid, err)
		}
		return p.Pid, nil
	}
	return 0, errors.New("no worker is running at the moment: one is started soon")
}

// untilAbandoned ends when whoever started this process is gone.
func untilAbandoned(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
	}()
	return ctx, cancel
}
