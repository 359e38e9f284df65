package console

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"queuelab/app/fleet"
	"queuelab/app/loop"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/queue"
)

const (
	// pace is how old a picture may be; one that took long to take may be ten
	// times as old as that took, so that looking at a sale never slows it.
	pace = 900 * time.Millisecond
	// readTimeout bounds how long one takes, and partTimeout how long one of those
	// takes that may not answer: the rest is to be seen all the same.
	readTimeout = 4 * time.Second
	partTimeout = readTimeout / 4
	// shown is how many vouchers are in it, and keepAfterEnd how long after its end
	// one is.
	shown        = 50
	keepAfterEnd = 7 * 24 * time.Hour
)

// Store is what a picture needs of the database.
type Store interface {
	sale.Ledgers
	Vouchers(ctx context.Context, endAfter time.Time, max int) ([]sale.Voucher, error)
	// Tallies sums what instances counted; see sale.TallyStore.
	Tallies(ctx context.Context, vouchers ...sale.ID) (map[sale.ID]sale.Tally, error)
	CountLetters(ctx context.Context) (map[sale.LetterState]int64, error)
	Instances(ctx context.Context) ([]fleet.Instance, error)
}

// Reader takes pictures; its fields must not change once it is used.
type Reader struct {
	Store     Store
	Gate      reconcile.Gate   // nil: it cannot be read
	Backlog   queue.Backlogger // nil: the queue cannot tell
	Queue     string           // without secrets
	QueueUsed bool             // false: this mode sells without one
	Stockless bool             // this mode has the gate hold no stock
	Instance  int
	Lab       bool
	Log       *slog.Logger

	mu      sync.Mutex
	last    *State
	until   time.Time
	outages map[string]*loop.Outage // by part
}

// State returns a picture that is about a second old at most. All who ask
// meanwhile share one, which does not end with any of them.
func (r *Reader) State() *State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began := time.Now(); !began.Before(r.until) {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		s, errs := r.take(ctx)
		r.tell(errs)
		r.last = s
		r.until = time.Now().Add(max(pace, 10*time.Since(began)))
	}
	return r.last
}

// tell writes down which parts began to fail, and which answer again.
func (r *Reader) tell(errs map[string]error) {
	if r.outages == nil {
		r.outages = map[string]*loop.Outage{}
	}
	for part := range errs {
		if r.outages[part] == nil {
			r.outages[part] = &loop.Outage{Tell: loop.Say(r.Log, "the console does not see everything", "part", part)}
		}
	}
	for part, o := range r.outages {
		o.Note(errs[part])
	}
}

// take never fails: what does not answer is named in the picture, and errs says
// why.
func (r *Reader) take(ctx context.Context) (_ *State, errs map[string]error) {
	errs = map[string]error{}
	s := &State{At: time.Now().UTC(), Instance: r.Instance, Lab: r.Lab, Stockless: r.Stockless, Queue: Queue{Name: r.Queue, Used: r.QueueUsed, Tells: r.Backlog != nil}}
	failed := func(part string, err error) bool {
		if err == nil {
			return false
		}
		if errs[part] == nil {
			s.Failed, errs[part] = append(s.Failed, part), err
		}
		return true
	}
	if b, err := r.backlog(ctx); b != nil && !failed("queue", err) {
		s.Queue.Depth = reconcile.ReportQueue(b)
	}
	if is, err := r.Store.Instances(ctx); !failed("database", err) {
		s.Instances = instancesOf(is)
	}
	if letters, err := r.Store.CountLetters(ctx); !failed("database", err) {
		s.Letters = letters
	}
	vs, err := r.Store.Vouchers(ctx, s.At.Add(-keepAfterEnd), shown+1)
	if failed("database", err) {
		return done(s), errs
	}
	if s.More = len(vs) > shown; s.More {
		vs = vs[:shown]
	}
	ids := make([]sale.ID, len(vs))
	for i, v := range vs {
		ids[i] = v.ID
	}
	tallies, err := r.Store.Tallies(ctx, ids...)
	counted := !failed("database", err)
	accounts, err := r.accounts(ctx, ids, failed)
	if failed("database", err) {
		return done(s), errs
	}
	s.Vouchers = make([]Voucher, len(accounts))
	for i, a := range accounts {
		var t *sale.Tally
		if counted {
			n := tallies[a.ID]
			t = &n
		}
		s.Vouchers[i] = voucherOf(a, funnel(a, t, r.QueueUsed))
	}
	s.Total = sum(s.Vouchers)
	r.waiting(ctx, s, accounts, failed)
	return done(s), errs
}

// done makes lists of nothing empty ones, where nothing is what was read.
func done(s *State) *State {
	if s.Failed == nil {
		s.Failed = []string{}
	}
	return s
}

func (r *Reader) backlog(ctx context.Context) (*queue.Backlog, error) {
	if r.Backlog == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	b, err := r.Backlog.Backlog(ctx)
	return &b, err
}

// accounts reads the ledgers of the vouchers: the database's part alone where the
// gate does not answer.
func (r *Reader) accounts(ctx context.Context, ids []sale.ID, failed func(string, error) bool) ([]reconcile.Account, error) {
	read := func(ctx context.Context, gate reconcile.Gate) ([]reconcile.Account, error) {
		look := &reconcile.Reconciler{Gate: gate, Store: r.Store, Log: r.Log,
			Vouchers: func(context.Context, time.Time) ([]sale.ID, error) { return ids, nil }}
		l, err := look.Ledger(ctx, shown)
		if err != nil {
			return nil, err
		}
		return l.Accounts, nil
	}
	if r.Gate == nil || r.Stockless {
		return read(ctx, nil)
	}
	gctx, cancel := context.WithTimeout(ctx, 2*partTimeout)
	defer cancel()
	accounts, err := read(gctx, r.Gate)
	if err == nil {
		return accounts, nil
	}
	accounts, alone := read(ctx, nil)
	if alone == nil {
		failed("gate", err)
	}
	return accounts, alone
}

// waiting counts the orders that wait and looks for the one that does longest.
func (r *Reader) waiting(ctx context.Context, s *State, accounts []reconcile.Account, failed func(string, error) bool) {
	if r.Gate == nil || slices.Contains(s.Failed, "gate") {
		return
	}
	var n int64
	var oldest Age
	for _, a := range accounts {
		if a.Unreadable != "" {
			continue // its account says so
		}
		book := a.Gate
		if book == nil {
			b, err := r.Gate.Book(ctx, a.ID)
			if failed("gate", err) {
				return
			}
			book = &b
		}
		if n += book.Marks; book.Marks == 0 {
			continue
		}
		age, more, err := sale.OldestMark(ctx, r.Gate, a.ID)
		if failed("gate", err) {
			return
		}
		oldest = Age{max(oldest.Millis, age.Milliseconds()), oldest.AtLeast || more}
	}
	if s.InFlight = &n; n > 0 {
		s.Oldest = &oldest
	}
}
