package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/sale"
)

func as(user string) string { return "X-User-ID: " + user }

// confirmed is an order of a buyer that a worker has confirmed.
func (l *lab) confirmed(v sale.ID, user string) sale.ID {
	l.t.Helper()
	status, _, body := l.call("POST", "/api/vouchers/"+v.String()+"/orders", "", as(user))
	var a struct{ OrderID sale.ID }
	if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusAccepted {
		l.t.Fatalf("buy: got %d %s, %v", status, body, err)
	}
	r := sale.Reservation{OrderID: a.OrderID, VoucherID: v, UserID: user, AtMillis: 1}
	if _, err := l.store.Fulfil(l.t.Context(), []sale.Reservation{r}); err != nil {
		l.t.Fatal(err)
	}
	if err := l.gate.Settle(l.t.Context(), r); err != nil {
		l.t.Fatal(err)
	}
	return a.OrderID
}

// wantPaid is want for what the payment provider tells.
func (l *lab) wantPaid(order, payment string, cents int64, status int, word string) {
	l.t.Helper()
	id, err := sale.ParseID(strings.TrimPrefix(order, "/api/orders/"))
	if err != nil {
		l.t.Fatal(err)
	}
	p := sale.Payment{ID: payment, OrderID: id, Cents: cents}
	l.want("POST", order+"/pay", fmt.Sprintf(`{"paymentId":%q,"cents":%d}`, payment, cents), signatureHeader+": "+l.srv.o.Door.Provider.Sign(p, time.Now()), status, word)
}

// want calls and compares the status and the code, or the status of the order.
func (l *lab) want(method, path, body, who string, status int, word string) string {
	l.t.Helper()
	got, _, b := l.call(method, path, body, who)
	var a struct {
		Status, State string
		Error         struct{ Code string }
	}
	if err := json.Unmarshal([]byte(b), &a); err != nil {
		l.t.Fatalf("%s %s: got %d %q: %v", method, path, got, b, err)
	}
	if got != status || a.Status+a.State+a.Error.Code != word {
		l.t.Errorf("%s %s %s as %s: got %d %s, want %d %s", method, path, body, who, got, b, status, word)
	}
	return b
}

func (l *lab) wantLeft(v sale.ID, want int64) {
	l.t.Helper()
	gate, _, err := l.gate.Left(l.t.Context(), v)
	got, err2 := l.store.Voucher(l.t.Context(), v)
	if gate != want || got.Left != want {
		l.t.Errorf("got %d left at the gate and %d in the database, %v %v, want %d", gate, got.Left, err, err2, want)
	}
}

func (l *lab) toPay(more string) sale.ID {
	l.t.Helper()
	now := time.Now()
	body := fmt.Sprintf(`{"title":"tea","stock":5,"payValue":100,"actualValue":200,"beginTime":%q,"endTime":%q%s}`,
		now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339), more)
	status, _, b := l.call("POST", "/api/vouchers", body, asOperator)
	var a struct{ ID sale.ID }
	if err := json.Unmarshal([]byte(b), &a); err != nil || status != http.StatusCreated {
		l.t.Fatalf("create a voucher: got %d %s, %v", status, b, err)
	}
	return a.ID
}

func TestAnOrderIsPaidCancelledAndRefunded(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay(`,"payWithinSeconds":60`)
	a, b := "/api/orders/"+l.confirmed(v, "a").String(), "/api/orders/"+l.confirmed(v, "b").String()
	if body := l.want("GET", a, "", as("a"), 200, "confirmed"); !strings.Contains(body, `"payBy":"2`) {
		t.Errorf("got %s, want the time until which it is to be paid", body)
	}
	l.wantPaid(a, "p1", 99, 400, "invalid")
	l.want("POST", a+"/refund", "", asOperator, 409, "wrong_state")
	l.wantPaid(a, "p1", 100, 200, "paid")
	l.wantPaid(a, "p1", 100, 200, "paid")
	l.wantPaid(a, "p2", 100, 409, "already_paid")
	l.want("POST", a+"/cancel", "", as("a"), 409, "wrong_state")
	l.wantLeft(v, 3)

	l.want("POST", b+"/cancel", "", as("a"), 404, "not_found")
	l.want("POST", b+"/cancel", "", as("b"), 200, "cancelled")
	l.want("POST", b+"/cancel", "", as("b"), 200, "cancelled")
	l.wantLeft(v, 4)
	l.wantPaid(b, "p1", 100, 409, "too_late") // another order's payment of that name is another one
	l.want("POST", b+"/refund", "", asOperator, 409, "wrong_state")
	l.confirmed(v, "b") // who cancelled may buy again

	l.want("POST", a+"/refund", "", as("a"), 403, "forbidden")
	l.want("POST", a+"/refund", "", asOperator, 200, "refunded")
	l.want("POST", a+"/refund", "", asOperator, 200, "refunded")
	l.want("POST", a+"/cancel", "", as("a"), 409, "wrong_state")
	l.wantLeft(v, 4)
}

