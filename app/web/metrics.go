package web

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"queuelab/app/sale"
	"queuelab/queue"
)

// Metrics is what /metrics shows. It implements sale.Observer.
type Metrics struct {
	Registry *prometheus.Registry

	admissions *prometheus.CounterVec
	admitTime  prometheus.Histogram
	publishes  *prometheus.CounterVec
	pubTime    prometheus.Histogram
	orders     *prometheus.CounterVec
	orderTime  prometheus.Histogram
	requests   *prometheus.HistogramVec
}

// NewMetrics makes Metrics. backlog may be nil: the queue cannot tell.
func NewMetrics(backlog queue.Backlogger) *Metrics {
	fast := prometheus.ExponentialBuckets(0.0001, 2.5, 12) // 0.1 ms to 2.4 s
	slow := prometheus.ExponentialBuckets(0.001, 2.5, 13)  // 1 ms to 60 s
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seckill_admissions_total",
			Help: "Clicks by the gate's verdict."}, []string{"code"}),
		admitTime: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seckill_admission_seconds",
			Help: "Time until the gate answered a click.", Buckets: fast}),
		publishes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seckill_publishes_total",
			Help: "Messages handed to the queue, by outcome, and by what handed them over."}, []string{"outcome", "by"}),
		pubTime: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seckill_publish_seconds",
			Help: "Time until the queue answered a publish.", Buckets: fast}),
		orders: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "seckill_orders_total",
			Help: "Orders decided by this process."}, []string{"status", "reason"}),
		orderTime: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seckill_order_seconds",
			Help: "Time from the click to the commit of its order.", Buckets: slow}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seckill_http_request_seconds",
			Help: "Time until a request was answered.", Buckets: slow}, []string{"route", "method", "status"}),
	}
	m.Registry.MustRegister(m.admissions, m.admitTime, m.publishes, m.pubTime, m.orders, m.orderTime, m.requests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if backlog != nil {
		m.Registry.MustRegister(backlogCollector{backlog})
	}
	return m
}

// Admission implements sale.Observer.
func (m *Metrics) Admission(verdict string, took time.Duration) {
	m.admissions.WithLabelValues(verdict).Inc()
	m.admitTime.Observe(took.Seconds())
}

// Publish implements sale.Observer.
func (m *Metrics) Publish(outcome, by string, took time.Duration) {
	m.publishes.WithLabelValues(outcome, by).Inc()
	m.pubTime.Observe(took.Seconds())
}

// Decided implements sale.Observer.
func (m *Metrics) Decided(o sale.Order, after time.Duration) {
	m.orders.WithLabelValues(string(o.Status), o.Reason).Inc()
	m.orderTime.Observe(after.Seconds())
}

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
	m.requests.WithLabelValues(c.Route().Path, knownMethod(c.Method()), strconv.Itoa(c.Response().StatusCode())).Observe(time.Since(began).Seconds())
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

// backlogCollector asks the queue when somebody asks for the metrics.
type backlogCollector struct{ queue.Backlogger }

var backlogDesc = prometheus.NewDesc("seckill_queue_messages",
	"Messages in the queue, by state, where the queue can tell.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (b backlogCollector) Describe(ch chan<- *prometheus.Desc) { ch <- backlogDesc }

// Collect implements prometheus.Collector.
func (b backlogCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	got, err := b.Backlog(ctx)
	if err != nil {
		return // absent, like a queue that cannot be reached
	}
	for state, n := range map[string]int64{"ready": got.Ready, "in_flight": got.InFlight, "dead": got.Dead} {
		if n >= 0 {
			ch <- prometheus.MustNewConstMetric(backlogDesc, prometheus.GaugeValue, float64(n), state)
		}
	}
}
