package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestAReplayBeginsAtItsOffsets(t *testing.T) {
	q := openAt(t, brokertest.Start(t, "kafka", "default"), "replay-offsets", "partitions=2", session)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := q.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 { // one key: one partition
		if err := p.Publish(ctx, queue.Message{ID: fmt.Sprint("m", i), Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	spans, err := q.spans(ctx)
	if err != nil {
		t.Fatal(err)
	}
	of := 0
	if spans[1].last > 0 {
		of = 1
	}
	for _, c := range []struct {
		offset string
		want   []string
	}{
		{"8", []string{"m8", "m9"}},
		{fmt.Sprintf("%d:7", of), []string{"m7", "m8", "m9"}},
		{fmt.Sprintf("%d:9,%d:0", of, 1-of), []string{"m9"}},
		{"100", []string{"later"}},              // beyond the end is the end
		{fmt.Sprintf("%d:0", 1-of), []string{}}, // the other partition has nothing
	} {
		r, err := q.Replay(ctx, queue.From{Offset: c.offset})
		if err != nil {
			t.Errorf("replay from %s: %v", c.offset, err)
			continue
		}
		if len(c.want) == 1 && c.want[0] == "later" {
			if err := p.Publish(ctx, queue.Message{ID: "later", Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		got := []string{}
		for len(got) < len(c.want) {
			ds, err := r.Receive(ctx, 10)
			if err != nil {
				t.Fatalf("replay from %s: got %v, then: %v", c.offset, got, err)
			}
			for _, d := range ds {
				got = append(got, d.ID)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("replay from %s (-want +got):\n%s", c.offset, diff)
		}
		if len(c.want) == 0 {
			soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			if ds, err := r.Receive(soon, 1); err != context.DeadlineExceeded {
				t.Errorf("replay from %s: got %d deliveries and %v, want none", c.offset, len(ds), err)
			}
			cancel()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOffsetsThatNameNoPlaceAreRefused(t *testing.T) {
	for _, text := range []string{"", "x", "-1", "0:", ":1", "4:0", "0:1,0:2", "0:1,", "0:-1", "99999999999999999999"} {
		if offsets, err := parseOffsets(text, 4); err == nil {
			t.Errorf("%q: got %v, want an error", text, offsets)
		}
	}
	got, err := parseOffsets("0:5,3:7", 4)
	if diff := cmp.Diff(map[int]int64{0: 5, 3: 7}, got); err != nil || diff != "" {
		t.Errorf("0:5,3:7: got %v, %v", got, err)
	}
}
