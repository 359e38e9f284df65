package redispriority_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"queuelab/backends/internal/redistest"
	"queuelab/backends/redispriority"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
	"queuelab/queue/queuetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var backend = redistest.Backend{Scheme: "redis+priority", Open: redispriority.Open}

const setting = "aof-everysec"

// The suite's keys and headers are its own: with these levels its messages are on
// several lists.
func TestConformance(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	t.Run("by key", func(t *testing.T) {
		h := backend.Harness(server, "by=key&levels=a,b,k,rest", 200*time.Millisecond)
		queuetest.Run(t, h)
	})
	t.Run("by header", func(t *testing.T) {
		h := backend.Harness(server, "", 200*time.Millisecond)
		h.Crash, h.Freeze = nil, nil // as by key
		queuetest.Run(t, h)
	})
}

func message(id, level string) queue.Message {
	m := queue.Message{ID: id, Key: level + ":1"}
	if level != "" {
		m.Headers = map[string]string{redispriority.Header: level}
	}
	return m
}

func ids(ds []*queue.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return strings.Join(all, " ")
}

func TestTheUrgentOvertakesAndALevelKeepsItsOrder(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	for _, by := range []string{"header", "key"} {
		t.Run("by "+by, func(t *testing.T) {
			q := backend.Queue(t, server, "order-"+by, "by="+by)
			c, p := redistest.Both(t, q)
			if err := p.Publish(t.Context(), message("l1", "low"), message("n1", "normal"), message("h1", "high"),
				message("l2", "low"), message("u", "unheard-of"), message("none", ""), message("h2", "high"), message("n2", "normal")); err != nil {
				t.Fatal(err)
			}
			got := ids(redistest.Take(t, c, 3))
			if err := p.Publish(t.Context(), message("h3", "high")); err != nil {
				t.Fatal(err)
			}
			got += " " + ids(redistest.Take(t, c, 6))
			if want := "h1 h2 n1 h3 n2 l1 l2 u none"; got != want {
				t.Errorf("order of delivery: got %s, want %s", got, want)
			}
			if got, want := q.Capabilities().OrderedPerKey, by == "key"; got != want {
				t.Errorf("order of a key is claimed: got %v, want %v", got, want)
			}
		})
	}
}

func TestAConsumerThatWaitsGetsWhatIsFilledFirst(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	q := backend.Queue(t, server, "wait", "")
	c, p := redistest.Both(t, q)
	// Values as they stand on the lists, put there again in one step.
	if err := p.Publish(t.Context(), message("low", "low"), message("high", "high")); err != nil {
		t.Fatal(err)
	}
	value := map[string]string{}
	for _, level := range []string{"low", "high"} {
		value[level] = look.RPop(t.Context(), "priority:{wait}:"+level).Val()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan string, 1)
	go func() {
		ds, err := c.Receive(ctx, 1)
		got <- ids(ds) + fmt.Sprint(err)
	}()
	redistest.Eventually(t, "the server blocks the consumer", func() bool {
		info, err := look.Info(ctx, "clients").Result()
		return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
	})
	pipe := look.TxPipeline()
	pipe.LPush(ctx, "priority:{wait}:low", value["low"])
	pipe.LPush(ctx, "priority:{wait}:high", value["high"])
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if got := <-got; got != "low<nil>" {
		t.Errorf("a consumer that waits: got %s, want low: the first that was filled", got)
	}
}

func TestOneLevelsFailureIsNoOthers(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	if err := look.Set(t.Context(), "priority:{part}:normal", "no list", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p, err := backend.Queue(t, server, "part", "").Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = p.Publish(t.Context(), message("1", "low"), message("2", "normal"), message("3", "high"))
	var pe *queue.PublishError
	if !errors.As(err, &pe) {
		t.Fatalf("publish: got %v, want a *PublishError", err)
	}
	if diff := cmp.Diff([]queue.Outcome{queue.Accepted, queue.Rejected, queue.Accepted}, pe.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestWhatNobodyReceivedIsPushedBackToItsLevel(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	look := redistest.Client(t, server)
	proxy := redistest.NewProxy(t, server)
	c, err := backend.At(t, proxy.URL(backend, "back", "")).Consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := backend.Queue(t, server, "back", "").Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Receive(ctx, 1)
		done <- err
	}()
	redistest.Eventually(t, "the server blocks the consumer", func() bool {
		info, err := look.Info(ctx, "clients").Result()
		return err == nil && strings.Contains(info, "blocked_clients:1\r\n")
	})
	proxy.Silence(true)
	length := func() int64 { return look.LLen(t.Context(), "priority:{back}:normal").Val() }
	if err := p.Publish(t.Context(), message("1", "normal")); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the message is popped", func() bool { return length() == 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled Receive: got %v, want context.Canceled", err)
	}
	proxy.Silence(false)
	if err := c.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	if n := length(); n != 1 {
		t.Errorf("messages on the list: got %d, want 1", n)
	}
}

func TestWrongLevelsAreRefused(t *testing.T) {
	server := brokertest.Start(t, "redis", setting)
	for levels, want := range map[string]string{
		"":                             "levels",
		"a,,b":                         `the name ""`,
		"a,b,a":                        `"a" is given twice`,
		"a%20b":                        `the name "a b"`,
		strings.Repeat("a,", 16) + "b": "17 names, want 1 to 16",
	} {
		_, err := backend.Try(server.QueueURL(backend.Scheme, "wrong", "levels="+levels))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("levels=%s: got %v, want an error about %s", levels, err, want)
		}
	}
}
