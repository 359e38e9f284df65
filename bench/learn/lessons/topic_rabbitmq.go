package lessons

import "queuelab/bench/learn"

func rabbitMQ() []learn.Lesson {
	return []learn.Lesson{prefetch(), confirmAndMandatory(), queueFull(), ttlHead(), poison()}
}
