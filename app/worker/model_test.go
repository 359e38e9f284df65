package worker_test

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/app/worker"
	"queuelab/queue"
)

// modelled is what the simple model knows of an order.
type modelled struct {
	sale.Reservation
	status  sale.Status // "": not decided
	reason  string
	overdue bool
	paidBy  string // the payment that pays, or paid
	due     int    // payments that pay nothing
}

// world is a sale of a few units to a few buyers, and its model.
type world struct {
	*lab
	raw     *sql.DB
	voucher sale.Voucher
	worker  *worker.Worker
	sweep   *worker.Sweep
	rescan  *worker.Rescan
	service *sale.Service

	left   int64
	orders map[sale.ID]*modelled
	ids    []sale.ID // as they were admitted; each is published, and may come again
	read   []sale.Reservation
}

// nowhere accepts every message: the test delivers them itself, as often as it likes.
type nowhere struct{}

func (nowhere) Publish(context.Context, ...queue.Message) error { return nil }
func (nowhere) Close() error                                    { return nil }

func newWorld(l *lab, raw *sql.DB, t *rapid.T) *world {
	gate := admission.NewMemory(nil)
	log := slog.New(slog.DiscardHandler)
	results := sale.NewResults(l.store, func(error) {})
	outbox := &sale.Outbox{Publisher: nowhere{}, Timeout: time.Second, Observer: sale.Unobserved{}}
	w := &world{lab: &lab{t: l.t, store: l.store, gate: gate}, raw: raw, orders: map[sale.ID]*modelled{},
		worker: &worker.Worker{Store: l.store, Gate: gate, Results: results, Observer: sale.Unobserved{}, Log: log, MaxAttempts: 1},
		sweep:  &worker.Sweep{Store: l.store, Gate: gate, Outbox: outbox, Results: results, Log: log, Again: 5 * time.Millisecond},
		service: &sale.Service{Store: l.store, Life: l.store, Letters: l.store, Gate: gate, Results: results, Outbox: outbox, Log: log,
			Loader: sale.NewLoader(gate, l.store, nil, 0, log)},
	}
	w.voucher = w.lab.toPay(rapid.Int64Range(1, 4).Draw(t, "stock"), time.Hour)
	w.left = w.voucher.Stock
	w.rescan = &worker.Rescan{Gate: gate, Store: l.store, Outbox: outbox, Results: results, Log: log, Age: time.Nanosecond,
		Vouchers: func(context.Context, time.Time) ([]sale.ID, error) { return []sale.ID{w.voucher.ID}, nil }}
	return w
}

// any picks an order that exists.
func (w *world) any(t *rapid.T) *modelled {
	if len(w.ids) == 0 {
		t.Skip("no orders yet")
	}
	return w.orders[rapid.SampledFrom(w.ids).Draw(t, "order")]
}

func (w *world) click(t *rapid.T) {
	r := sale.Reservation{OrderID: id(), VoucherID: w.voucher.ID, UserID: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "buyer"), AtMillis: 1}
	if got, _, err := w.gate.Admit(context.Background(), r); err != nil {
		t.Fatal(err)
	} else if got == sale.Admitted {
		w.orders[r.OrderID] = &modelled{Reservation: r}
		w.ids = append(w.ids, r.OrderID)
	}
}

// decide is the model of one transaction.
func (w *world) decide(batch []*modelled) {
	slices.SortFunc(batch, func(a, b *modelled) int { return cmp.Compare(a.OrderID, b.OrderID) })
	bought := map[string]bool{}
	for _, o := range w.orders {
		bought[o.UserID] = bought[o.UserID] || o.status.Holds()
	}
	var fresh []*modelled
	for _, o := range slices.Compact(batch) {
		switch {
		case o.status != "":
		case bought[o.UserID]:
			o.status, o.reason = sale.Failed, sale.ReasonAlreadyBought
		default:
			bought[o.UserID] = true
			fresh = append(fresh, o)
		}
	}
	for _, o := range fresh {
		if w.left > 0 {
			w.left--
			o.status = sale.Confirmed
		} else {
			o.status, o.reason = sale.Failed, sale.ReasonSoldOut
		}
	}
}

