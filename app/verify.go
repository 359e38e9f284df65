package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/web"
	"queuelab/backends"
	"queuelab/queue"
)

// errDrift is exit 3: everything was looked at, and it does not balance.
var errDrift = errors.New("the sale does not balance")

// verifyCmd is seckill verify.
type verifyCmd struct {
	Vouchers []string      `arg:"" optional:"" name:"voucher" help:"Ids of the vouchers to look at. Default: all that ended less than 7 days ago, or not yet."`
	Wait     time.Duration `env:"-" default:"30s" help:"How long an order may be on its way: what differs for so long is drift. Longer than the service's --rescan."`
	Repair   bool          `env:"-" help:"Put right what can be, and look again. Safe while the service sells."`
	JSON     bool          `env:"-" name:"json" help:"Print JSON."`
}

// Help is what kong shows beneath the flags.
func (verifyCmd) Help() string {
	return `Give it the --db, --redis, --queue and --mode of the service. It ends as soon as everything agrees and nobody waits, so a quiet sale takes a moment, and a sale that goes on may take all of --wait.

The ledger of a voucher is balanced when stock = left + held in the database, units = left + buyers at the gate, every buyer of the gate has an order or one on its way, and every order that has a unit has it at the gate too.

With --mode=queue-first the gate holds buyers and no stock: there the first and the last two hold. With --mode=sync there is no gate, and the database is all.

Without --redis the gate is in the service's process and cannot be seen: then only the database is looked at. A running service tells the rest itself: GET /api/operator/ledger and /api/operator/drift.

Exit: 0 balanced, 1 it could not look, 2 wrong command line, 3 drift.

Examples:

  seckill verify --db sqlite:seckill.db

  seckill verify --db postgres://shop@127.0.0.1/shop --redis redis://127.0.0.1:6379/0 --queue redis-streams --wait 10s

  seckill verify --json --repair 7391234567890123`
}

// Validate is called by kong.
func (v *verifyCmd) Validate() error {
	if v.Wait < 0 {
		return fmt.Errorf("--wait=%v: want 0 or more", v.Wait)
	}
	for _, id := range v.Vouchers {
		if _, err := sale.ParseID(id); err != nil {
			return fmt.Errorf("voucher: %w", err)
		}
	}
	return nil
}

