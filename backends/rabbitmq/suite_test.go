package rabbitmq

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestSuite(t *testing.T) {
	for name, setting := range map[string]string{
		// The suite holds a hundred deliveries at once.
		"classic":   "type=classic&prefetch=128",
		"quorum":    "type=quorum&prefetch=128",
		"transient": "persistent=false&confirm=false&auto-ack=true",
	} {
		t.Run(name, func(t *testing.T) {
			b := lab(t)
			var opened atomic.Int64 // when a queue was last opened
			parsed := func(name string, params []string) *url.URL {
				u, err := url.Parse(b.QueueURL("amqp", name, strings.Join(append(params, setting, "settle=0s"), "&")))
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			queuetest.Run(t, queuetest.Harness{
				Open: func(t testing.TB, name string, params ...string) queue.Queue {
					t.Helper()
					q, err := Open(soon(t), parsed(name, params))
					if err != nil {
						t.Fatal(err)
					}
					opened.Store(time.Now().UnixNano())
					return q
				},
				OpenErr: func(params ...string) error {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					defer cancel()
					q, err := Open(ctx, parsed("open-err-"+name, params))
					if err != nil {
						return err
					}
					return errors.Join(q.Delete(ctx), q.Close())
				},
				Crash: func(t testing.TB) {
					t.Helper()
					// Each of a hundred queues would wait for this when it is opened.
					time.Sleep(time.Until(time.Unix(0, opened.Load()).Add(settleTime)))
					if err := b.Kill(soon(t)); err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
					defer cancel()
					if err := b.Restart(ctx); err != nil {
						t.Fatal(err)
					}
				},
				Freeze: func(t testing.TB) func() {
					t.Helper()
					if err := b.Pause(soon(t)); err != nil {
						t.Fatal(err)
					}
					return func() {
						if err := b.Resume(soon(t)); err != nil {
							t.Error(err)
						}
					}
				},
				Redelivery: time.Second,
			})
		})
	}
}
