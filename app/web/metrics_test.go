package web

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"queuelab/app/sale"
	"queuelab/queue"
)

func TestCountingAllocatesNothing(t *testing.T) {
	m := NewMetrics(nil)
	o := sale.Order{Status: sale.Confirmed}
	rs := make([]sale.Reservation, 64)
	got := testing.AllocsPerRun(200, func() {
		m.Admission("admitted", time.Millisecond)
		m.Publish("accepted", "click", time.Millisecond)
		m.Decided(o, time.Millisecond)
		m.Took(rs)
		m.Committed(64, time.Millisecond)
		m.refusals.of("busy").Inc()
		m.requests.of(request{"/metrics", "GET", 200}).Observe(1)
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// shown is the value of each series, with its labels' values behind its name.
func shown(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = valueOf(s)
		}
	}
	return got
}

func valueOf(s *dto.Metric) float64 {
	switch {
	case s.GetCounter() != nil:
		return s.GetCounter().GetValue()
	case s.GetGauge() != nil:
		return s.GetGauge().GetValue()
	}
	return float64(s.GetHistogram().GetSampleCount())
}

type aBacklog struct {
	n   int64
	err error
}

func (b *aBacklog) Backlog(context.Context) (queue.Backlog, error) {
	return queue.Backlog{Ready: b.n, InFlight: 0, Dead: -1}, b.err
}

func TestMetricsTellOfTheQueue(t *testing.T) {
	b := &aBacklog{n: 3}
	m := NewMetrics(b)
	got := shown(t, m)
	if got["seckill_queue_messages ready"] != 3 {
		t.Errorf("got %v ready, want 3", got["seckill_queue_messages ready"])
	}
	if _, told := got["seckill_queue_messages dead"]; told {
		t.Error("got a number of dead messages, which the queue does not tell")
	}
	b.err = errors.New("away")
	if _, told := shown(t, m)["seckill_queue_messages ready"]; told {
		t.Error("got a number from a queue that is away")
	}
}

type aGate struct {
	sale.Auditor
	err error
}

func (g *aGate) Book(_ context.Context, v sale.ID) (sale.Book, error) {
	if v == unreadable {
		return sale.Book{}, fmt.Errorf("%w: WRONGTYPE", sale.ErrUnreadable)
	}
	return sale.Book{Marks: int64(v)}, g.err
}

// unreadable is a voucher that nobody can read.
const unreadable = 30

func (g *aGate) Marked(_ context.Context, v sale.ID, cursor uint64) ([]sale.Mark, uint64, error) {
	if cursor == 0 {
		return []sale.Mark{{Age: time.Second}, {Unread: &sale.Scrap{}}}, 1, nil
	}
	return []sale.Mark{{Age: time.Duration(v) * time.Minute}}, 0, nil
}

func TestMetricsTellOfTheParts(t *testing.T) {
	m, gate := NewMetrics(nil), &aGate{}
	m.Watch(Parts{
		Pools: func() map[string]sql.DBStats {
			return map[string]sql.DBStats{"database": {InUse: 2, Idle: 1, WaitCount: 7}}
		},
		Letters:  func(context.Context) (int64, error) { return 4, nil },
		Gate:     gate,
		Vouchers: func(context.Context, time.Time) ([]sale.ID, error) { return []sale.ID{20, unreadable, 10}, nil },
		Waiting:  func() int { return 5 },
	})
	m.Expired(2)
	m.GaveUp()
	got := shown(t, m)
	for name, want := range map[string]float64{"seckill_pool_connections database in_use": 2, "seckill_pool_connections database idle": 1,
		"seckill_pool_waits_total database": 7, "seckill_dead_letters": 4, "seckill_orders_in_flight": 30, "seckill_oldest_order_seconds": 1200, "seckill_waiting": 5,
		"seckill_expired_total": 2, "seckill_dead_letters_total": 1} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	gate.err = errors.New("away")
	if _, told := shown(t, m)["seckill_orders_in_flight"]; told {
		t.Error("got a number from a gate that is away")
	}
}
