package broker_test

import (
	"context"
	"fmt"
	"os"

	"queuelab/bench/broker"
)

// lifeVar makes this test binary a command with a broker: a victim.
const lifeVar = "QUEUELAB_TEST_LIFE"

// live starts a broker, says so, and kills and restarts it until somebody kills
// this process. It never returns.
func live(kind string) {
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Options{Kind: kind, Log: os.Stdout})
	for err == nil {
		fmt.Println("served")
		if err = b.Kill(ctx); err == nil {
			err = b.Restart(ctx)
		}
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}
