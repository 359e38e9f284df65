package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/queue"
)

// comparison is of a lab's own parts.
func comparison(l *lab, loader *sale.Loader) *reconcile.Reconciler {
	backlog, _ := l.queue.(queue.Backlogger)
	return &reconcile.Reconciler{Gate: l.gate.(reconcile.Gate), Store: l.store, Vouchers: loader.Recent, Backlog: backlog, Log: slog.New(slog.DiscardHandler), Every: time.Minute}
}

func TestAnOperatorSeesTheLedgerAndWhatDrifts(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	v := l.toPay("")
	l.confirmed(v, "a")
	lost := l.confirmed(v, "b")
	l.want("GET", "/api/operator/ledger", "", as("a"), http.StatusForbidden, "forbidden")
	l.want("GET", "/api/operator/drift", "", as("a"), http.StatusForbidden, "forbidden")
	l.want("GET", "/api/operator/ledger?limit=0", "", asOperator, http.StatusBadRequest, "invalid")
	l.want("GET", "/api/operator/ledger?limit=abc", "", asOperator, http.StatusBadRequest, "invalid")

	get := func(path string, into any) {
		t.Helper()
		status, _, body := l.call("GET", path, "", asOperator)
		if err := json.Unmarshal([]byte(body), into); err != nil || status != http.StatusOK {
			t.Fatalf("%s: got %d %s, %v", path, status, body, err)
		}
	}
	ledger := func() reconcile.AccountReport {
		t.Helper()
		var got struct {
			Vouchers []reconcile.AccountReport
			Queue    *reconcile.QueueReport
		}
		get("/api/operator/ledger", &got)
		if len(got.Vouchers) != 1 || got.Queue == nil || *got.Queue.Ready != 2 {
			t.Fatalf("got %+v, want one voucher, and a queue whose two orders nobody has taken", got)
		}
		return got.Vouchers[0]
	}
	if a := ledger(); !a.Balanced || a.Stock != 5 || a.Left != 3 || a.Held != 2 || a.Gate == nil || a.Gate.Left != 3 || len(a.Wrong) != 0 {
		t.Errorf("got %+v %+v, want it balanced", a, a.Gate)
	}
	// The gate forgets a buyer.
	if _, err := l.gate.Release(t.Context(), sale.Reservation{OrderID: lost, VoucherID: v, UserID: "b"}); err != nil {
		t.Fatal(err)
	}
	if a := ledger(); a.Balanced || len(a.Wrong) != 1 {
		t.Errorf("got %+v, want one sentence about the gate", a)
	}

	var drift struct {
		At      *string
		Drift   []reconcile.DriftReport
		Repairs []reconcile.DriftReport
	}
	get("/api/operator/drift", &drift)
	if drift.At != nil || drift.Drift == nil || drift.Repairs == nil {
		t.Errorf("got %+v, want lists and no time before the first look", drift)
	}
	for range 2 {
		if _, err := l.reconcile.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	get("/api/operator/drift", &drift)
	if drift.At == nil || len(drift.Drift) != 1 || drift.Drift[0].Kind != reconcile.OrderWithoutBuyer || drift.Drift[0].OrderID == nil || *drift.Drift[0].OrderID != lost {
		t.Errorf("got %+v, want the order without a buyer", drift)
	}
	vouchers := l.reconcile.Vouchers
	l.reconcile.Vouchers = func(context.Context, time.Time) ([]sale.ID, error) { return nil, errors.New("the list is away") }
	if _, err := l.reconcile.Once(t.Context()); err == nil {
		t.Error("got no error, want a look that fails")
	}
	l.reconcile.Vouchers = vouchers
	var failed struct {
		Failed bool
		Reason *string
	}
	if get("/api/operator/drift", &failed); !failed.Failed || failed.Reason == nil || !strings.Contains(*failed.Reason, "the list is away") {
		t.Errorf("got %+v, want the reason", failed)
	}
	_, _, metrics := l.call("GET", "/metrics", "")
	for _, want := range []string{`seckill_drift{kind="order_without_buyer"} 1`, `seckill_drift_found_total{kind="oversold"} 0`, "seckill_reconciled_timestamp_seconds"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("got no %q in the metrics", want)
		}
	}
}
