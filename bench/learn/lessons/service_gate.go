package lessons

import (
	"context"
	"fmt"
	"slices"

	"queuelab/bench/learn"
)

// inGate are the keys of a voucher that the service has in Redis, whichever tag
// they have; of is one kind of them, as of gateKey, or "*".
func inGate(s *learn.Stand, voucher, of string) (keys []string) {
	// A lesson that has ended tidies up with it too.
	ctx := context.WithoutCancel(s.Context())
	it := s.RedisUnseen().Scan(ctx, 0, "seckill:*"+voucher+"*:"+of, 1000).Iterator()
	for it.Next(ctx) {
		keys = append(keys, it.Val())
	}
	s.Must(it.Err())
	slices.Sort(keys)
	return keys
}

// forgetVoucher deletes what the service's gate has of it, when the lesson is over.
func forgetVoucher(s *learn.Stand, voucher string) {
	unseen := s.RedisUnseen()
	ctx := context.WithoutCancel(s.Context())
	s.After(func() error {
		// None where a broker of the lesson's own is gone.
		keys := unseen.Keys(ctx, "seckill:*"+voucher+"*").Val()
		if len(keys) == 0 {
			return nil
		}
		return unseen.Del(ctx, keys...).Err()
	})
}

// leftAtGate is how many units the service's gate has.
func leftAtGate(s *learn.Stand, voucher string) (n int64) {
	unseen := s.RedisUnseen()
	for _, key := range inGate(s, voucher, "sale") {
		n += s.Int(unseen, "HGET", key, "stock")
	}
	return n
}

// id is a voucher's as the database has it.
func id(s *learn.Stand, text string) (n int64) {
	_, err := fmt.Sscan(text, &n)
	s.Must(err)
	return n
}
