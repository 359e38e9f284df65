// Package live is the live lab: a server for one page on which people see real
// queues at work, and strike them. A show is a scenario on up to six settings.
// Each setting is a lane: a real broker, real processes that publish and consume,
// a database, and a ledger for each process. All that is shown is read from the
// ledgers while they are written, and from the brokers as they answer. What is
// not known is null.
//
// A lost message is told as lost on evidence only. While the show runs that is:
// the queue said that nobody heard it; it was in the hand of a process that died,
// by a queue that promises at most once, or in a queue that lived in it; or the
// broker, asked later, held nothing, and for a second neither did any living
// process. The verdict at the end is ledger.Account's, after the queue was read
// out.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/trial"
)

// The bounds of a show.
const (
	maxLanes     = 6
	maxConsumers = 4
	maxSpeed     = 5000
	maxSeconds   = 600
	maxEvents    = 20_000   // records that are kept one by one; the rest is counted
	maxMessages  = 200_000  // sent by one lane
	maxHistory   = 64 << 20 // bytes of ticks
)

// ErrBusy means that a show runs already.
var ErrBusy = errors.New("a show runs already: stop it before another one begins")

// Options say what a server offers.
type Options struct {
	Settings []trial.Setting
	External map[string]string // URLs of brokers that somebody else runs, by kind
	Version  string
	// Abandon is how long a show goes on that nobody watches; 0: two minutes.
	Abandon time.Duration
	Log     io.Writer // progress for people; may be nil
}

// Server runs shows, one at a time.
type Server struct {
	options   Options
	pool      *pool
	dir       string // for ledgers
	shows     atomic.Uint32
	trials    atomic.Uint32
	available sync.Map // setting: why it cannot be had, "" where it can

	closing chan struct{} // closed once the server is to end

	mu      sync.Mutex
	show    *show // the current one, or the last
	closed  bool
	claimed map[string]string // setting: its guarantee, once it was opened
}

// New returns a server without brokers: they are started with the first show
// that needs them, and kept until Close.
func New(o Options) (*Server, error) {
	if o.Abandon == 0 {
		o.Abandon = 2 * time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	parent := "" // shared memory where there is some: ledgers must not wait for a disk
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		parent = "/dev/shm"
	}
	// The name is that of a lab's directory, so that the next lab sweeps what a
	// killed one left.
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("queuelab-%d-live-", os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("make a directory for ledgers: %w", err)
	}
	return &Server{options: o, pool: newPool(o.External, o.Log), dir: dir, closing: make(chan struct{}), claimed: map[string]string{}}, nil
}

// Close ends the show at once, stops every broker and removes the ledgers.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	current := s.show
	s.mu.Unlock()
	if current != nil {
		current.end(whyStopped, true)
		<-current.done
		current.close()
	}
	return errors.Join(s.pool.close(), os.RemoveAll(s.dir))
}

// begin starts a show, unless one runs.
func (s *Server) begin(sc scenario, settings []trial.Setting, r request) (*show, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the lab is being closed")
	}
	if s.show != nil {
		select {
		case <-s.show.done:
			s.show.close()
		default:
			return nil, ErrBusy
		}
	}
	s.show = newShow(s, sc, settings, r)
	go s.show.run()
	return s.show, nil
}

func (s *Server) current() *show {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.show
}

// why says why a setting cannot be had; "" where it can. Brokers that are not
// installed do not appear while the server runs, so that each is asked once.
func (s *Server) why(ctx context.Context, set trial.Setting) string {
	if set.Broker == "" || s.options.External[set.Broker] != "" {
		return ""
	}
	if why, ok := s.available.Load(set.Broker); ok {
		return why.(string)
	}
	why := ""
	if _, err := broker.Available(ctx, set.Broker); err != nil {
		why = err.Error()
	}
	if ctx.Err() == nil {
		s.available.Store(set.Broker, why)
	}
	return why
}

func (s *Server) guarantee(setting string) *string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.claimed[setting]; ok {
		return &g
	}
	return nil
}
