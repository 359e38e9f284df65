package lessons

import "queuelab/bench/learn"

func basics() []learn.Lesson {
	return []learn.Lesson{memoryDies(), sixQueues()}
}
