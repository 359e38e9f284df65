package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"queuelab/app/admission"
	"queuelab/app/door"
	"queuelab/app/fleet"
	"queuelab/app/loop"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/trace"
	"queuelab/app/trace/export"
	"queuelab/app/web"
	"queuelab/app/worker"
	"queuelab/backends"
	"queuelab/queue"
)

const (
	startTimeout   = 30 * time.Second // for all that must answer at the start
	publishTimeout = 2 * time.Second
	drainWait      = 10 * time.Second
	httpStop       = 10 * time.Second
	opsStop        = time.Second
	workerStop     = 10 * time.Second
)

// service is everything that runs, in the order in which it was opened.
type service struct {
	f   *flags
	log *slog.Logger

	listener    net.Listener
	opsListener net.Listener // nil: there is none
	store       *store.Store
	lease       *sale.Lease
	gate        sale.Gate
	queue       queue.Queue
	queueURL    string           // of queue
	inScript    bool             // the gate queues what it admits
	backlog     queue.Backlogger // nil: the queue cannot tell
	publisher   queue.Publisher
	consumer    queue.Consumer // nil: this instance decides no orders

	results *sale.Results
	signals *signals
	board   *sale.Board
	starter *sale.Starter
	loader  *sale.Loader
	rescan  *worker.Rescan // nil: off
	sweep   *worker.Sweep
	between *worker.Relay // nil: there is one database
	worker  *worker.Worker
	web     *web.Server

	changes *door.Changes // nil: there are no accounts
	tallies *sale.Tallies
	pulse   *fleet.Pulse
	said    bool // other instances were told of this one
	lab     *lab // nil: this is none

	sole      *store.Sole           // nil: other instances may be beside this one
	reconcile *reconcile.Reconciler // nil: off

	tracer        *trace.Tracer // nil: off
	operatorToken string
}

// open connects to everything; an error is one sentence about what is wrong.
func open(ctx context.Context, f *flags, stdout, stderr io.Writer) (_ *service, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &service{f: f, log: f.logger(stderr), operatorToken: f.OperatorToken, tallies: &sale.Tallies{}}
	if f.Lab {
		s.lab = newLab(f, stderr, s.log)
	}
	defer func() {
		if err != nil {
			s.leave()
			s.close()
		}
	}()
	name := f.Queue
	if name == "" {
		name = "memory" // with --mode=sync nothing is ever in it
	}
	if s.queueURL, err = queueURL(name, f.Redis); err != nil {
		return nil, err
	}
	if err := s.refuse(queueURLDangers(name)...); err != nil {
		return nil, err
	}
	if s.tracer, err = export.Open(f.operations.Trace, f.TraceRatio, f.instance(), stdout, s.log); err != nil {
		return nil, err
	}
	// Before the rest, because a port that is taken most often means that we run already.
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen); err != nil {
		return nil, fmt.Errorf("cannot serve on %s: %w", f.Listen, err)
	}
	if f.OpsListen != "" {
		if s.opsListener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", f.OpsListen); err != nil {
			return nil, fmt.Errorf("cannot serve metrics on %s: %w", f.OpsListen, err)
		}
	}
	if s.queue, err = backends.Open(ctx, s.queueURL); err != nil {
		return nil, awayQueue(err, name)
	}
	if err := s.checkQueue(); err != nil {
		return nil, err
	}
	s.backlog, _ = s.queue.(queue.Backlogger)
	if s.store, err = openStore(ctx, f, f.operations.Migrate == "auto"); err != nil {
		return nil, err
	}
	if err := s.beAlone(ctx); err != nil {
		return nil, err
	}
	if s.lease, err = sale.TakeLease(ctx, s.store, f.WorkerID); err != nil {
		return nil, err
	}
	if s.gate, err = openGate(ctx, f.Redis, s.store); err != nil {
		return nil, err
	}
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if err := s.stockless(); err != nil {
		return nil, err
	}
	if err := s.enqueueInScript(ctx); err != nil {
		return nil, err
	}
	if err := s.agree(ctx); err != nil {
		return nil, err
	}
	if s.signals, err = openSignals(ctx, f, s.lease.Number); err != nil {
		return nil, err
	}
	if s.publisher, err = s.queue.Publisher(ctx); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if f.Role != roleWeb && !f.Lab {
		if s.consumer, err = s.queue.Consumer(ctx); err != nil {
			return nil, fmt.Errorf("queue: %w", err)
		}
	}
	if err := s.wire(); err != nil {
		return nil, err
	}
	if s.changes != nil {
		err = s.changes.Look(ctx)
	}
	return s, err
}

