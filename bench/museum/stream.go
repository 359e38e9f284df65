package museum

import (
	"context"

	"github.com/redis/go-redis/v9"

	"queuelab/bench/learn"
)

// entry is one of a Stream.
type entry struct {
	id     string
	fields map[string]string
}

// read does a command that reads one Stream; an error is Redis'.
func read(s *learn.Stand, c redis.Cmdable, args ...any) (es []entry, err error) {
	answer, err := s.Ask(c, args...)
	streams, _ := answer.(map[any]any) // nil: there is nothing
	for _, of := range streams {
		list, _ := of.([]any)
		for _, one := range list {
			pair, _ := one.([]any)
			values, _ := pair[1].([]any)
			e := entry{pair[0].(string), map[string]string{}}
			for i := 0; i+1 < len(values); i += 2 {
				e.fields[values[i].(string)], _ = values[i+1].(string)
			}
			es = append(es, e)
		}
	}
	return es, err
}

// group reads as a consumer of the group g, which the exhibits use; from is ">",
// or "0" for what is pending.
func group(s *learn.Stand, c redis.Cmdable, consumer, stream, from string, count int) []entry {
	es, err := read(s, c, "XREADGROUP", "GROUP", "g", consumer, "COUNT", count, "STREAMS", stream, from)
	s.Must(err)
	return es
}

// stream is a new one with a group g and n orders, which is removed in the end.
func stream(s *learn.Stand, c redis.Cmdable, name string, n int) string {
	key := s.Name(name)
	gone(s, key)
	s.Do(c, "XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
	send(s, c, key, n)
	return key
}

func send(s *learn.Stand, c redis.Cmdable, key string, n int) {
	for i := range n {
		s.Do(c, "XADD", key, "*", "order", i+1, "run", s.ID)
	}
}

// gone leaves no such keys in a Redis that others share.
func gone(s *learn.Stand, keys ...string) {
	c := s.RedisUnseen()
	s.After(func() error { return c.Del(context.WithoutCancel(s.Context()), keys...).Err() })
}

func pending(s *learn.Stand, c redis.Cmdable, key string) int64 {
	summary, _ := s.Do(c, "XPENDING", key, "g").([]any)
	n, ok := summary[0].(int64)
	if !ok {
		s.Fail("XPENDING is answered by %v", summary)
	}
	return n
}

func redisDocs(command, en, zh string) learn.Link {
	return learn.Link{Text: learn.Text{EN: en, ZH: zh}, URL: "https://redis.io/docs/latest/commands/" + command + "/"}
}
