package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"queuelab/app/sale"
)

// offerOf is an offer with more fields.
func offerOf(t *testing.T, stock int, more map[string]any) string {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(offer(stock, -time.Hour, time.Hour)), &o); err != nil {
		t.Fatal(err)
	}
	for k, v := range more {
		o[k] = v
	}
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheSameIdempotencyKeyGetsTheSameOrder(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.voucher(5, -time.Hour, time.Hour)
	buy := func(user, key string) (int, string) {
		status, _, body := l.call("POST", "/api/vouchers/"+v+"/orders", "", "X-User-ID: "+user, "Idempotency-Key: "+key)
		return status, body
	}
	status, first := buy("alice", "k-1")
	if status != 202 {
		t.Fatalf("got %d %s", status, first)
	}
	for range 3 {
		if status, body := buy("alice", "k-1"); status != 202 || body != first {
			t.Errorf("got %d %s, want 202 %s", status, body, first)
		}
	}
	if status, body := buy("alice", "k-2"); status != 409 || code(t, body) != "already_bought" {
		t.Errorf("got %d %s with another key, want 409 already_bought", status, body)
	}
	if status, body := buy("bob", "k-1"); status != 202 || body == first {
		t.Errorf("got %d %s for another buyer, want an order of his own", status, body)
	}
	if status, body := buy("carol", strings.Repeat("k", 65)); status != 400 || code(t, body) != "invalid" {
		t.Errorf("got %d %s for a key that is too long, want 400 invalid", status, body)
	}
}

func TestAVoucherSaysHowManyEachMayHaveAndHowManyMayWaitAndInHowManyBuckets(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	status, _, body := l.call("POST", "/api/vouchers", offerOf(t, 5, map[string]any{"perUser": 2, "maxInFlight": 50, "buckets": 16}), asOperator)
	if status != 201 {
		t.Fatalf("got %d %s", status, body)
	}
	id := field(t, body, "id")
	_, _, list := l.call("GET", "/api/vouchers", "", asOperator)
	if !strings.Contains(list, `"perUser":2,"maxInFlight":50,"buckets":16`) {
		t.Errorf("got %s, want all three numbers", list)
	}
	for i, want := range []int{202, 202, 409} {
		if status, _, body := l.buy(id, "X-User-ID: alice"); status != want {
			t.Errorf("click %d: got %d %s, want %d", i+1, status, body, want)
		}
	}
	for _, bad := range []map[string]any{{"perUser": 11}, {"perUser": -1}, {"maxInFlight": -1}, {"buckets": 65}, {"buckets": 16, "maxInFlight": 9}} {
		if status, _, body := l.call("POST", "/api/vouchers", offerOf(t, 5, bad), asOperator); status != 400 {
			t.Errorf("%v: got %d %s, want 400", bad, status, body)
		}
	}
}

func TestABuyerWhoWouldWaitTooLongIsToldWhenToComeAgain(t *testing.T) {
	l := newLab(t, "memory://orders", true) // nobody decides orders here
	status, _, body := l.call("POST", "/api/vouchers", offerOf(t, 5, map[string]any{"maxInFlight": 2}), asOperator)
	if status != 201 {
		t.Fatalf("got %d %s", status, body)
	}
	id := field(t, body, "id")
	for i, want := range []int{202, 202, 503, 503} {
		status, h, body := l.buy(id, "X-User-ID: u"+string(rune('a'+i)))
		if status != want || want == 503 && (code(t, body) != "busy" || h.Get("Retry-After") == "") {
			t.Errorf("click %d: got %d %s, Retry-After %q, want %d", i+1, status, body, h.Get("Retry-After"), want)
		}
	}
	voucher, err := sale.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	if left, _, err := l.gate.Left(t.Context(), voucher); err != nil || left != 3 {
		t.Errorf("got %d left, %v, want 3: who is turned away takes nothing", left, err)
	}
}

func TestABuyerSeesAllOrdersAndALateCopyOfAClickUndoesNoCancel(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	first := "/api/vouchers/" + v.String() + "/orders"
	_, _, b := l.call("POST", first, "", as("a"), "Idempotency-Key: k")
	cancelled := field(t, b, "orderId")
	l.decide(cancelled)
	l.want("POST", "/api/orders/"+cancelled+"/cancel", "", as("a"), 200, "cancelled")
	if status, _, b := l.call("POST", first, "", as("a"), "Idempotency-Key: k"); status != 202 || field(t, b, "orderId") != cancelled {
		t.Errorf("got %d %s for a late copy of the click, want order %s", status, b, cancelled)
	}
	l.wantLeft(v, 5)
	_, _, b = l.call("POST", first, "", as("a"))
	queued := field(t, b, "orderId")
	var own struct{ Orders []ownOrder }
	if status, _, b := l.call("GET", "/api/orders", "", as("a")); status != 200 || json.Unmarshal([]byte(b), &own) != nil || len(own.Orders) != 2 ||
		own.Orders[0].OrderID.String() != queued || own.Orders[0].Status != sale.Queued || own.Orders[1].Status != sale.Cancelled {
		t.Errorf("got %d %s, want order %s that waits and %s that is cancelled", status, b, queued, cancelled)
	}
}