// beAlone refuses to share a sale whose queue or gate other instances cannot see.
func (s *service) beAlone(ctx context.Context) (err error) {
	if s.f.Mode == modeSync || s.queue.Capabilities().Shared && s.f.Redis != "" {
		return nil
	}
	s.sole, err = s.store.Sole(ctx)
	if errors.Is(err, store.ErrNotSole) && s.queue.Capabilities().Shared {
		return fmt.Errorf("another instance sells from database %s with admission of its own: without --redis each would hand out all units, "+
			"and neither could see the other's buyers; give all instances the same --redis, or another --db", store.Redact(s.f.DB))
	}
	if errors.Is(err, store.ErrNotSole) {
		return fmt.Errorf("another instance sells from database %s with a queue of its own: the memory queue lives in one process, so neither could see the other's orders, "+
			"and stopping one would lose what it holds; give all instances a queue that they share, such as --queue redis-streams, or another --db", store.Redact(s.f.DB))
	}
	return err
}

func openGate(ctx context.Context, redisURL string, db *store.Store) (sale.Gate, error) {
	if redisURL == "" {
		return admission.NewMemory(nil), nil
	}
	g, err := admission.OpenRedis(ctx, redisURL)
	if err != nil {
		return nil, away(fmt.Errorf("admission: %w", err), "a Redis", "--redis")
	}
	g.AskBuckets(func(ctx context.Context, voucher sale.ID) (int, error) {
		v, err := db.Voucher(ctx, voucher)
		return v.Buckets, err
	})
	return g, nil
}

// enqueueInScript has the gate queue what it admits, where that is wanted and
// can be.
func (s *service) enqueueInScript(ctx context.Context) error {
	if s.f.Enqueue == "publish" {
		return nil
	}
	must := s.f.Enqueue == "script"
	gate, shared := s.gate.(*admission.Redis)
	q, can := s.queue.(queue.ScriptEnqueuer)
	if !shared || !can {
		if must {
			return errors.New("--enqueue=script needs --redis, and a queue in that same Redis, such as redis-streams")
		}
		return nil
	}
	how, err := q.ScriptEnqueue(ctx)
	if err == nil && how == nil {
		if must {
			return errors.New("--enqueue=script: the queue waits for replicas or asks Sentinels, which no script can do; use --enqueue=publish")
		}
		return nil
	}
	if err == nil {
		err = gate.EnqueueInto(ctx, how)
	}
	if errors.Is(err, admission.ErrElsewhere) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--enqueue=%s: %w", s.f.Enqueue, err)
	}
	s.inScript = true
	s.log.Info("orders are queued by the admission script")
	return nil
}

// ids is what makes the orders' ids.
func (s *service) ids() (sale.IDs, error) {
	if gate, ok := s.gate.(*admission.Redis); ok && s.f.IDs == "redis" {
		return gate.IDs(), nil
	}
	return sale.NewSnowflake(s.lease.Number, s.lease)
}

