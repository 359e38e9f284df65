//go:build !linux

package load

import (
	"time"

	"queuelab/bench/ledger"
)

func sleepUntil(until int64) { time.Sleep(time.Duration(until - ledger.Now())) }
