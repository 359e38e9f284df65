package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"queuelab/app/door"
	"queuelab/app/sale"
)

// due is how many payments the operator sees as due back.
func (l *lab) due() int {
	l.t.Helper()
	var list struct{ Payments []paymentAnswer }
	if _, _, b := l.call("GET", "/api/payments?limit=200", "", asOperator); json.Unmarshal([]byte(b), &list) != nil {
		l.t.Fatalf("got %s, want payments", b)
	}
	return len(list.Payments)
}

func TestABuyerCannotInventMoney(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	id := l.confirmed(v, "a")
	o := "/api/orders/" + id.String()
	signed := l.srv.o.Door.Provider.Sign(sale.Payment{ID: "p", OrderID: id, Cents: 100}, time.Now())
	old := l.srv.o.Door.Provider.Sign(sale.Payment{ID: "p", OrderID: id, Cents: 100}, time.Now().Add(-time.Hour))
	forged := (&door.Provider{Key: []byte(strings.Repeat("x", 32))}).Sign(sale.Payment{ID: "p", OrderID: id, Cents: 100}, time.Now())
	for name, h := range map[string]string{"his word": "X: y", "a signature of another payment": signatureHeader + ": " + signed, "a forged one": signatureHeader + ": " + forged} {
		l.want("POST", o+"/pay", `{"paymentId":"I-promise","cents":100}`, h, 403, "payment_signature")
		if status, _, b := l.call("POST", o+"/pay", `{"paymentId":"I-promise","cents":100}`, h, as("a")); status != 403 {
			t.Errorf("%s: got %d %s, want 403", name, status, b)
		}
	}
	l.want("POST", o+"/pay", `{"paymentId":"p","cents":100}`, signatureHeader+": "+old, 403, "payment_signature")
	l.want("POST", o+"/cancel", "", as("a"), 200, "cancelled")
	for i := range 3 {
		l.call("POST", o+"/pay", fmt.Sprintf(`{"paymentId":"fr-%d","cents":100}`, i), as("a"))
	}
	if n := l.due(); n != 0 {
		t.Errorf("got %d payments due back, want none", n)
	}
	l.want("POST", o+"/pay", `{"paymentId":"cash","cents":100}`, asOperator, 409, "too_late")
	if n := l.due(); n != 1 {
		t.Errorf("got %d payments due back, want the operator's one", n)
	}
	l.srv.o.Door.Provider = nil
	l.want("POST", o+"/pay", `{"paymentId":"p","cents":100}`, signatureHeader+": "+signed, 403, "forbidden")
}

func TestAnOrderKeepsABoundedNumberOfPayments(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	o := "/api/orders/" + l.confirmed(l.toPay(""), "a").String()
	l.wantPaid(o, "p0", 100, 200, "paid")
	for i := 1; i < sale.MaxPayments; i++ {
		l.wantPaid(o, fmt.Sprint("p", i), 100, 409, "already_paid")
	}
	l.wantPaid(o, "one-more", 100, 400, "invalid")
	l.wantPaid(o, "p0", 100, 200, "paid")
	// Pages of payments go over all of them.
	seen, next := 0, ""
	for range sale.MaxPayments {
		var list struct {
			Payments []paymentAnswer
			Next     string
		}
		if _, _, b := l.call("GET", "/api/payments?limit=7&after="+next, "", asOperator); json.Unmarshal([]byte(b), &list) != nil {
			t.Fatalf("got %s, want payments", b)
		}
		seen += len(list.Payments)
		if next = list.Next; next == "" {
			break
		}
	}
	if seen != sale.MaxPayments-1 {
		t.Errorf("got %d payments due back on all pages, want %d", seen, sale.MaxPayments-1)
	}
	l.want("GET", "/api/payments?after=x", "", asOperator, 400, "invalid")
}

func TestAStandInPaysTheBuyersOwnOrderOnce(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	o := "/api/orders/" + l.confirmed(l.toPay(""), "a").String()
	if _, _, b := l.call("GET", "/api/session", ""); field(t, b, "payments") != "stand-in" {
		t.Errorf("got %s, want the stand-in named", b)
	}
	l.want("POST", o+"/checkout", "", as("b"), 404, "not_found")
	l.want("POST", o+"/checkout", "", as("a"), 200, "paid")
	l.want("POST", o+"/checkout", "", as("a"), 200, "paid")
	if n := l.due(); n != 0 {
		t.Errorf("got %d payments due back, want none: it was paid once", n)
	}
	l.srv.o.Door.Provider = &door.Provider{Key: []byte(providerKey)}
	l.want("POST", o+"/checkout", "", as("a"), 409, "wrong_state")
	if _, _, b := l.call("GET", "/api/session", ""); field(t, b, "payments") != "signed" {
		t.Errorf("got %s, want no stand-in", b)
	}
}
