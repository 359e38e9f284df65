package redisstreams_test

import (
	"fmt"
	"testing"
	"time"

	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestAReplayBeginsAtItsOffset(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "offsets", "")
	// The ids are ours, so that each kind of a predecessor is there.
	for _, id := range []string{"5-0", "5-1", "5-2", "7-0", "9-3"} {
		if err := look.Do(t.Context(), "xadd", stream("offsets"), id, "id", id, "body", "b").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		from queue.From
		want string
	}{
		{queue.From{}, "5-0"}, {queue.From{Offset: "0-0"}, "5-0"}, {queue.From{Offset: "0"}, "5-0"},
		{queue.From{Offset: "5"}, "5-0"}, {queue.From{Offset: "5-1"}, "5-1"}, {queue.From{Offset: "5-2"}, "5-2"},
		{queue.From{Offset: "6"}, "7-0"}, {queue.From{Offset: "7-0"}, "7-0"}, {queue.From{Offset: "9-0"}, "9-3"},
		{queue.From{Time: time.UnixMilli(5)}, "5-0"}, {queue.From{Time: time.UnixMilli(7)}, "7-0"},
		{queue.From{Time: time.UnixMilli(7).Add(time.Nanosecond)}, "9-3"}, // ids tell milliseconds apart
	} {
		r, err := q.(queue.Replayer).Replay(t.Context(), c.from)
		if err != nil {
			t.Errorf("replay from %+v: %v", c.from, err)
			continue
		}
		if got := redistest.Take(t, r, 1)[0].ID; got != c.want {
			t.Errorf("replay from %+v: got %s first, want %s", c.from, got, c.want)
		}
	}
}

func TestAReplayOutlivesACutAndPassesOverWhatIsForeign(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	_, p := redistest.Both(t, backend.Queue(t, server, "cutreplay", ""))
	r, err := backend.At(t, proxy.URL(backend, "cutreplay", "")).(queue.Replayer).Replay(t.Context(), queue.From{})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, "1")
	redistest.Take(t, r, 1)
	if err := look.Do(t.Context(), "xadd", stream("cutreplay"), "*", "order", "42").Err(); err != nil {
		t.Fatal(err)
	}
	proxy.LoseReply("xread")
	publish(t, p, "2", "3")
	var got []string
	told := 0
	redistest.Eventually(t, "2 and 3 come", func() bool {
		ds, err := r.Receive(t.Context(), 1)
		if err != nil {
			told++
		}
		for _, d := range ds {
			got = append(got, d.ID)
		}
		return len(got) == 2
	})
	if fmt.Sprint(got) != "[2 3]" || told != 2 || proxy.Lost() != 1 {
		t.Errorf("got %v with %d errors after %d lost replies, want [2 3], and an error for the cut and one for the foreign entry", got, told, proxy.Lost())
	}
}