func TestAPaymentAfterTheDeadlineIsTooLateBeforeTheSweepToo(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	now := time.Now()
	v := sale.Voucher{ID: 77, Title: "tea", Stock: 5, Left: 5, PayValue: 1, Begin: now.Add(-time.Hour), End: now.Add(time.Hour), Created: now, PerUser: 1,
		PayWithin: time.Millisecond}
	if err := l.store.CreateVoucher(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	o := l.confirmed(v.ID, "a")
	for due := time.Duration(1); due > 0; {
		d, err := l.store.Due(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		due = d.Unpaid
	}
	l.wantPaid("/api/orders/"+o.String(), "p", 1, 409, "too_late")
	l.wantPaid("/api/orders/"+o.String(), "p", 1, 409, "too_late")
	var list struct {
		Payments []paymentAnswer
		Next     string
	}
	if _, _, b := l.call("GET", "/api/payments", "", asOperator); json.Unmarshal([]byte(b), &list) != nil || len(list.Payments) != 1 || list.Payments[0].PaymentID != "p" || list.Next != "" {
		t.Errorf("got %+v, want the one payment that is due back", list)
	}
	l.want("POST", "/api/orders/"+o.String()+"/payments/p/refund", "", as("a"), 403, "forbidden")
	l.want("POST", "/api/orders/"+o.String()+"/payments/p/refund", "", asOperator, 200, "refunded")
	l.want("POST", "/api/orders/"+o.String()+"/payments/p/refund", "", asOperator, 200, "refunded")
	l.want("POST", "/api/orders/"+o.String()+"/payments/q/refund", "", asOperator, 404, "not_found")
	l.want("POST", "/api/orders/x/payments/p/refund", "", asOperator, 404, "not_found")
}

func TestTheOperatorsRefundOfAPaymentClosesItsOrder(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	o := "/api/orders/" + l.confirmed(v, "a").String()
	const id = "a/b?c=%2F"
	l.wantPaid(o, id, 100, 200, "paid")
	l.want("POST", o+"/payments/"+url.PathEscape(id)+"/refund", "", asOperator, 200, "refunded")
	l.want("GET", o, "", as("a"), 200, "refunded")
	l.wantLeft(v, 5)
}

func TestWhatIsNoPaymentIsRefused(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	o := "/api/orders/" + l.confirmed(v, "a").String() + "/pay"
	for _, body := range []string{
		``, `[]`, `{}`, `{"paymentId":"p"}`, `{"cents":100}`, `{"paymentId":"","cents":100}`, `{"paymentId":"p","cents":-1}`,
		`{"paymentId":"p","cents":1.5}`, `{"paymentId":"p","cents":"100"}`, `{"paymentId":"p","cents":1e99}`, `{"paymentId":"p","cents":9223372036854775807}`,
		`{"paymentId":"a b","cents":100}`, `{"paymentId":"茶","cents":100}`, `{"paymentId":"\u0000","cents":100}`,
		`{"paymentId":"` + strings.Repeat("p", sale.MaxPaymentID+1) + `","cents":100}`, `{"paymentId":"p","cents":100,"more":1}`,
	} {
		l.want("POST", o, body, asOperator, 400, "invalid")
	}
	for _, id := range []string{"0", "x", "123", "-1", "9223372036854775808"} {
		l.want("POST", "/api/orders/"+id+"/pay", `{"paymentId":"p","cents":100}`, asOperator, 404, "not_found")
		l.want("POST", "/api/orders/"+id+"/checkout", "", as("a"), 404, "not_found")
		l.want("POST", "/api/orders/"+id+"/cancel", "", as("a"), 404, "not_found")
		l.want("POST", "/api/orders/"+id+"/refund", "", asOperator, 404, "not_found")
	}
	status, _, b := l.call("POST", "/api/vouchers/"+v.String()+"/orders", "", as("q"))
	var a struct{ OrderID sale.ID }
	if err := json.Unmarshal([]byte(b), &a); err != nil || status != http.StatusAccepted {
		t.Fatalf("got %d %s", status, b)
	}
	queued := "/api/orders/" + a.OrderID.String()
	l.wantPaid(queued, "p", 100, 409, "wrong_state")
	l.want("POST", queued+"/cancel", "", as("q"), 409, "wrong_state")
	l.want("POST", queued+"/refund", "", asOperator, 409, "wrong_state")
	for _, seconds := range []string{"-1", "2592001", "9223372036854775807"} {
		status, _, b := l.call("POST", "/api/vouchers", strings.Replace(offer(1, 0, time.Hour), "{", `{"payWithinSeconds":`+seconds+`,`, 1), asOperator)
		if status != 400 || !strings.Contains(b, "payWithinSeconds") {
			t.Errorf("%s seconds to pay: got %d %s, want a refusal that names it", seconds, status, b)
		}
	}
}

func TestDeadLettersAreListedReplayedAndDiscarded(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	failed := sale.Reservation{OrderID: 901, VoucherID: v, UserID: "a", AtMillis: 1}
	waits := sale.Reservation{OrderID: 902, VoucherID: v, UserID: "b", AtMillis: 1}
	drop := sale.Reservation{OrderID: 903, VoucherID: v, UserID: "c", AtMillis: 1}
	for _, r := range []sale.Reservation{failed, waits, drop} {
		if got, _, err := l.gate.Admit(t.Context(), r); err != nil || got != sale.Admitted {
			t.Fatal(got, err)
		}
		if err := l.store.DeadLetter(t.Context(), r.OrderID.String(), r.Encode(), "why"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.store.GiveUp(t.Context(), failed, "901", failed.Encode(), "undeliverable", "why again"); err != nil {
		t.Fatal(err)
	}
	const odd = "no/id? 茶%"
	if err := l.store.DeadLetter(t.Context(), odd, []byte("\xff{"), "unreadable"); err != nil {
		t.Fatal(err)
	}
	type page struct {
		Letters []letterAnswer
		Next    string
	}
	list := func(query string) (p page) {
		t.Helper()
		status, _, b := l.call("GET", "/api/dead-letters"+query, "", asOperator)
		if err := json.Unmarshal([]byte(b), &p); err != nil || status != 200 {
			t.Fatalf("got %d %s, %v", status, b, err)
		}
		return p
	}
	ids := func(p page) (s []string) {
		for _, l := range p.Letters {
			s = append(s, l.ID)
		}
		return s
	}
	first := list("?limit=3")
	second := list("?limit=3&below=" + url.QueryEscape(first.Next))
	if d := cmp.Diff([]string{odd, "903", "902", "901"}, append(ids(first), ids(second)...)); d != "" || second.Next != "" {
		t.Errorf("letters (-want +got):\n%s%q", d, second.Next)
	}
	if got := second.Letters[0]; got.Times != 2 || got.Reason != "why again" || got.Code != sale.Undecided || got.Order == nil || got.Order.Status != sale.Failed || got.Order.Reason != "undeliverable" {
		t.Errorf("got %+v, want it given up twice, with its failed order", got)
	}
	if got := first.Letters[0]; got.Body != "\uFFFD{" || got.Code != sale.Unreadable || got.Order != nil || got.State != sale.Open || got.DoneAt != nil {
		t.Errorf("got %+v, want the body that nobody can read", got)
	}

	letter := func(id, do string) string { return "/api/dead-letters/" + url.PathEscape(id) + "/" + do }
	l.want("GET", "/api/dead-letters", "", as("a"), 403, "forbidden")
	l.want("POST", letter("902", "replay"), "", as("b"), 403, "forbidden")
	l.want("POST", letter("902", "discard"), "", as("b"), 403, "forbidden")
	l.want("POST", letter("999", "replay"), "", asOperator, 404, "not_found")
	l.want("POST", letter("\xff", "discard"), "", asOperator, 404, "not_found")
	l.want("POST", letter("901", "replay"), "", asOperator, 409, "wrong_state")
	l.want("POST", letter("901", "discard"), "", asOperator, 200, "discarded")
	l.want("POST", letter("901", "replay"), "", asOperator, 409, "wrong_state")
	l.want("POST", letter("902", "replay"), "", asOperator, 200, "replayed")
	l.want("POST", letter("902", "replay"), "", asOperator, 200, "replayed")
	l.want("POST", letter("902", "discard"), "", asOperator, 409, "wrong_state")
	l.want("POST", letter(odd, "replay"), "", asOperator, 200, "replayed")
	body := l.want("POST", letter("903", "discard"), "", asOperator, 200, "discarded")
	var got letterAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.DoneBy != "operator" || got.DoneAt == nil || got.Order == nil || got.Order.Reason != sale.ReasonDiscarded {
		t.Errorf("got %s, %v, want who did it and when, and the failed order", body, err)
	}
	l.want("POST", letter("903", "discard"), "", asOperator, 200, "discarded")
	l.want("GET", "/api/orders/903", "", as("c"), 200, "failed")
	if left, _, err := l.gate.Left(t.Context(), v); err != nil || left != 4 {
		t.Errorf("got %d left at the gate, %v, want 4: those that were discarded are back", left, err)
	}
	if d := cmp.Diff([]string{"903", "901"}, ids(list("?state=discarded"))); d != "" {
		t.Errorf("discarded (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{odd, "903", "902", "901"}, ids(list("?state=all"))); d != "" {
		t.Errorf("all (-want +got):\n%s", d)
	}
	for _, q := range []string{"?state=lost", "?limit=0", "?limit=201", "?limit=x"} {
		l.want("GET", "/api/dead-letters"+q, "", asOperator, 400, "invalid")
	}

	c, err := l.queue.Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]string{}
	for len(published) < 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		ds, err := c.Receive(ctx, 10)
		cancel()
		if err != nil {
			t.Fatalf("got %v and %v, want two messages", published, err)
		}
		for _, d := range ds {
			published[d.ID] += string(d.Body)
		}
	}
	if d := cmp.Diff(map[string]string{"902": string(waits.Encode()), odd: "\xff{"}, published); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
}

func TestAReplayThatTheQueueRefusesLeavesTheLetterOpen(t *testing.T) {
	l := newLab(t, "memory://orders?capacity=1", true)
	for _, id := range []string{"m1", "m2"} {
		if err := l.store.DeadLetter(t.Context(), id, []byte("{"), "why"); err != nil {
			t.Fatal(err)
		}
	}
	l.want("POST", "/api/dead-letters/m1/replay", "", asOperator, 200, "replayed")
	l.want("POST", "/api/dead-letters/m2/replay", "", asOperator, 503, "busy")
	if got, err := l.store.Letter(t.Context(), "m2"); err != nil || got.State != sale.Open {
		t.Errorf("got %+v, %v, want it open", got, err)
	}
}

func FuzzLifeBodies(f *testing.F) {
	l := newLab(f, "memory://orders", true)
	f.Add("/api/orders/1/pay", `{"paymentId":"p","cents":1}`)
	f.Add("/api/orders/1/pay", `{"paymentId":"\ud800","cents":-1e5}`)
	f.Add("/api/dead-letters/%ff%00/replay", "x")
	f.Add("/api/orders/1/payments/%2e%2e%2f/refund", "{}")
	f.Add("/api/dead-letters?below=%00%ff&state=all&limit=7", "")
	f.Fuzz(func(t *testing.T, path, body string) {
		method := http.MethodPost
		if strings.HasPrefix(path, "/api/dead-letters?") || strings.HasPrefix(path, "/api/payments?") {
			method = http.MethodGet
		} else if !strings.HasPrefix(path, "/api/dead-letters/") && !strings.HasPrefix(path, "/api/orders/1/payments/") {
			path = "/api/orders/1/pay"
		}
		req, err := http.NewRequest(method, path, strings.NewReader(body))
		if err != nil {
			t.Skip(err)
		}
		req.Header.Set("Authorization", "Bearer "+operator)
		resp, err := l.srv.app.Test(req, -1)
		if err != nil {
			t.Skip(err) // larger than the limit: the connection is closed
		}
		defer resp.Body.Close()
		var any json.RawMessage
		if err := json.NewDecoder(resp.Body).Decode(&any); err != nil || resp.StatusCode >= 500 {
			t.Errorf("got %d %s, %v for %s %q", resp.StatusCode, any, err, path, body)
		}
	})
}
