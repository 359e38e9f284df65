package web

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"queuelab/app/sale"
	"queuelab/queue"
)

// children keeps the series of a metric by what they are about: to find one
// among a vector's labels takes ten times as long as to count. K is a closed set:
// nothing of a request's own goes into it.
type children[K comparable, V any] struct {
	make func(K) V
	mu   sync.RWMutex
	m    map[K]V
}

func (c *children[K, V]) of(k K) V {
	c.mu.RLock()
	v, ok := c.m[k]
	c.mu.RUnlock()
	if ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.m[k]; ok {
		return v
	}
	if c.m == nil {
		c.m = map[K]V{}
	}
	v = c.make(k)
	c.m[k] = v
	return v
}

func counters[K comparable](r *prometheus.Registry, name, help string, labels []string, values func(K) []string) *children[K, prometheus.Counter] {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(vec)
	return &children[K, prometheus.Counter]{make: func(k K) prometheus.Counter { return vec.WithLabelValues(values(k)...) }}
}

func counter(r *prometheus.Registry, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func histogram(r *prometheus.Registry, name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

// lookTime bounds how long somebody who asks for the metrics waits for others.
const lookTime = time.Second

// backlogCollector asks the queue when somebody asks for the metrics.
type backlogCollector struct{ queue.Backlogger }

var backlogDesc = prometheus.NewDesc("seckill_queue_messages", "Messages in the queue, by state, where the queue can tell.", []string{"state"}, nil)

// Describe implements prometheus.Collector.
func (b backlogCollector) Describe(ch chan<- *prometheus.Desc) { ch <- backlogDesc }

// Collect implements prometheus.Collector.
func (b backlogCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
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

// Parts are what can be asked how it is when somebody asks for the metrics. Nil:
// there is nothing to ask.
type Parts struct {
	Pools    func() map[string]sql.DBStats // of the database, by name
	Redis    func() *redis.PoolStats       // of the gate
	Letters  func(context.Context) (int64, error)
	Gate     sale.Auditor
	Vouchers func(ctx context.Context, asOf time.Time) ([]sale.ID, error) // whose marks are counted
	Waiting  func() int
}

// Watch adds what the parts tell.
func (m *Metrics) Watch(p Parts) { m.Registry.MustRegister(partsCollector{p}) }

type partsCollector struct{ Parts }

var (
	connsDesc = prometheus.NewDesc("seckill_pool_connections", "Connections, by pool and state.", []string{"pool", "state"}, nil)
	waitsDesc = prometheus.NewDesc("seckill_pool_waits_total", "How often somebody waited for a connection of the pool.", []string{"pool"}, nil)
	openDesc  = prometheus.NewDesc("seckill_dead_letters", "Dead letters that nobody has cared for.", nil, nil)
	waitDesc  = prometheus.NewDesc("seckill_waiting", "Orders whose decision a buyer waits for here, in a long poll or a stream.", nil, nil)
	marksDesc = prometheus.NewDesc("seckill_orders_in_flight", "Orders that were admitted and are not known to be decided.", nil, nil)
	// Of the gate and not of a worker: with none alive nobody else would tell.
	oldestDesc = prometheus.NewDesc("seckill_oldest_order_seconds", "How long ago the buyer clicked who waits longest for a decision; 0: nobody waits.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p partsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{connsDesc, waitsDesc, openDesc, marksDesc, oldestDesc, waitDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What does not answer is absent.
func (p partsCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	pool := func(name string, used, idle int, waits float64) {
		ch <- prometheus.MustNewConstMetric(connsDesc, prometheus.GaugeValue, float64(used), name, "in_use")
		ch <- prometheus.MustNewConstMetric(connsDesc, prometheus.GaugeValue, float64(idle), name, "idle")
		ch <- prometheus.MustNewConstMetric(waitsDesc, prometheus.CounterValue, waits, name)
	}
	if p.Pools != nil {
		for name, s := range p.Pools() {
			pool(name, s.InUse, s.Idle, float64(s.WaitCount))
		}
	}
	if p.Redis != nil {
		s := p.Redis()
		pool("redis", int(s.TotalConns)-int(s.IdleConns), int(s.IdleConns), float64(s.WaitCount))
	}
	if p.Waiting != nil {
		ch <- prometheus.MustNewConstMetric(waitDesc, prometheus.GaugeValue, float64(p.Waiting()))
	}
	if p.Letters != nil {
		if n, err := p.Letters(ctx); err == nil {
			ch <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(n))
		}
	}
	if n, oldest, err := p.inFlight(ctx); err == nil && p.Gate != nil {
		ch <- prometheus.MustNewConstMetric(marksDesc, prometheus.GaugeValue, float64(n))
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest.Seconds())
	}
}

func (p partsCollector) inFlight(ctx context.Context) (n int64, oldest time.Duration, err error) {
	if p.Gate == nil || p.Vouchers == nil {
		return 0, 0, nil
	}
	// The list of a moment ago costs no query.
	ids, err := p.Vouchers(ctx, time.Now().Add(-lookTime))
	for _, id := range ids {
		b, err := p.Gate.Book(ctx, id)
		var age time.Duration
		if err == nil && b.Marks > 0 {
			age, _, err = sale.OldestMark(ctx, p.Gate, id)
		}
		if errors.Is(err, sale.ErrUnreadable) {
			continue // the reconciler tells of it
		}
		if err != nil {
			return 0, 0, err
		}
		n, oldest = n+b.Marks, max(oldest, age)
	}
	return n, oldest, err
}
