package sale

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"queuelab/app/loop"
	"queuelab/queue"
)

// StartBy is what opens a sale.
type StartBy string

const (
	// ByClock: the sale opens at its Begin, by the clock of the gate. The default.
	ByClock StartBy = "clock"
	// BySignal: the sale opens when one instance says so, for all.
	BySignal StartBy = "signal"
)

// NotByItself is how long it takes until a signal is due that the operator gives.
const NotByItself = time.Duration(1<<63 - 1)

// Signal is the start of a sale that opens by signal.
type Signal struct {
	Voucher ID
	Opened  time.Time     // zero: not yet
	In      time.Duration // until it is due, by the database's clock: below 1 is now
}

// StartStore is what the start signal needs of the database.
type StartStore interface {
	// OpenSale notes that a sale opens now, by the database's clock, if it opens by
	// signal, its window is open and nobody has noted it; with due also only if its
	// signal is due. It returns the voucher as it is then, and whether this call did
	// it: of all instances that call at the same time one does.
	OpenSale(ctx context.Context, id ID, due bool) (v Voucher, opened bool, err error)
	// Signals lists the starts by signal of sales that have not ended, those that
	// are still to be given first.
	Signals(ctx context.Context) ([]Signal, error)
}

// Opener is a gate whose sales can open by signal.
type Opener interface {
	// Open has the gate take clicks on a voucher from a moment on, or from now on
	// where its own clock has not come to that moment. It never closes: a later
	// moment than the one it knows changes nothing, nor does a voucher that is not
	// loaded. So it can be told as often as one likes.
	Open(ctx context.Context, starts ...Signal) error
}

// lookForStarts is how often an instance looks into the database for a signal
// that it did not hear.
const lookForStarts = 500 * time.Millisecond

// Starter gives start signals and hears them. The signal is given by whoever is
// first to note it in the database, and reaches all instances as a message; the
// note is the truth, so an instance that missed the message, or the death of the
// one that wrote the note, costs no more than the pause between two looks.
type Starter struct {
	Store StartStore
	Gate  Opener // nil: there is nothing to open but what the database has
	// Publisher and Consumer are of a queue that brings every instance every
	// message; nil: the looks alone have to do.
	Publisher queue.Publisher
	Consumer  queue.Consumer
	Board     *Board
	Log       *slog.Logger
}

// Fire gives the signal for one sale, due or not. nil says that the sale is open,
// by this call or since an earlier signal. With an *Error it is not.
func (s *Starter) Fire(ctx context.Context, id ID) (v Voucher, fired bool, err error) {
	v, fired, err = s.Store.OpenSale(ctx, id, false)
	if err != nil {
		return Voucher{}, false, err
	}
	switch now := time.Now(); {
	case !v.Signal:
		return v, false, wrongState("the sale opens at its beginTime, by the clock")
	case v.Opened.IsZero() && now.Before(v.End):
		return v, false, &Error{Code: CodeNotStarted, Message: "the sale opens at its beginTime at the earliest"}
	case v.Opened.IsZero():
		return v, false, Over()
	}
	s.tell(ctx, v, fired)
	return v, fired, nil
}

// tell opens what this instance can open, and tells the others when it was the
// one that gave the signal. What fails here is done by the next look.
func (s *Starter) tell(ctx context.Context, v Voucher, fired bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	sig := Signal{Voucher: v.ID, Opened: v.Opened}
	// Before the message: who hears it finds the gate open.
	if err := s.open(ctx, sig); err != nil {
		s.Log.Warn("the gate was not opened yet", "voucher", v.ID, "error", err)
	}
	if !fired {
		return
	}
	s.Log.Info("start signal given", "voucher", v.ID, "opened", v.Opened)
	if s.Publisher == nil {
		return
	}
	m := queue.Message{ID: "start-" + v.ID.String(), Key: v.ID.String(), Body: sig.encode()}
	if err := s.Publisher.Publish(ctx, m); err != nil {
		s.Log.Warn("the start signal may not have reached every instance: they look for it", "voucher", v.ID, "error", err)
	}
}

func (s *Starter) open(ctx context.Context, signals ...Signal) error {
	if len(signals) == 0 {
		return nil
	}
	if s.Gate != nil {
		if err := s.Gate.Open(ctx, signals...); err != nil {
			return err
		}
	}
	s.Board.opened(signals...)
	return nil
}

