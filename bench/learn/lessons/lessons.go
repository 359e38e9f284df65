// Package lessons holds the lessons, a file each, and a list for each topic.
// README.md of this folder shows how to add one.
package lessons

import (
	"cmp"
	"slices"

	"queuelab/bench/learn"
)

// All lists every lesson, by number.
func All() []learn.Lesson {
	all := slices.Concat(
		basics(), redisQueues(), rabbitMQ(), kafkaLog(), consuming(), admission(), orders(), running(), criteria(),
	)
	slices.SortFunc(all, func(a, b learn.Lesson) int { return cmp.Compare(a.Number, b.Number) })
	return all
}
