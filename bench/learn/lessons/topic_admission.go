package lessons

import "queuelab/bench/learn"

func admission() []learn.Lesson {
	return []learn.Lesson{scriptRollback(), oversell(), undersell(), onePerBuyer(), admitPublish(), retryTwice()}
}
