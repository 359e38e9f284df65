package load

import (
	"fmt"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// MaxSize is the most bytes that the body of a message may have: 10 MB.
const MaxSize = 10 << 20

// keyTable is up to how many keys have their names made beforehand.
const keyTable = 1 << 12

// Source makes the messages of one incarnation of a producer. What message n is
// follows from n, the seeds and nothing else.
type Source struct {
	Trial                 uint32
	Producer, Incarnation uint16
	Size                  int     // bytes of the body, at most MaxSize
	Content               Content // of the body; "" is Zeros
	Seed                  uint64  // of the content
	Keys                  uint64  // how many keys take turns; 0: KeyPlan says
	KeyPlan               KeyPlan // for messages without Keys
}

// Check returns what is wrong with a source, and what is allowed; nil: nothing.
func (s Source) Check() error {
	switch {
	case s.Size < 0 || s.Size > MaxSize:
		return fmt.Errorf("payload of %d bytes: from 0 to %d are allowed (10 MB)", s.Size, MaxSize)
	case !s.KeyPlan.valid():
		return fmt.Errorf("%d keys with a hot share of %v: at most %d keys and a share below 1 are allowed", s.KeyPlan.Keys, s.KeyPlan.HotShare, maxKeys)
	}
	_, err := ParseContent(string(s.Content))
	return err
}

// Messages returns the function that makes message n; it may be called by
// several goroutines at once. The messages share bodies, and an id is all that
// is allocated for one. Those of a source that Check refuses have no bodies.
func (s Source) Messages() func(n uint64) queue.Message {
	ring := [][]byte{nil}
	if s.Check() == nil {
		ring = bodies(s.Content, s.Size, s.Seed)
	}
	names := make([]string, 0, keyTable)
	if keys := max(s.Keys, s.KeyPlan.Keys); keys <= keyTable {
		for k := range keys {
			names = append(names, keyName(k))
		}
	}
	return func(n uint64) queue.Message {
		id := ledger.ID{Trial: s.Trial, Producer: s.Producer, Incarnation: s.Incarnation, Seq: n}
		m := queue.Message{ID: ledger.FormatID(id), Body: ring[n%uint64(len(ring))]}
		if k, ok := s.key(id); ok && k < uint64(len(names)) {
			m.Key = names[k]
		} else if ok {
			m.Key = keyName(k)
		}
		return m
	}
}

// KeyOf returns the key of a message, for the ledger's account: exactly the one
// that it was sent with, by whichever producer.
func (s Source) KeyOf(id ledger.ID) string {
	if k, ok := s.key(id); ok {
		return keyName(k)
	}
	return ""
}

func (s Source) key(id ledger.ID) (number uint64, ok bool) {
	switch {
	case s.Keys > 0:
		return id.Seq % s.Keys, true
	case s.KeyPlan.Keys > 0:
		return s.KeyPlan.number(id), true
	}
	return 0, false
}
