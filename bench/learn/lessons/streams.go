package lessons

import (
	"github.com/redis/go-redis/v9"

	"queuelab/bench/learn"
)

// entry is one of a Stream, as a reader sees it; without fields it was deleted.
type entry struct {
	id     string
	fields any
}

// entries does a command that reads one Stream, and returns what it gave.
func entries(s *learn.Stand, c redis.Cmdable, args ...any) []entry {
	var es []entry
	switch streams := s.Do(c, args...).(type) {
	case nil:
	case map[any]any: // as RESP3 has it
		for _, of := range streams {
			es = entriesOf(of)
		}
	default:
		s.Fail("%v is answered by %v, which is no Stream's entries", args, streams)
	}
	return es
}

func entriesOf(answer any) (es []entry) {
	list, _ := answer.([]any)
	for _, e := range list {
		if e, ok := e.([]any); ok && len(e) == 2 {
			es = append(es, entry{e[0].(string), e[1]})
		}
	}
	return es
}