// wire makes the parts of the service and connects them.
func (s *service) wire() error {
	f := s.f
	if s.operatorToken == "" {
		s.operatorToken = rand.Text()
	}
	d, err := s.newDoor()
	if err != nil {
		return err
	}
	s.changes = d.Sessions.Changes
	ids, err := s.ids()
	if err != nil {
		return err
	}
	metrics := web.NewMetrics(s.backlog)
	outbox := &sale.Outbox{Publisher: s.publisher, Timeout: publishTimeout, Observer: metrics, Tracer: s.tracer}
	s.results = sale.NewResults(s.store, loop.Say(s.log, "decisions of other instances are not looked for"))
	s.board = sale.NewBoard(s.gate)
	s.starter = s.newStarter()
	s.loader = sale.NewLoader(s.gate, s.store, s.backlog, drainWait, s.log)
	s.worker = &worker.Worker{Store: s.store, Gate: s.gate, Results: s.results, Observer: metrics, Meter: metrics, Tracer: s.tracer, Log: s.log,
		Lanes: f.Lanes, Batch: f.Batch, MaxAttempts: f.MaxAttempts, Drain: workerStop}
	if f.Rescan > 0 && s.consumer != nil {
		s.rescan = &worker.Rescan{Gate: s.gate, Store: s.store, Vouchers: s.loader.Recent, Outbox: outbox, Results: s.results, Log: s.log, Age: f.Rescan}
	}
	if err := s.newReconciler(outbox); err != nil {
		return err
	}
	s.between = s.relay()
	s.sweep = &worker.Sweep{Store: s.store, Gate: s.gate, Outbox: outbox, Results: s.results, Log: s.log, Meter: metrics}
	s.watch(metrics)
	ready := map[string]func(context.Context) error{"database": s.store.Ping, "admission": s.gate.Check}
	if s.backlog != nil {
		ready["queue"] = func(ctx context.Context) error { _, err := s.backlog.Backlog(ctx); return err }
	}
	var spared []string
	if f.Role != roleWorker && f.Mode != modeSync {
		// Clicks are admitted and queued without it, and confirmed later: an instance
		// that takes them must not be dropped together with all the others.
		spared = []string{"database"}
	}
	front := &sale.Service{IDs: ids, Gate: s.gate, Store: s.store, Life: s.store, Letters: s.store, Mine: s.store, Board: s.board, Starter: s.starter, Outbox: outbox, Results: s.results, Loader: s.loader, Observer: metrics, Log: s.log, Tracer: s.tracer}
	front.Seller = s.seller(front)
	front.Tallies = s.tallies
	s.pulse = s.newPulse(ready)
	s.web = web.New(web.Options{
		Service: front,
		Door:    d, OperatorToken: s.operatorToken, TrustUserHeader: f.TrustUserHeader, Metrics: metrics, Reconcile: s.reconcile, Ready: ready, Spared: spared, Unavailable: store.Transient, Log: s.log,
		Tracer: s.tracer, Streams: f.Streams, HealthOnly: f.Role == roleWorker, Console: s.console(), Kill: s.killer(),
	})
	return nil
}

// watch has the metrics tell of what this instance stands on.
func (s *service) watch(m *web.Metrics) {
	p := web.Parts{Pools: s.store.Pools, Letters: s.store.OpenLetters, Vouchers: s.loader.Recent, Waiting: s.results.Waiting}
	p.Gate, _ = s.gate.(sale.Auditor)
	if g, ok := s.gate.(*admission.Redis); ok {
		p.Redis = g.Client().PoolStats
	}
	m.Watch(p)
}

// newReconciler compares what this instance sees; every instance does, and what
// two of them put right at the same time is right.
func (s *service) newReconciler(outbox *sale.Outbox) error {
	if s.f.Reconcile == 0 {
		return nil
	}
	if s.f.Mode == modeSync {
		// No order is anywhere but in the database, whose own numbers are all there is.
		s.reconcile = &reconcile.Reconciler{Store: s.store, Vouchers: s.loader.Recent, Log: s.log, Age: worker.Trust, Every: s.f.Reconcile, Repair: true}
		return nil
	}
	gate, ok := s.gate.(reconcile.Gate)
	if !ok {
		return errors.New("this gate cannot be compared with the database: use --reconcile=0")
	}
	s.reconcile = &reconcile.Reconciler{
		Gate: gate, Store: s.store, Vouchers: s.loader.Recent, Backlog: s.backlog, Log: s.log,
		Publish: func(ctx context.Context, r sale.Reservation) error {
			_, err := outbox.Send(ctx, r, "reconcile")
			return err
		},
		Load: func(ctx context.Context, id sale.ID) error {
			v, err := s.store.Voucher(ctx, id)
			if err == nil {
				s.loader.Want(v)
			}
			return err
		},
		// Two rescans and what a worker may take from reading to telling the gate.
		Age: 2*s.f.Rescan + worker.Trust, Every: s.f.Reconcile, Repair: true,
	}
	return nil
}

