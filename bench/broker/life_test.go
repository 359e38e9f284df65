package broker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/storage"
)

// lifeVar makes this test binary a command with a broker: a victim.
const lifeVar = "QUEUELAB_TEST_LIFE"

// live starts a broker, says so, and kills and restarts it until somebody kills
// this process. It never returns.
func live(kind string) {
	ctx := context.Background()
	if name, ok := strings.CutPrefix(kind, "storage:"); ok {
		liveOnStorage(ctx, name)
	}
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

// liveOnStorage does the same with what can lose power, and loses it.
func liveOnStorage(ctx context.Context, kind string) {
	b, err := broker.Start(ctx, broker.Options{Kind: kind, Log: os.Stdout, Storage: true})
	for err == nil {
		fmt.Println("served")
		if err = b.DelaySync(ctx, 50*time.Millisecond); err != nil {
			break
		}
		if _, err = b.CutPower(ctx); err != nil {
			break
		}
		fmt.Println("cut")
		if err = b.RestartFrom(ctx, storage.Crash); err != nil {
			break
		}
		fmt.Println("back")
		err = b.RestartFrom(ctx, storage.Power)
	}
	fmt.Println("failed:", err)
	os.Exit(1)
}