func (v *verifyCmd) run(ctx context.Context, f *flags, stdout, stderr io.Writer) (err error) {
	s := &service{f: f, log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	defer s.close()
	if err := s.openToLook(ctx); err != nil {
		return err
	}
	r, stop, err := v.reconciler(s)
	if err != nil {
		return err
	}
	defer stop()
	st, err := r.Verify(ctx)
	if err != nil {
		return err
	}
	if err := v.print(stdout, st, f.Mode); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if len(st.Accounts) == 0 {
		fmt.Fprintf(stderr, "careful: nothing was compared: database %s has no voucher to look at; is it the service's?\n", store.Redact(f.DB))
	}
	if len(st.Drift) > 0 {
		return errDrift
	}
	return nil
}

// known refuses a queue that no instance had: opening it would make it, and who
// only looks makes nothing. Hosts are not compared, as one may look from elsewhere.
func (s *service) known(ctx context.Context) error {
	all, err := s.store.Terms(ctx)
	if err != nil {
		return err
	}
	wanted, had := nameOf(place(fullURL(s.queueURL))), []string{}
	for _, t := range all {
		name := nameOf(t["queue"])
		if name == wanted {
			return nil
		}
		if name != "" && !slices.Contains(had, name) {
			had = append(had, name)
		}
	}
	if len(had) == 0 {
		return nil // nobody told
	}
	slices.Sort(had)
	return fmt.Errorf("--queue=%s: no instance of this database has had it, so it is not looked at and not made; they had %s", store.Redact(s.f.Queue), strings.Join(had, ", "))
}

// nameOf is a place without its hosts; empty: none.
func nameOf(place string) string {
	u, err := url.Parse(place)
	if err != nil || u.Scheme == "" {
		return ""
	}
	u.Host = ""
	return u.String()
}

// openToLook opens what several processes can see, and takes no part in the sale.
func (s *service) openToLook(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.store, err = openStore(ctx, s.f, false); err != nil {
		return err
	}
	if s.f.Queue != "" {
		if s.queueURL, err = queueURL(s.f.Queue, s.f.Redis); err != nil {
			return err
		}
		if err := s.known(ctx); err != nil {
			return err
		}
		if s.queue, err = backends.Open(ctx, s.queueURL); err != nil {
			return awayQueue(err, s.f.Queue)
		}
		if s.queue.Capabilities().Shared {
			s.backlog, _ = s.queue.(queue.Backlogger)
		}
	}
	if s.f.Redis == "" || s.f.Mode == modeSync { // there it keeps buyers' locks, and no buyers
		return nil
	}
	if s.gate, err = openGate(ctx, s.f.Redis, s.store); err != nil {
		return err
	}
	if err := s.stockless(); err != nil || s.queue == nil {
		return err
	}
	return s.enqueueInScript(ctx) // it decides the names of the gate's keys
}

// reconciler looks at what the command line says; stop ends what it started.
func (v *verifyCmd) reconciler(s *service) (r *reconcile.Reconciler, stop func(), err error) {
	r = &reconcile.Reconciler{Store: s.store, Backlog: s.backlog, Log: s.log, Age: v.Wait, Repair: v.Repair, Strict: true}
	r.Vouchers = func(ctx context.Context, asOf time.Time) ([]sale.ID, error) {
		vs, err := sale.AllVouchers(ctx, s.store, asOf.Add(-7*24*time.Hour), math.MaxInt64)
		ids := make([]sale.ID, len(vs))
		for i, v := range vs {
			ids[i] = v.ID
		}
		return ids, err
	}
	if len(v.Vouchers) > 0 {
		ids := make([]sale.ID, len(v.Vouchers))
		for i, id := range v.Vouchers {
			if ids[i], err = sale.ParseID(id); err != nil {
				return nil, nil, err
			}
		}
		r.Vouchers = func(context.Context, time.Time) ([]sale.ID, error) { return ids, nil }
	}
	stop = func() {}
	if s.gate == nil {
		return r, stop, nil
	}
	gate, ok := s.gate.(reconcile.Gate)
	if !ok {
		return nil, nil, errors.New("this gate cannot be compared with the database")
	}
	r.Gate = gate
	if v.Repair {
		return r, v.tools(s, r), nil
	}
	return r, stop, nil
}

// tools are what repairs need beside the gate, opened when they are needed.
func (v *verifyCmd) tools(s *service, r *reconcile.Reconciler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	loader := sale.NewLoader(s.gate, s.store, s.backlog, drainWait, s.log)
	load := sync.OnceFunc(func() { wg.Go(func() { loader.Run(ctx) }) })
	r.Load = func(ctx context.Context, id sale.ID) error {
		offer, err := s.store.Voucher(ctx, id)
		if err == nil {
			load()
			loader.Want(offer)
		}
		return err
	}
	if s.backlog != nil || s.queue != nil && s.queue.Capabilities().Shared {
		outbox := &sale.Outbox{Timeout: publishTimeout, Observer: web.NewMetrics(nil)}
		r.Publish = func(ctx context.Context, order sale.Reservation) (err error) {
			if s.publisher == nil {
				if s.publisher, err = s.queue.Publisher(ctx); err != nil {
					return fmt.Errorf("queue: %w", err)
				}
				outbox.Publisher = s.publisher
			}
			_, err = outbox.Send(ctx, order, "verify")
			return err
		}
	}
	return func() { cancel(); wg.Wait() }
}

func (v *verifyCmd) print(w io.Writer, st reconcile.State, mode string) error {
	ok := len(st.Drift) == 0
	if v.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(map[string]any{"balanced": ok, "vouchers": reconcile.ReportAccounts(st.Accounts), "queue": reconcile.ReportQueue(st.Queue),
			"waiting": st.Waiting, "drift": reconcile.ReportDrift(st.Drift), "repairs": reconcile.ReportDrift(st.Repairs)})
	}
	p := &printer{w: w, wrong: !ok, unseen: "in the service's process, not seen from here"}
	if mode == modeSync {
		p.unseen = "none in this mode"
	}
	for _, a := range st.Accounts {
		p.account(a)
	}
	if q := st.Queue; q != nil {
		p.line("queue: %s ready, %s in flight, %s dead", told(q.Ready), told(q.InFlight), told(q.Dead))
	}
	for _, d := range st.Repairs {
		p.line("repaired: %s, voucher %s%s: %s", d.Kind, d.Voucher, ofOrder(d), d.Done)
	}
	for _, d := range st.Drift {
		p.line("drift: %s, voucher %s%s: %s", d.Kind, d.Voucher, ofOrder(d), d.Detail)
	}
	if st.Waiting > 0 {
		p.line("%d orders are on their way", st.Waiting)
	}
	word := "balanced"
	if !ok {
		word = "NOT balanced"
	}
	p.line("%s: %d vouchers", word, len(st.Accounts))
	return p.err
}

func ofOrder(d reconcile.Drift) string {
	if d.Order == 0 {
		return ""
	}
	return ", order " + d.Order.String()
}

func told(n int64) string {
	if n < 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// printer keeps the first error of writing.
type printer struct {
	w     io.Writer
	wrong bool // say what is wrong: else it is merely on its way
	// unseen is said where there is no gate to look at.
	unseen string
	err    error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) account(a reconcile.Account) {
	p.line("voucher %s %s", a.ID, a.Title)
	p.line("  database  stock %d = %d left + %d held (%d confirmed, %d paid)", a.Stock, a.Left, a.Held(), a.Confirmed, a.Paid)
	switch g := a.Gate; {
	case g == nil:
		p.line("  gate      %s", p.unseen)
	case !g.Loaded:
		p.line("  gate      not loaded")
	case g.Stockless():
		p.line("  gate      no stock in this mode, %d buyers (%d in flight)", g.Buyers, g.Marks)
	default:
		p.line("  gate      units %d = %d left + %d buyers (%d in flight)", g.Units, g.Left, g.Buyers, g.Marks)
	}
	p.line("  orders    %d decided = %d held + %d failed + %d cancelled + %d refunded", a.Decided(), a.Held(), a.Failed, a.Cancelled, a.Refunded)
	if p.wrong {
		for _, w := range a.Wrong() {
			p.line("  WRONG     %s", w)
		}
	}
}
