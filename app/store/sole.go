package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotSole: another process has what only one may have.
var ErrNotSole = errors.New("another process has it")

const (
	// soleLock is the key of the lock of who is alone on a PostgreSQL database.
	soleLock = 0x7365636b696c6c02
	// soleWait is how long a lock may stay with a process that has just died.
	soleWait  = time.Second
	soleCheck = 2 * time.Second
)

// Sole is the right of one process among all on this database. It ends with the
// process, however that ends.
type Sole struct {
	s    *Store
	file *os.File  // SQLite: the lock is on a file beside it
	conn *sql.Conn // PostgreSQL: the lock is the connection's
}

// Sole asks for the right, and is ErrNotSole when another process has it.
func (s *Store) Sole(ctx context.Context) (*Sole, error) {
	o := &Sole{s: s}
	deadline := time.Now().Add(soleWait)
	for {
		err := o.take(ctx)
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, ErrNotSole) || !time.Now().Before(deadline) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (o *Sole) take(ctx context.Context) error {
	if o.s.name == "sqlite" {
		return o.takeFile()
	}
	db, err := o.s.write.DB()
	if err != nil {
		return fmt.Errorf("ask to be alone: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("ask to be alone: %w", err)
	}
	var mine bool
	if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(soleLock)).Scan(&mine); err != nil {
		return errors.Join(fmt.Errorf("ask to be alone: %w", err), conn.Close())
	}
	if !mine {
		return errors.Join(ErrNotSole, conn.Close())
	}
	o.conn = conn
	return nil
}

func (o *Sole) takeFile() error {
	f, err := os.OpenFile(o.s.path+".sole", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("ask to be alone: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		o.file = f
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrNotSole
	default:
		err = fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return errors.Join(err, f.Close())
}

// Watch keeps the right until ctx ends: a server that restarts forgets it, and it
// is asked for again. The error is ErrNotSole when somebody else was faster.
func (o *Sole) Watch(ctx context.Context) error {
	if o.conn == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(soleCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if o.conn != nil && o.conn.PingContext(ctx) == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if o.conn != nil {
			_ = o.conn.Close() // it is broken
			o.conn = nil
		}
		if err := o.take(ctx); errors.Is(err, ErrNotSole) {
			return err
		}
	}
}

// Close gives the right back. It must not be called while Watch runs.
func (o *Sole) Close() error {
	if o == nil {
		return nil
	}
	if o.file != nil {
		return o.file.Close()
	}
	if o.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := o.conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(soleLock))
	return errors.Join(err, o.conn.Close())
}
