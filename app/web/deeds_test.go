package web

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestWhatOperatorsDoIsWrittenDown(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	var log lockedLog
	l.srv.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	v := l.voucher(5, -time.Hour, time.Hour)
	if got := log.String(); !strings.Contains(got, `deed="POST /api/vouchers" by=operator made=`+v) {
		t.Errorf("got log %q, want who made voucher %s", got, v)
	}
	before := strings.Count(log.String(), "deed=")
	l.buy(v, "X-User-ID: ann") // no operator
	l.call("GET", "/api/operator/ledger", "", "Authorization: Bearer "+operator)
	l.call("POST", "/api/vouchers", "{}", "Authorization: Bearer "+operator) // refused
	l.call("POST", "/api/vouchers", "{}", "X-User-ID: ann")
	if got := strings.Count(log.String(), "deed="); got != before {
		t.Errorf("got log %q, want no more than the one deed", log.String())
	}
}
