package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// native is a broker under a supervisor on this machine.
type native struct {
	sup   *client
	ports []int
	plan  plan
	ends  chan string
	spent highest
}

// newNative prepares a broker of its own, in a directory of its own, and starts
// nothing that stays.
func newNative(ctx context.Context, k kind, setting string) (*native, error) {
	name, content, err := k.settingsFile(setting)
	if err != nil {
		return nil, err
	}
	if err := k.available(); err != nil {
		return nil, err
	}
	if k.once != nil {
		k.once(ctx, k)
	}
	return planned(ctx, k, name, content, k.plan)
}

// planned makes a broker ready to be launched by the plan it is given.
func planned(ctx context.Context, k kind, name string, content []byte, makePlan func(layout) (plan, error)) (_ *native, err error) {
	n := &native{ends: make(chan string, 8)}
	n.sup, err = startSupervisor(ctx, k.name, func(how string) {
		select {
		case n.ends <- how:
		default: // nobody waits, and an earlier end is there to be read
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	if n.ports, err = freePorts(k.ports); err != nil {
		return nil, err
	}
	conf := filepath.Join(n.sup.dir, filepath.Base(name))
	if err := os.WriteFile(conf, content, 0o644); err != nil {
		return nil, err
	}
	data := n.sup.dir
	if k.storage {
		data = filepath.Join(data, diskName)
	}
	n.plan, err = makePlan(layout{dir: n.sup.dir, data: data, conf: conf, content: content, ports: n.ports})
	if err != nil {
		return nil, err
	}
	if u := n.plan.owner; u != nil {
		if err := os.Chown(n.sup.dir, int(u.UID), int(u.GID)); err != nil {
			return nil, err
		}
	}
	if k.storage {
		if _, err := n.sup.exchange(ctx, request{Op: opDisk, User: n.plan.owner}); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoStorage, err)
		}
	}
	for _, c := range n.plan.prepare {
		if err := n.sup.ask(ctx, opRun, c); err != nil {
			return nil, fmt.Errorf("prepare with %s: %w; the last lines of its log:\n%s", filepath.Base(c.Argv[0]), err, lastLines(n.log(ctx), 8))
		}
	}
	return n, nil
}

func (n *native) port() int           { return n.ports[0] }
func (n *native) identity() string    { return n.plan.identity }
func (n *native) died() <-chan string { return n.ends }
func (n *native) stop() error         { return n.sup.close() }

func (n *native) launch(ctx context.Context) error {
	for len(n.ends) > 0 {
		<-n.ends
	}
	return n.sup.ask(ctx, opServe, n.plan.serve...)
}

func (n *native) kill(ctx context.Context) error   { return n.sup.ask(ctx, opKill) }
func (n *native) pause(ctx context.Context) error  { return n.sup.ask(ctx, opPause) }
func (n *native) resume(ctx context.Context) error { return n.sup.ask(ctx, opResume) }
func (n *native) log(context.Context) string       { return readLogs(n.sup.dir) }

func (n *native) terminate(ctx context.Context) error {
	_, err := n.sup.exchange(ctx, request{Op: opEnd, Signal: n.plan.ends})
	return err
}

func (n *native) settings(ctx context.Context) map[string]string {
	if n.plan.settings == nil {
		return nil
	}
	return n.plan.settings(ctx)
}
