package reconcile_test

import (
	"context"
	"testing"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

// bucketed is a gate that keeps each voucher in eight parts.
type bucketed struct{ *admission.Redis }

func (g bucketed) Load(ctx context.Context, v sale.Voucher) (bool, error) {
	v.Buckets = 8
	return g.Redis.Load(ctx, v)
}

func inBuckets(t *testing.T) gate {
	g, err := admission.OpenRedis(t.Context(), brokertest.Start(t, "redis", "no-persistence").URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return bucketed{g}
}
