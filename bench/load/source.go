package load

import (
	"bytes"
	"strconv"

	"queuelab/bench/ledger"
	"queuelab/queue"
)

// Source makes the messages of one incarnation of a producer.
type Source struct {
	Trial                 uint32
	Producer, Incarnation uint16
	Size                  int    // bytes of the body
	Keys                  uint64 // how many keys take turns; 0: no message has a key
}

// Messages returns the function that makes message n. The messages share one body.
func (s Source) Messages() func(n uint64) queue.Message {
	body := bytes.Repeat([]byte{'q'}, s.Size)
	return func(n uint64) queue.Message {
		id := ledger.ID{Trial: s.Trial, Producer: s.Producer, Incarnation: s.Incarnation, Seq: n}
		return queue.Message{ID: ledger.FormatID(id), Key: s.KeyOf(id), Body: body}
	}
}

// KeyOf returns the key of a message, for the ledger's account.
func (s Source) KeyOf(id ledger.ID) string {
	if s.Keys == 0 {
		return ""
	}
	return "k" + strconv.FormatUint(id.Seq%s.Keys, 10)
}
