package learn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"queuelab/bench/near"
)

// Find chooses lessons by number or by a word of their name or question. An
// unknown one is an error that suggests those nearest to it.
func Find(all []Lesson, wanted []string) ([]Lesson, error) {
	var found []Lesson
	for _, want := range wanted {
		if strings.TrimSpace(want) == "" {
			return nil, errors.New("there is none without a name: give a number, a name, or a word of the question")
		}
		some := match(all, want)
		if len(some) == 0 {
			return nil, fmt.Errorf("there is none called %q: %s", want, suggest(all, want))
		}
		for _, l := range some {
			if !slices.ContainsFunc(found, func(f Lesson) bool { return f.Number == l.Number }) {
				found = append(found, l)
			}
		}
	}
	return found, nil
}

func match(all []Lesson, want string) []Lesson {
	if n, err := strconv.Atoi(want); err == nil {
		return pick(all, func(l Lesson) bool { return l.Number == n })
	}
	word := strings.ToLower(strings.TrimSpace(want))
	if exact := pick(all, func(l Lesson) bool { return l.Name == word }); len(exact) > 0 {
		return exact
	}
	return pick(all, func(l Lesson) bool {
		return strings.Contains(l.Name, word) || strings.Contains(strings.ToLower(l.Question.EN), word) || strings.Contains(strings.ToLower(l.Question.ZH), word)
	})
}

func pick(all []Lesson, is func(Lesson) bool) []Lesson {
	return slices.DeleteFunc(slices.Clone(all), func(l Lesson) bool { return !is(l) })
}

// suggest names what was perhaps meant.
func suggest(all []Lesson, want string) string {
	if len(all) == 0 {
		return "there are none"
	}
	if n, err := strconv.Atoi(want); err == nil {
		best := slices.MinFunc(all, func(a, b Lesson) int { return apart(a.Number, n) - apart(b.Number, n) })
		return fmt.Sprintf("they go from %d to %d, and the nearest is %d, %s", all[0].Number, all[len(all)-1].Number, best.Number, best.Name)
	}
	best := slices.MinFunc(all, func(a, b Lesson) int { return distance(a.Name, want) - distance(b.Name, want) })
	return fmt.Sprintf("the nearest is %d, %s", best.Number, best.Name)
}

func apart(a, b int) int { return max(a-b, b-a) }

// distance is how many letters apart the nearest word of a name is.
func distance(name, want string) int {
	best := len(name) + len(want)
	for word := range strings.SplitSeq(name, "-") {
		best = min(best, near.Distance(word, strings.ToLower(want)))
	}
	return best
}
