package memory_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/backends/memory"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, raw string) queue.Queue {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := memory.Open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestConformance(t *testing.T) {
	for _, setting := range []string{"full=block", "full=reject", "capacity=128", "capacity=128&full=reject"} {
		t.Run(setting, func(t *testing.T) {
			queuetest.Run(t, queuetest.Harness{
				Open: func(t testing.TB, name string, params ...string) queue.Queue {
					return open(t, "memory://"+name+"?"+strings.Join(append(params, setting), "&"))
				},
				OpenErr: func(params ...string) error {
					q, err := memory.Open(t.Context(), &url.URL{Scheme: "memory", Host: "orders", RawQuery: strings.Join(append(params, setting), "&")})
					if err != nil {
						return err
					}
					return q.Close()
				},
				Redelivery: 50 * time.Millisecond,
				Arrival:    5 * time.Second,
			})
		})
	}
}
