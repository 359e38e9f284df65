package lessons

import "queuelab/bench/learn"

func kafkaLog() []learn.Lesson {
	return []learn.Lesson{kafkaLinger(), kafkaAcks(), kafkaCommit(), rebalance()}
}
