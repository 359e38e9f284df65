package lessons

import "queuelab/bench/learn"

func criteria() []learn.Lesson {
	return []learn.Lesson{
		criterionRouting(), criterionReliability(), criterionReplay(), criterionBacklog(), criterionCluster(), criterionOrder(),
		criterionSpeed(), criterionProtocol(), criterionOperations(),
	}
}
