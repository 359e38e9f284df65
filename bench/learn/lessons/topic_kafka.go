package lessons

import "queuelab/bench/learn"

func kafkaLog() []learn.Lesson {
	return []learn.Lesson{kafkaLinger(), kafkaCommit(), rebalance()}
}