// deliver hands out messages, some of them again.
func (w *world) deliver(t *rapid.T) {
	w.any(t)
	var batch []*modelled
	var ds []*queue.Delivery
	var rs []sale.Reservation
	for _, n := range rapid.SliceOfN(rapid.SampledFrom(w.ids), 1, 5).Draw(t, "messages") {
		o := w.orders[n]
		batch, rs = append(batch, o), append(rs, o.Reservation)
		ds = append(ds, queue.NewDelivery(queue.Message{ID: n.String(), Body: o.Encode()}, 1, nil))
	}
	if rapid.Bool().Draw(t, "dies before it tells the gate") {
		if _, err := w.store.Fulfil(context.Background(), rs); err != nil {
			t.Fatal(err)
		}
	} else {
		for _, err := range w.worker.Handle(context.Background(), ds) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	w.decide(batch)
}

// giveUp is the end of a message whose attempts are used up.
func (w *world) giveUp(t *rapid.T) {
	o := w.any(t)
	w.store.set(func([]sale.Reservation) error { return fmt.Errorf("never works") })
	defer w.store.set(nil)
	if err := w.worker.GiveUp(context.Background(), queue.NewDelivery(queue.Message{ID: o.OrderID.String(), Body: o.Encode()}, 9, nil), queue.ErrAttempts); err != nil {
		t.Fatal(err)
	}
	if o.status == "" {
		o.status, o.reason = sale.Failed, sale.ReasonUndeliverable
	}
}

func (w *world) pay(t *rapid.T) {
	o := w.any(t)
	p := sale.Payment{ID: fmt.Sprintf("%s-%d", o.OrderID, rapid.IntRange(0, 1).Draw(t, "payment")), OrderID: o.OrderID}
	var known int
	if err := w.raw.QueryRow("SELECT count(*) FROM payments WHERE id = $1", p.ID).Scan(&known); err != nil {
		t.Fatal(err)
	}
	got, err := w.service.Pay(context.Background(), p)
	switch code := sale.CodeOf(err); {
	case o.status == "":
		if code != sale.CodeWrongState && code != sale.CodeNotFound {
			t.Fatalf("got %v for an order that is not decided", err)
		}
	case o.paidBy == p.ID:
		if err != nil || got.Status != o.status {
			t.Fatalf("got %+v, %v for a payment told again", got, err)
		}
	case known == 0 && o.status == sale.Confirmed && !o.overdue:
		if err != nil || got.Status != sale.Paid {
			t.Fatalf("got %+v, %v, want the order paid", got, err)
		}
		o.status, o.paidBy = sale.Paid, p.ID
	default:
		if code != sale.CodeTooLate && code != sale.CodeAlreadyPaid {
			t.Fatalf("got %+v, %v, want the payment due back", got, err)
		}
		if known == 0 {
			o.due++
		}
	}
}

func (w *world) cancel(t *rapid.T) {
	o := w.any(t)
	want := o.status == sale.Confirmed || o.status == sale.Cancelled
	var err error
	if rapid.Bool().Draw(t, "dies before it tells the gate") {
		_, want, err = w.store.CloseOrder(context.Background(), o.OrderID, sale.Cancelled, sale.ReasonByBuyer)
		if o.status == "" && sale.CodeOf(err) == sale.CodeNotFound {
			err = nil
		}
		if want != (o.status == sale.Confirmed) {
			t.Fatalf("got %v, %v for an order that is %s", want, err, o.status)
		}
	} else if _, err = w.service.Cancel(context.Background(), o.UserID, o.OrderID); (err == nil) != want {
		t.Fatalf("got %v for an order that is %s", err, o.status)
	}
	if o.status == sale.Confirmed {
		o.status, o.reason = sale.Cancelled, sale.ReasonByBuyer
		w.left++
	}
}

func (w *world) refund(t *rapid.T) {
	o := w.any(t)
	if _, err := w.service.Refund(context.Background(), o.OrderID); (err == nil) != (o.status == sale.Paid || o.status == sale.Refunded) {
		t.Fatalf("got %v for an order that is %s", err, o.status)
	}
	if o.status == sale.Paid {
		o.status, o.reason = sale.Refunded, sale.ReasonByOperator
		w.left++
	}
}

// deadline ends the time to pay of an order.
func (w *world) deadline(t *rapid.T) {
	o := w.any(t)
	if o.status == "" || o.status == sale.Failed {
		t.Skip("it has no deadline")
	}
	if _, err := w.raw.Exec("UPDATE orders SET pay_by_ms = 1 WHERE id = $1", int64(o.OrderID)); err != nil {
		t.Fatal(err)
	}
	o.overdue = true
}

func (w *world) sweepOnce(t *rapid.T) {
	if _, err := w.sweep.Once(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, o := range w.orders {
		if o.status == sale.Confirmed && o.overdue {
			o.status, o.reason = sale.Cancelled, sale.ReasonUnpaid
			w.left++
		}
	}
}

func (w *world) rescanOnce(t *rapid.T) {
	if err := w.rescan.Once(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// look is a process that reads of a confirmed order and is held up; late is its
// word to the gate, which may come as long as the order is looked after.
func (w *world) look(t *rapid.T) {
	if o := w.any(t); o.status.Holds() {
		w.read = append(w.read, o.Reservation)
	}
}

func (w *world) late(t *rapid.T) {
	if len(w.read) == 0 {
		t.Skip("nobody is held up")
	}
	r := rapid.SampledFrom(w.read).Draw(t, "order")
	var after int
	if err := w.raw.QueryRow("SELECT give_back FROM orders WHERE id = $1", int64(r.OrderID)).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if after == 0 && !w.orders[r.OrderID].status.Holds() {
		t.Skip("later than anybody may be")
	}
	if err := w.gate.Settle(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

// agree compares the database with the model.
func (w *world) agree(t *rapid.T) {
	v, err := w.store.Voucher(context.Background(), w.voucher.ID)
	if err != nil || v.Left != w.left {
		t.Fatalf("got %d left, %v, want %d", v.Left, err, w.left)
	}
	os, err := w.store.Orders(context.Background(), w.ids...)
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	held := map[string]int{}
	for _, o := range w.orders {
		if o.status != "" {
			decided++
		}
	}
	for _, o := range os {
		if m := w.orders[o.OrderID]; o.Status != m.status || o.Reason != m.reason {
			t.Fatalf("order %s is %s %s, want %s %s", o.OrderID, o.Status, o.Reason, m.status, m.reason)
		}
		if o.Status.Holds() {
			held[o.UserID]++
		}
	}
	if decided != len(os) || int64(len(held)) != w.voucher.Stock-w.left {
		t.Fatalf("got %d orders, of which %v have a unit, want %d, and %d", len(os), held, decided, w.voucher.Stock-w.left)
	}
}

// end lets everything finish and compares the gate with the database.
func (w *world) end(t *rapid.T) {
	for _, n := range w.ids {
		o := w.orders[n]
		if errs := w.worker.Handle(context.Background(), []*queue.Delivery{queue.NewDelivery(queue.Message{ID: n.String(), Body: o.Encode()}, 1, nil)}); errs[0] != nil {
			t.Fatal(errs)
		}
		w.decide([]*modelled{o})
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		w.sweepOnce(t)
		if d, err := w.store.Due(context.Background()); err != nil {
			t.Fatal(err)
		} else if d.GiveBack == store.Never {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("units are still to be given back after 20 s")
		}
	}
	w.agree(t)
	if left, _, err := w.gate.Left(context.Background(), w.voucher.ID); err != nil || left != w.left {
		t.Fatalf("got %d left at the gate, %v, and %d in the database", left, err, w.left)
	}
	for _, o := range w.orders {
		if _, marked, _ := w.gate.Find(context.Background(), o.OrderID, w.voucher.ID); marked {
			t.Fatalf("order %s is %s and still has a mark", o.OrderID, o.status)
		}
		got, holder, err := w.gate.Admit(context.Background(), sale.Reservation{OrderID: o.OrderID, VoucherID: w.voucher.ID, UserID: o.UserID})
		if o.status.Holds() && (err != nil || got != sale.Admitted || holder != o.OrderID) {
			t.Fatalf("got %v, %s, %v, want the gate to know that order %s has a unit", got, holder, err, o.OrderID)
		}
		if !o.status.Holds() && got == sale.Admitted { // it was free: put it back
			if _, err := w.gate.Release(context.Background(), o.Reservation); err != nil {
				t.Fatal(err)
			}
		}
		var taken, due int
		if err := w.raw.QueryRow("SELECT count(*) FILTER (WHERE reason = ''), count(*) FILTER (WHERE state = 'refund_due') FROM payments WHERE order_id = $1",
			int64(o.OrderID)).Scan(&taken, &due); err != nil {
			t.Fatal(err)
		}
		if paid := o.paidBy != ""; paid != (taken == 1) || due != o.due {
			t.Fatalf("order %s: got %d payments that pay it and %d due back, want %v, %d", o.OrderID, taken, due, paid, o.due)
		}
	}
}

// TestAnySequenceAgreesWithTheModel runs random interleavings of everything that
// can happen to an order. QUEUELAB_SOAK=1 runs more of them, and so does
// -rapid.checks=N.
func TestAnySequenceAgreesWithTheModel(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if old := checks.Value.String(); old == checks.DefValue && os.Getenv("QUEUELAB_SOAK") == "" {
		if err := checks.Value.Set("25"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := checks.Value.Set(old); err != nil {
				t.Error(err)
			}
		}()
	}
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	l := &lab{t: t, store: &faulty{Store: s}}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(l, raw, t)
		t.Repeat(map[string]func(*rapid.T){
			"": w.agree, "click": w.click, "deliver": w.deliver, "give up": w.giveUp, "pay": w.pay, "cancel": w.cancel, "refund": w.refund,
			"deadline": w.deadline, "sweep": w.sweepOnce, "rescan": w.rescanOnce, "look": w.look, "late": w.late,
		})
		w.end(t)
	})
}
