package door

import (
	"container/list"
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rate is so many requests in a second, a minute or an hour; N of them at once,
// and then evenly. The zero Rate is no bound.
type Rate struct {
	N   int
	Per time.Duration
}

// ParseRate reads a rate such as 10/s, 100/m or 1000/h; off is the zero Rate.
func ParseRate(s string) (Rate, error) {
	if s == "off" {
		return Rate{}, nil
	}
	digits, unit, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(digits)
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if err != nil || n < 1 || n > 1_000_000 || per == 0 || strconv.Itoa(n) != digits {
		return Rate{}, fmt.Errorf("%.40q is not a rate: want off, or 1 to 1000000 in a second, a minute or an hour, such as 10/s, 100/m or 1000/h", s)
	}
	return Rate{N: n, Per: per}, nil
}

func (r Rate) String() string {
	if r.N == 0 {
		return "off"
	}
	return strconv.Itoa(r.N) + "/" + map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
}

// step is the time that one request takes up.
func (r Rate) step() time.Duration { return max(r.Per/time.Duration(r.N), time.Microsecond) }

// Limiter bounds how often each of many may ask. It is safe for concurrent use.
type Limiter interface {
	// Take counts a request of key: 0 lets it in. Otherwise it is one too many,
	// and the answer is how long until one may be let in.
	Take(ctx context.Context, key string) time.Duration
}

const shards = 16

// Local is a limiter of this process. It remembers a bounded number of keys and
// forgets first those that have not asked for longest: whoever can come under
// ever new keys is not held by it.
type Local struct {
	rate  Rate
	seed  maphash.Seed
	shard [shards]shard
}

type shard struct {
	mu   sync.Mutex
	max  int
	of   map[string]*list.Element
	last list.List // of *due, the newest first
}

// due is when a key's next request would be let in if none was for free.
type due struct {
	key string
	at  time.Time
}

// NewLocal makes a limiter for about so many keys.
func NewLocal(rate Rate, keys int) *Local {
	l := &Local{rate: rate, seed: maphash.MakeSeed()}
	for i := range l.shard {
		l.shard[i].max = max(1, keys/shards)
		l.shard[i].of = map[string]*list.Element{}
	}
	return l
}

// Take implements Limiter.
func (l *Local) Take(_ context.Context, key string) time.Duration {
	if l.rate.N == 0 {
		return 0
	}
	s := &l.shard[maphash.String(l.seed, key)%shards]
	now, step := time.Now(), l.rate.step()
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of[key]
	if e == nil {
		if s.last.Len() >= s.max {
			oldest := s.last.Back()
			delete(s.of, oldest.Value.(*due).key)
			s.last.Remove(oldest)
		}
		// The key may point into a request's buffer.
		key = strings.Clone(key)
		e = s.last.PushFront(&due{key: key, at: now})
		s.of[key] = e
	}
	s.last.MoveToFront(e)
	d := e.Value.(*due)
	if d.at.Before(now) {
		d.at = now
	}
	next := d.at.Add(step)
	if wait := next.Sub(now) - time.Duration(l.rate.N)*step; wait > 0 {
		return wait
	}
	d.at = next
	return 0
}