// Run hears and gives signals until ctx ends.
func (s *Starter) Run(ctx context.Context) {
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if s.Consumer != nil {
			s.listen(ctx)
		}
	}()
	loop.Loop{Look: s.look, Every: lookForStarts, Within: stepTimeout, Tell: loop.Say(s.Log, "start signals are not looked for")}.Run(ctx)
	<-heard
}

// look gives the signals that are due, and opens what others opened. It returns
// when to look again.
func (s *Starter) look(ctx context.Context) (time.Duration, error) {
	signals, err := s.Store.Signals(ctx)
	if err != nil {
		return 0, err
	}
	next := lookForStarts
	var known []Signal
	var errs error
	for _, sig := range signals {
		switch {
		case !sig.Opened.IsZero():
			known = append(known, sig)
		case sig.In < time.Millisecond:
			v, fired, err := s.Store.OpenSale(ctx, sig.Voucher, true)
			if err != nil {
				errs = errors.Join(errs, err)
			} else if !v.Opened.IsZero() {
				s.tell(ctx, v, fired)
			}
		default:
			next = min(next, sig.In)
		}
	}
	// Also what was open before: a gate that was loaded meanwhile, from what the
	// database said then, or lost its keys, has to hear it again.
	errs = errors.Join(errs, s.open(ctx, known...))
	s.Board.keep(known)
	return next, errs
}

func (s *Starter) listen(ctx context.Context) {
	for ctx.Err() == nil {
		ds, err := s.Consumer.Receive(ctx, 64)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
				return
			}
			s.Log.Warn("start signals are not heard, but looked for", "error", err)
			continue // Receive itself waits before it tries again
		}
		for _, d := range ds {
			sig, err := decodeSignal(d.Body)
			if err == nil {
				s.Log.Info("start signal heard", "voucher", sig.Voucher)
				err = s.open(ctx, sig)
			}
			if err != nil && ctx.Err() == nil {
				s.Log.Warn("a start signal was heard in vain, and is looked for", "message", d.ID, "error", err)
			}
		}
		if err := s.Consumer.Ack(ctx, ds...); err != nil && ctx.Err() == nil {
			s.Log.Warn("start signals come again", "error", err)
		}
	}
}

type signalBody struct {
	VoucherID ID    `json:"voucherId"`
	OpenedMS  int64 `json:"openedMs"`
}

func (s Signal) encode() []byte {
	b, _ := json.Marshal(signalBody{s.Voucher, s.Opened.UnixMilli()}) // two numbers
	return b
}

func decodeSignal(b []byte) (Signal, error) {
	var in signalBody
	if err := json.Unmarshal(b, &in); err != nil {
		return Signal{}, fmt.Errorf("decode a start signal: %w", err)
	}
	if in.VoucherID <= 0 || in.OpenedMS <= 0 {
		return Signal{}, errors.New("decode a start signal: no voucher, or no moment")
	}
	return Signal{Voucher: in.VoucherID, Opened: time.UnixMilli(in.OpenedMS).UTC()}, nil
}

// checkStart says what is wrong with how an offer starts.
func (o Offer) checkStart() error {
	switch {
	case o.Start != "" && o.Start != ByClock && o.Start != BySignal:
		return invalid("start must be clock or signal")
	case o.Start != BySignal && !(o.OpenFrom.IsZero() && o.OpenTo.IsZero()):
		return invalid("openFrom and openTo are for a start by signal: start must be signal")
	case o.OpenFrom.IsZero() && !o.OpenTo.IsZero():
		return invalid("openTo needs an openFrom")
	case o.OpenFrom.IsZero():
		return nil
	case o.OpenFrom.Before(o.Begin) || !o.OpenFrom.Before(o.End):
		return invalid("openFrom must be within the sale's window, from beginTime to endTime")
	case !o.OpenTo.IsZero() && (o.OpenTo.Before(o.OpenFrom) || !o.OpenTo.Before(o.End)):
		return invalid("openTo must be from openFrom to the end of the sale")
	}
	return nil
}

// openAt chooses the moment of the signal, so that nobody can guess it.
func (o Offer) openAt() (time.Time, error) {
	at := o.OpenFrom.UTC().Truncate(time.Millisecond)
	span := o.OpenTo.Sub(at).Milliseconds()
	if o.OpenFrom.IsZero() || o.OpenTo.IsZero() || span <= 0 {
		return at, nil
	}
	n, err := rand.Int(rand.Reader, big.NewInt(span+1))
	if err != nil {
		return at, fmt.Errorf("choose the moment of the start signal: %w", err)
	}
	return at.Add(time.Duration(n.Int64()) * time.Millisecond), nil
}
