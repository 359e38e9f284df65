package web

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"queuelab/app/reconcile"
)

// reconcileRoutes show an operator the ledger equation and what stands against it.
func (s *Server) reconcileRoutes(api fiber.Router) {
	if s.o.Reconcile == nil {
		return
	}
	s.o.Metrics.Registry.MustRegister(driftCollector{s.o.Reconcile})
	api.Get("/operator/ledger", s.ledger)
	api.Get("/operator/drift", s.drift)
}

// ledger reads the numbers of now, of the newest vouchers: ?limit=, 50 if it is
// not given.
func (s *Server) ledger(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	limit := 50
	if q := c.Query("limit"); q != "" {
		var err error
		if limit, err = strconv.Atoi(q); err != nil || limit < 1 || limit > 1000 {
			return failure(fiber.StatusBadRequest, "invalid", "limit must be from 1 to 1000")
		}
	}
	ctx, cancel := timed(c)
	defer cancel()
	l, err := s.o.Reconcile.Ledger(ctx, limit)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"at": l.At.UTC(), "vouchers": reconcile.ReportAccounts(l.Accounts), "queue": reconcile.ReportQueue(l.Queue)})
}

// drift tells what the last look of this instance found. at is null before the
// first one, and reason where that look got to its end.
func (s *Server) drift(c *fiber.Ctx) error {
	if _, err := s.onlyOperator(c); err != nil {
		return err
	}
	st := s.o.Reconcile.State()
	var at *time.Time
	if !st.At.IsZero() {
		t := st.At.UTC()
		at = &t
	}
	var reason *string
	if st.Err != nil {
		text := st.Err.Error()
		reason = &text
	}
	return c.JSON(fiber.Map{
		"at": at, "everySeconds": s.o.Reconcile.Every.Seconds(), "failed": st.Err != nil, "reason": reason,
		"drift": reconcile.ReportDrift(st.Drift), "inFlight": len(st.Found) - len(st.Drift), "waiting": st.Waiting,
		"repairs": reconcile.ReportDrift(st.Repairs),
	})
}

// driftCollector tells what this instance's reconciler knows.
type driftCollector struct{ r *reconcile.Reconciler }

var (
	driftDesc = prometheus.NewDesc("seckill_drift", "Differences of gate, queue and database that stand, by kind.", []string{"kind"}, nil)
	foundDesc = prometheus.NewDesc("seckill_drift_found_total", "Differences that this process found to stand.", []string{"kind"}, nil)
	doneDesc  = prometheus.NewDesc("seckill_drift_repaired_total", "Repairs by this process.", []string{"kind"}, nil)
	lookDesc  = prometheus.NewDesc("seckill_reconciled_timestamp_seconds", "When this process last compared gate, queue and database.", nil, nil)
)

// Describe implements prometheus.Collector.
func (d driftCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{driftDesc, foundDesc, doneDesc, lookDesc} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (d driftCollector) Collect(ch chan<- prometheus.Metric) {
	st := d.r.State()
	if st.At.IsZero() {
		return
	}
	ch <- prometheus.MustNewConstMetric(lookDesc, prometheus.GaugeValue, float64(st.At.UnixMilli())/1000)
	now := map[reconcile.Kind]int64{}
	for _, drift := range st.Drift {
		now[drift.Kind]++
	}
	// Every kind, so that the first one raises a number instead of making one.
	for _, k := range reconcile.Kinds() {
		ch <- prometheus.MustNewConstMetric(driftDesc, prometheus.GaugeValue, float64(now[k]), string(k))
		ch <- prometheus.MustNewConstMetric(foundDesc, prometheus.CounterValue, float64(st.Seen[k]), string(k))
		ch <- prometheus.MustNewConstMetric(doneDesc, prometheus.CounterValue, float64(st.Done[k]), string(k))
	}
}
