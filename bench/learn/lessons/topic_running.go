package lessons

import "queuelab/bench/learn"

func running() []learn.Lesson {
	return []learn.Lesson{
		buckets(), soldOutMark(), longPoll(), async(), graceful(), busyNotSold(),
	}
}
