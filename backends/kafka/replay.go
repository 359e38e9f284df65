package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	kafkago "github.com/segmentio/kafka-go"

	"queuelab/queue"
)

var _ queue.Replayer = (*topicQueue)(nil)

// Replay implements queue.Replayer. It reads without a group, over kafka-go's
// connections whichever client the queue has.
func (q *topicQueue) Replay(ctx context.Context, from queue.From) (queue.Consumer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	view := &topicQueue{settings: q.settings, cluster: q.cluster, facts: q.facts}
	view.commit = commitAfter
	// No group is called so: nothing is committed for it, and a fetch that falls
	// off the end of what is kept goes on with the oldest.
	view.group = q.topic + ".#replay"
	offsets, err := view.place(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("kafka: replay topic %s: %w", q.topic, err)
	}
	view.client = reader{offsets}
	c, err := newConsumer(view)
	if err != nil {
		return nil, err
	}
	r := &replay{c, q}
	if err := q.track(r); err != nil {
		return nil, err
	}
	return r, nil
}

// place finds the offset of each partition at which a replay begins.
func (q *topicQueue) place(ctx context.Context, from queue.From) (map[int]int64, error) {
	if from.Offset != "" && !from.Time.IsZero() {
		return nil, errors.New("from a time and from an offset: want one of them")
	}
	spans, err := q.spans(ctx)
	if err != nil {
		return nil, err
	}
	offsets := map[int]int64{}
	switch {
	case from.Offset != "":
		if offsets, err = parseOffsets(from.Offset, q.facts.partitions); err != nil {
			return nil, err
		}
	case !from.Time.IsZero():
		if offsets, err = q.offsetsAt(ctx, from); err != nil {
			return nil, err
		}
	default:
		for id := range spans {
			offsets[id] = 0
		}
	}
	for id, offset := range offsets {
		s := spans[id]
		if offset < 0 { // there is nothing as late as that
			offset = s.last
		}
		offsets[id] = min(max(offset, s.first), s.last)
	}
	return offsets, nil
}

// parseOffsets reads "OFFSET", for every partition, or "PARTITION:OFFSET,...", for
// these alone.
func parseOffsets(text string, partitions int) (map[int]int64, error) {
	bad := fmt.Errorf("offset %q: want OFFSET, for each partition, or PARTITION:OFFSET,... of partitions 0 to %d", text, partitions-1)
	offsets := map[int]int64{}
	if offset, err := strconv.ParseUint(text, 10, 63); err == nil {
		for id := range partitions {
			offsets[id] = int64(offset)
		}
		return offsets, nil
	}
	for _, pair := range strings.Split(text, ",") {
		id, at, ok := strings.Cut(pair, ":")
		partition, err := strconv.ParseUint(id, 10, 31)
		offset, err2 := strconv.ParseUint(at, 10, 63)
		if _, twice := offsets[int(partition)]; !ok || err != nil || err2 != nil || int(partition) >= partitions || twice {
			return nil, bad
		}
		offsets[int(partition)] = int64(offset)
	}
	return offsets, nil
}

// offsetsAt asks where each partition was at a time; -1 where nothing is as late.
func (q *topicQueue) offsetsAt(ctx context.Context, from queue.From) (map[int]int64, error) {
	offsets := map[int]int64{}
	var asked []kafkago.OffsetRequest
	for id := range q.facts.partitions {
		asked = append(asked, kafkago.TimeOffsetOf(id, from.Time))
	}
	err := q.cluster.admin(ctx, func(ctx context.Context, client *kafkago.Client) error {
		found, err := client.ListOffsets(ctx, &kafkago.ListOffsetsRequest{Topics: map[string][]kafkago.OffsetRequest{q.topic: asked}})
		if err != nil {
			return err
		}
		for _, p := range found.Topics[q.topic] {
			if p.Error != nil {
				return fmt.Errorf("partition %d: %w", p.Partition, p.Error)
			}
			offsets[p.Partition] = -1
			for offset := range p.Offsets {
				offsets[p.Partition] = offset
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("offsets at %v: %w", from.Time, err)
	}
	return offsets, nil
}

// replay is a consumer of no group.
type replay struct {
	*consumer
	of *topicQueue
}

// Ack implements queue.Consumer. Nobody is told.
func (r *replay) Ack(_ context.Context, ds ...*queue.Delivery) error {
	return queue.Settle(ds, func(fresh []*queue.Delivery) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		finish(fresh)
		return nil
	})
}

// Close implements queue.Consumer.
func (r *replay) Close() error {
	err := r.consumer.Close()
	r.of.forget(r)
	return err
}

// reader is the client of a replay: it is dealt its partitions once, by nobody.
type reader struct{ offsets map[int]int64 }

func (r reader) carrier(context.Context, string) (carrier, error) {
	return nil, errors.New("kafka: a replay does not publish")
}

func (r reader) join(c *consumer) (member, error) {
	g := c.begin(deal{generation: 1, offsets: r.offsets, committer: r})
	c.work.Go(func() { serve(c.ctx, g) })
	return r, nil
}

func (r reader) commit(map[int]int64) error { return nil }

func (r reader) leave() {} // the consumer's context has ended
