package lessons

import "queuelab/bench/learn"

func running() []learn.Lesson {
	return []learn.Lesson{
		buckets(), soldOutMark(), rateLimits(), orderIDs(), longPoll(), fiberStrings(), async(), graceful(), busyNotSold(),
	}
}
