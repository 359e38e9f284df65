package learn

import (
	"math/rand/v2"
	"slices"
)

// Draw chooses n lessons by chance, the same ones for the same seed, in the order
// in which they are asked.
func Draw(all []Lesson, n int, seed uint64) []Lesson {
	drawn := slices.Clone(all)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn[:min(n, len(drawn))]
}
