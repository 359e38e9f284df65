package lessons

import "queuelab/bench/learn"

func orders() []learn.Lesson {
	return []learn.Lesson{orderTimeout(), payOrClose(), stockBack(), drift()}
}
