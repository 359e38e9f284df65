package admission_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

// plainScript is a handler's as every tutorial has it: stock, one per user.
const plainScript = `
if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 1 end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
redis.call('INCRBY', KEYS[1], -1)
redis.call('SADD', KEYS[2], ARGV[1])
return 0`

// rush has so many callers make b.N clicks and returns how many a second.
func rush(b *testing.B, callers, clicks int, click func(i int64) error) float64 {
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(clicks); i = next.Add(1) {
				if err := click(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(clicks) / time.Since(began).Seconds()
}

// BenchmarkAdmission compares the gate with a plain handler that runs one
// EVALSHA for each request, over the same Redis, turn by turn, with 256 callers.
// On two cores that buyers, gate and Redis shared with other work, on 2026-11-30:
// 26,000 a second for the plain one and 60,000 for ours, 2.3 times as many (1.9 to
// 2.7 in six runs); a million and more when all is gone.
func BenchmarkAdmission(b *testing.B) {
	url := brokertest.Start(b, "redis", "no-persistence").URL()
	o, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	o.MaxRetries, o.DisableIdentity = -1, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := redis.NewClient(o)
	defer c.Close()
	g := admission.NewRedis(redis.NewClient(o))
	defer g.Close()
	ctx := b.Context()
	plain := redis.NewScript(plainScript)
	if err := plain.Load(ctx, c).Err(); err != nil {
		b.Fatal(err)
	}
	const clicks, callers = 20_000, 256
	for _, sold := range []bool{true, false} {
		name := "everybody gets a unit"
		if !sold {
			name = "nearly all is gone"
		}
		b.Run(name, func(b *testing.B) {
			var shared, alone float64
			for range b.N {
				stock := int64(clicks)
				if !sold {
					stock = 100
				}
				v := open(stock, nil)
				if _, err := g.Load(ctx, v); err != nil {
					b.Fatal(err)
				}
				if err := c.Set(ctx, "plain:{1}:stock", stock, 0).Err(); err != nil {
					b.Fatal(err)
				}
				alone += rush(b, callers, clicks, func(i int64) error {
					return plain.EvalSha(ctx, c, []string{"plain:{1}:stock", "plain:{1}:users"}, fmt.Sprint("u", i)).Err()
				})
				shared += rush(b, callers, clicks, func(i int64) error {
					_, _, err := g.Admit(ctx, sale.Reservation{OrderID: sale.ID(i), VoucherID: v.ID, UserID: fmt.Sprint("u", i)})
					return err
				})
				if err := c.FlushDB(ctx).Err(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(alone/float64(b.N), "plain/s")
			b.ReportMetric(shared/float64(b.N), "ours/s")
			b.ReportMetric(shared/alone, "times")
			b.ReportMetric(0, "ns/op")
		})
	}
}
