package lessons

import "queuelab/bench/learn"

func consuming() []learn.Lesson {
	return []learn.Lesson{effectOnce(), ackWhen(), order(), backlog()}
}
