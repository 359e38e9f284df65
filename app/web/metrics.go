package web

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"queuelab/app/sale"
	"queuelab/queue"
)

// Metrics is what /metrics shows. It implements sale.Observer and worker.Meter.
type Metrics struct {
	Registry *prometheus.Registry

	admissions *children[string, prometheus.Counter]
	admitTime  prometheus.Histogram
	publishes  *children[[2]string, prometheus.Counter] // outcome, by
	pubTime    prometheus.Histogram
	orders     *children[[2]string, prometheus.Counter] // status, reason
	orderTime  prometheus.Histogram
	requests   *children[request, prometheus.Observer]
	refusals   *children[string, prometheus.Counter]

	batchSize  prometheus.Histogram
	commitTime prometheus.Histogram
	waitTime   prometheus.Histogram
	givenUp    prometheus.Counter
	expired    prometheus.Counter
}

type request struct {
	route, method string
	status        int
}

// NewMetrics makes Metrics. backlog may be nil: the queue cannot tell.
func NewMetrics(backlog queue.Backlogger) *Metrics {
	fast := prometheus.ExponentialBuckets(0.0001, 2.5, 12) // 0.1 ms to 2.4 s
	slow := prometheus.ExponentialBuckets(0.001, 2.5, 13)  // 1 ms to 60 s
	r := prometheus.NewRegistry()
	m := &Metrics{
		Registry: r,
		admissions: counters(r, "seckill_admissions_total", "Clicks by the gate's verdict.", []string{"code"},
			func(code string) []string { return []string{code} }),
		admitTime: histogram(r, "seckill_admission_seconds", "Time until the gate answered a click.", fast),
		publishes: counters(r, "seckill_publishes_total", "Messages handed to the queue, by outcome, and by what handed them over.",
			[]string{"outcome", "by"}, func(k [2]string) []string { return k[:] }),
		pubTime: histogram(r, "seckill_publish_seconds", "Time until the queue answered a publish.", fast),
		orders: counters(r, "seckill_orders_total", "Orders decided by this process.", []string{"status", "reason"},
			func(k [2]string) []string { return k[:] }),
		orderTime: histogram(r, "seckill_order_seconds", "Time from the click to the commit of its order.", slow),
		refusals: counters(r, "seckill_refusals_total", "Answers that were an error, by their code.", []string{"code"},
			func(code string) []string { return []string{code} }),

		batchSize:  histogram(r, "seckill_batch_orders", "Orders in one transaction.", prometheus.ExponentialBuckets(1, 2, 11)),
		commitTime: histogram(r, "seckill_commit_seconds", "Time of a transaction, with its commit.", fast),
		waitTime:   histogram(r, "seckill_queue_wait_seconds", "Time from the click until a worker has the order.", slow),
		givenUp:    counter(r, "seckill_dead_letters_total", "Messages that this process gave up."),
		expired:    counter(r, "seckill_expired_total", "Orders that this process cancelled because their time to pay had ended."),
	}
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seckill_http_request_seconds",
		Help: "Time until a request was answered.", Buckets: slow}, []string{"route", "method", "status"})
	m.requests = &children[request, prometheus.Observer]{make: func(k request) prometheus.Observer {
		return requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status))
	}}
	r.MustRegister(requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin()
	if backlog != nil {
		r.MustRegister(backlogCollector{backlog})
	}
	return m
}

// begin makes the series that alerts and dashboards count on, so that the first
// one of a kind raises a number instead of making one.
func (m *Metrics) begin() {
	for v := sale.Admitted; v <= sale.Crowded; v++ {
		m.admissions.of(v.String())
	}
	m.admissions.of("error")
	for _, outcome := range []queue.Outcome{queue.Accepted, queue.Rejected, queue.Unknown} {
		m.publishes.of([2]string{outcome.String(), "click"})
	}
	m.orders.of([2]string{string(sale.Confirmed), ""})
	m.orders.of([2]string{string(sale.Failed), sale.ReasonSoldOut})
	for _, code := range []string{string(sale.CodeBusy), "rate_limited", "internal"} {
		m.refusals.of(code)
	}
	m.requests.of(request{"/metrics", fiber.MethodGet, fiber.StatusOK})
}

// Admission implements sale.Observer.
func (m *Metrics) Admission(verdict string, took time.Duration) {
	m.admissions.of(verdict).Inc()
	m.admitTime.Observe(took.Seconds())
}

// Publish implements sale.Observer.
func (m *Metrics) Publish(outcome, by string, took time.Duration) {
	m.publishes.of([2]string{outcome, by}).Inc()
	m.pubTime.Observe(took.Seconds())
}

// Decided implements sale.Observer.
func (m *Metrics) Decided(o sale.Order, after time.Duration) {
	m.orders.of([2]string{string(o.Status), o.Reason}).Inc()
	m.orderTime.Observe(after.Seconds())
}

// Took implements worker.Meter.
func (m *Metrics) Took(rs []sale.Reservation) {
	now := time.Now().UnixMilli()
	for i := range rs {
		m.waitTime.Observe(float64(max(0, now-rs[i].AtMillis)) / 1000)
	}
}

// Committed implements worker.Meter.
func (m *Metrics) Committed(orders int, took time.Duration) {
	m.batchSize.Observe(float64(orders))
	m.commitTime.Observe(took.Seconds())
}

// GaveUp implements worker.Meter.
func (m *Metrics) GaveUp() { m.givenUp.Inc() }

// Expired implements worker.Meter.
func (m *Metrics) Expired(orders int) { m.expired.Add(float64(orders)) }

// measure is a middleware. Its labels are routes, never paths: those are
// endless.
func (m *Metrics) measure(c *fiber.Ctx) error {
	began := time.Now()
	err := c.Next()
	if err != nil {
		// Writes the answer, so that its status is known here.
		if err := c.App().ErrorHandler(c, err); err != nil {
			return err
		}
	}
	m.requests.of(request{c.Route().Path, knownMethod(c.Method()), c.Response().StatusCode()}).Observe(time.Since(began).Seconds())
	return nil
}

// knownMethod returns a constant: fiber's string changes with the next request.
func knownMethod(m string) string {
	switch m {
	case fiber.MethodGet:
		return fiber.MethodGet
	case fiber.MethodPost:
		return fiber.MethodPost
	}
	return "other"
}
