package broker_test

import (
	"context"
	"testing"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestBrokerAnswersAfterEveryFault(t *testing.T) {
	for _, kind := range broker.Kinds() {
		t.Run(kind, func(t *testing.T) {
			ctx := within(t, 4*time.Minute)
			b := brokertest.Start(t, kind, "")
			v, err := b.Version(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.Settings(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(v, s)
			if err := b.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.Ready(ctx); err == nil {
				t.Fatal("got an answer from a killed broker, want an error")
			}
			began := time.Now()
			if err := b.Restart(ctx); err != nil {
				t.Fatal(err)
			}
			t.Logf("restarted in %v", time.Since(began))
		})
	}
}
