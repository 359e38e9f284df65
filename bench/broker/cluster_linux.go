package broker

import (
	"context"
	"errors"
	"fmt"
)

// newMember makes one node of a cluster under a supervisor of its own, and starts
// nothing that stays.
func newMember(ctx context.Context, k kind, at place, makePlan func(layout) (plan, error)) (*member, error) {
	k.ports = 0
	n, err := planned(ctx, k, at.conf, at.content, func(l layout) (plan, error) {
		l.ports = at.ports
		return makePlan(l)
	})
	if err != nil {
		return nil, err
	}
	n.ports = at.ports
	m := &member{host: n, dir: n.sup.dir, supervisor: n.sup.cmd.Process.Pid}
	if len(n.plan.serve) > 0 {
		m.env = n.plan.serve[0].Env
	}
	if at.alone {
		if err := n.sup.ask(ctx, opAlone); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoNetwork, err), n.stop())
		}
	}
	return m, nil
}