// serve runs until ctx ends or a part fails, then stops in order: no new
// requests, the running ones, what the queue holds for us, and the rest.
func (s *service) serve(ctx context.Context) error {
	defer s.close()
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stopBackground()
	wg.Go(func() { s.results.Run(background) })
	wg.Go(func() { s.loader.Run(background) })
	wg.Go(func() { s.board.Run(background) })
	wg.Go(func() { s.starter.Run(background) })
	if s.consumer != nil {
		wg.Go(func() { s.sweep.Run(background) })
	}
	s.tell(background, &wg)
	if s.changes != nil {
		wg.Go(func() { s.changes.Run(background) })
	}
	if s.between != nil {
		wg.Go(func() { s.between.Run(background) })
	}
	if s.reconcile != nil {
		wg.Go(func() { s.reconcile.Run(background) })
	}
	if s.rescan != nil {
		wg.Go(func() { s.rescan.Run(background) })
	}
	working, stopWorker := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorker()
	failed := make(chan error, 5) // one for each that may end by itself
	wg.Go(func() {
		if err := s.lease.Run(background, func(err error) { s.log.Warn("lease", "error", err) }); err != nil {
			failed <- err
		}
	})
	if s.sole != nil {
		wg.Go(func() {
			if err := s.sole.Watch(background); err != nil {
				failed <- fmt.Errorf("what lives in this process cannot be shared, and while the database was away an instance came beside this one: %w", err)
			}
		})
	}
	worked := make(chan struct{})
	wg.Go(func() {
		defer close(worked)
		if s.consumer == nil {
			return
		}
		if err := s.worker.Run(working, s.consumer, s.queue.Capabilities()); err != nil {
			failed <- err
		}
	})
	wg.Go(func() {
		if err := s.web.Serve(s.listener); err != nil {
			failed <- fmt.Errorf("serve: %w", err)
		}
	})
	if s.opsListener != nil {
		wg.Go(func() {
			if err := s.web.ServeOps(s.opsListener); err != nil {
				failed <- fmt.Errorf("serve metrics: %w", err)
			}
		})
	}

	var cause error
	select {
	case <-ctx.Done():
		s.log.Info("stopping")
	case cause = <-failed:
		s.log.Error("stopping", "error", cause)
	}
	if err := s.web.Stop(httpStop); err != nil {
		s.log.Warn("requests were cut off", "error", err)
	}
	s.finishOwn(background, worked)
	stopWorker()
	<-worked
	if err := s.web.StopOps(opsStop); err != nil {
		s.log.Warn("a look at the metrics was cut off", "error", err)
	}
	return cause
}

// finishOwn waits until a queue that only this process can read is empty: what
// it holds then would be lost.
func (s *service) finishOwn(ctx context.Context, worked <-chan struct{}) {
	if s.backlog == nil || s.queue.Capabilities().Shared {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, workerStop)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := s.backlog.Backlog(ctx); err != nil || b.Ready <= 0 && b.InFlight <= 0 {
			return
		}
		select {
		case <-tick.C:
		case <-worked:
			return
		case <-ctx.Done():
			s.log.Warn("orders in the queue are lost with this process")
			return
		}
	}
}

// close closes what open opened, last first.
func (s *service) close() {
	var errs error
	note := func(err error) { errs = errors.Join(errs, err) }
	note(s.signals.close())
	if s.publisher != nil {
		note(s.publisher.Close())
	}
	if s.consumer != nil {
		note(s.consumer.Close())
	}
	if s.queue != nil {
		note(s.queue.Close())
	}
	if s.gate != nil {
		note(s.gate.Close())
	}
	note(s.sole.Close())
	if s.store != nil {
		note(s.store.Close())
	}
	if s.listener != nil {
		_ = s.listener.Close() // the server has closed it already, if it ran
	}
	if s.opsListener != nil {
		_ = s.opsListener.Close()
	}
	note(s.tracer.Close())
	if errs != nil {
		s.log.Warn("closing", "error", errs)
	}
}
