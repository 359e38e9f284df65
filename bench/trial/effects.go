package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"queuelab/bench/broker"
	"queuelab/bench/fault"
)

// effectsDatabase is the database for the effects of a crash trial: PostgreSQL,
// or SQLite for the memory queue, which needs nothing installed and is no
// broker. A fault that strikes the database has one of its own.
func (l *Lab) effectsDatabase(ctx context.Context, s Spec) (url string, pg *broker.Broker, err error) {
	if s.Setting.Broker == "" {
		return "sqlite:" + filepath.Join(l.dir, "effects.db"), nil, nil
	}
	purpose := ""
	if f, _ := fault.Lookup(s.Fault); f.OwnDatabase {
		purpose = "effects of " + s.lane()
	}
	pg, err = l.start(ctx, "postgres", "", purpose)
	if errors.Is(err, broker.ErrUnavailable) {
		return "", nil, fmt.Errorf("effects are rows in PostgreSQL: %w", err)
	}
	if err != nil {
		return "", nil, err
	}
	if !pg.External() {
		return pg.URL(), pg, nil
	}
	l.effectsOnce.Do(func() { l.effectsURL, l.effectsErr = l.database(ctx, "effects") })
	return l.effectsURL, pg, l.effectsErr
}
