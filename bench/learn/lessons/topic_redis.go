package lessons

import "queuelab/bench/learn"

func redisQueues() []learn.Lesson {
	return []learn.Lesson{
		popLoses(), pubsubHears(), pendingTaken(), streamIDs(), ackKeeps(), maxlenTrims(), groupFrom(), restartForgets(), clusterSlots(), scriptGone(),
	}
}
