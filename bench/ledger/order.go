package ledger

import (
	"math"
	"slices"
	"sort"
)

// lane is where order is judged: one key of one incarnation of a producer, and
// for a broadcast queue one consumer.
type lane struct {
	trial                 uint32
	producer, incarnation uint16
	key                   string
	consumer              int64
}

type passage struct {
	seq                               uint64
	call                              int64
	intended, concluded, firstArrived int64
}

// reordered counts messages whose first delivery came after that of a later
// message of their lane. Later is: published after the first had its answer, or
// behind it in the same Publish call. Concurrent publishes have no order.
func reordered(ms []*message, keyOf func(ID) string, perConsumer bool) int64 {
	lanes := map[lane][]passage{}
	for _, m := range ms {
		if !m.isAccepted() || m.deliveries == 0 {
			continue
		}
		l := lane{trial: m.id.Trial, producer: m.id.Producer, incarnation: m.id.Incarnation}
		if keyOf != nil {
			l.key = keyOf(m.id)
		}
		p := passage{m.id.Seq, m.call, m.intended, m.concludedAt, m.firstDelivery}
		if !perConsumer {
			lanes[l] = append(lanes[l], p)
			continue
		}
		for _, s := range m.seenBy {
			l.consumer, p.firstArrived = s.consumer, s.at
			lanes[l] = append(lanes[l], p)
		}
	}
	var n int64
	for _, ps := range lanes {
		n += overtaken(ps)
	}
	return n
}

func overtaken(ps []passage) int64 {
	slices.SortFunc(ps, func(a, b passage) int {
		switch {
		case a.intended != b.intended && a.intended < b.intended:
			return -1
		case a.intended != b.intended:
			return 1
		case a.seq < b.seq:
			return -1
		case a.seq > b.seq:
			return 1
		}
		return 0
	})
	// soonest[i] is the earliest first arrival of ps[i:].
	soonest := make([]int64, len(ps)+1)
	soonest[len(ps)] = math.MaxInt64
	for i := len(ps) - 1; i >= 0; i-- {
		soonest[i] = min(soonest[i+1], ps[i].firstArrived)
	}
	soonestOfCall := map[int64]int64{}
	var n int64
	for i := len(ps) - 1; i >= 0; i-- {
		p := ps[i]
		after := sort.Search(len(ps), func(k int) bool { return ps[k].intended > p.concluded })
		late := soonest[after] < p.firstArrived
		if p.call != 0 {
			s, seen := soonestOfCall[p.call]
			late = late || seen && s < p.firstArrived
			if !seen || p.firstArrived < s {
				soonestOfCall[p.call] = p.firstArrived
			}
		}
		if late {
			n++
		}
	}
	return n
}
