package sale_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"queuelab/app/sale"
	"queuelab/queue"
)

func TestAClickWithTheSameKeyIsTheSameOrderAndIsPublishedOnce(t *testing.T) {
	p := &fakePublisher{}
	s := newShop(t, p)
	first, err := s.BuyOnce(t.Context(), "u", s.v.ID, "k")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.BuyOnce(t.Context(), "u", s.v.ID, "k"); err != nil || again != first {
		t.Errorf("got order %v, %v, want %v", again, err, first)
	}
	if _, err := s.BuyOnce(t.Context(), "u", s.v.ID, "other"); sale.CodeOf(err) != sale.CodeAlreadyBought {
		t.Errorf("got %v with another key, want already_bought", err)
	}
	s.want(t, 4, 1)
	if len(p.sent) != 1 {
		t.Errorf("got %d published, want 1", len(p.sent))
	}
}

// refusedLate is a publisher that is refused after the buyer has clicked again.
type refusedLate struct {
	fakePublisher
	meanwhile func()
}

func (p *refusedLate) Publish(ctx context.Context, ms ...queue.Message) error {
	if p.meanwhile != nil {
		p.meanwhile()
	}
	return p.fakePublisher.Publish(ctx, ms...)
}

func TestAnOrderThatASecondClickWasToldOfIsDecidedThoughItsPublishWasRefused(t *testing.T) {
	p := &refusedLate{fakePublisher: fakePublisher{err: queue.Reject(errors.New("full"))}}
	s := newShop(t, p)
	var told sale.ID
	p.meanwhile = func() {
		var err error
		if told, err = s.BuyOnce(t.Context(), "u", s.v.ID, "k"); err != nil {
			t.Error(err)
		}
	}
	order, err := s.BuyOnce(t.Context(), "u", s.v.ID, "k")
	if err != nil || order != told {
		t.Fatalf("got order %v, %v, want %v", order, err, told)
	}
	s.want(t, 4, 1)
}

func TestAKeyThatIsNoneIsInvalid(t *testing.T) {
	s := newShop(t, &fakePublisher{})
	for _, key := range []string{strings.Repeat("k", 65), "a b", "tea\x7f", "茶", "\n"} {
		if _, err := s.BuyOnce(t.Context(), "u", s.v.ID, key); sale.CodeOf(err) != sale.CodeInvalid {
			t.Errorf("key %q: got %v, want invalid", key, err)
		}
	}
	s.want(t, 5, 0)
}

func TestTheMessageSaysWhichUnitOfTheBuyerItIs(t *testing.T) {
	p := &fakePublisher{}
	s := newShop(t, p)
	now := time.Now()
	v, err := s.CreateVoucher(t.Context(), sale.Offer{Title: "tea", Stock: 5, PerUser: 2, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := s.Buy(t.Context(), "u", v.ID); err != nil {
			t.Fatal(err)
		}
		r, err := sale.DecodeReservation(p.sent[i].Body)
		if err != nil || r.Nth != i {
			t.Errorf("got %+v, %v, want unit %d", r, err, i)
		}
	}
	if _, err := s.Buy(t.Context(), "u", v.ID); sale.CodeOf(err) != sale.CodeAlreadyBought {
		t.Errorf("got %v for a third, want already_bought", err)
	}
}

func TestACrowdedSaleIsBusyAndSaysWhenToComeAgain(t *testing.T) {
	p := &fakePublisher{}
	s := newShop(t, p)
	now := time.Now()
	v, err := s.CreateVoucher(t.Context(), sale.Offer{Title: "tea", Stock: 5, MaxInFlight: 1, Begin: now.Add(-time.Hour), End: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Buy(t.Context(), "a", v.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Buy(t.Context(), "b", v.ID)
	var e *sale.Error
	if !errors.As(err, &e) || e.Code != sale.CodeBusy || e.RetryAfter <= 0 {
		t.Errorf("got %v, want busy with a time to come again", err)
	}
	if left, _, err := s.gate.Left(t.Context(), v.ID); err != nil || left != 4 || len(p.sent) != 1 {
		t.Errorf("got %d left, %d published, %v, want 4 and 1", left, len(p.sent), err)
	}
}

// encoded is a reservation as encoding/json sees it.
type encoded sale.Reservation

func FuzzReservations(f *testing.F) {
	f.Add(int64(1), int64(2), "u", 0, int64(3))
	f.Add(int64(1)<<62, int64(-5), "\"\\\n<茶>\xff", 9, int64(-1))
	f.Fuzz(func(t *testing.T, order, voucher int64, user string, nth int, at int64) {
		r := sale.Reservation{OrderID: sale.ID(order), VoucherID: sale.ID(voucher), UserID: user, Nth: nth, AtMillis: at}
		want, err := json.Marshal(encoded(r))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Encode(); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
		back, err := sale.DecodeReservation(r.Encode())
		if good := order > 0 && voucher > 0 && nth >= 0 && sale.CheckUser(user) == nil; good != (err == nil) || good && back != r {
			t.Errorf("got %+v, %v, want %+v", back, err, r)
		}
	})
}
