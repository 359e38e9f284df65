package broker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/broker/brokertest"
	"queuelab/bench/storage"
	"queuelab/queue"
)

// onStorage starts a broker of the test's own whose data can lose power.
func onStorage(t *testing.T, kind, setting string) *broker.Broker {
	t.Helper()
	if err := broker.StorageAvailable(); err != nil {
		t.Skip(err)
	}
	brokertest.Need(t, kind)
	b, err := broker.Start(within(t, 3*time.Minute), broker.Options{Kind: kind, Setting: setting, Storage: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// open opens a queue for the length of the test.
func open(t *testing.T, ctx context.Context, url string) (queue.Queue, queue.Publisher) {
	t.Helper()
	q, err := backends.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	p, err := q.Publisher(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return q, p
}

// publish publishes n messages that are all accepted.
func publish(t *testing.T, ctx context.Context, p queue.Publisher, n int) {
	t.Helper()
	var ms []queue.Message
	for i := range n {
		ms = append(ms, queue.Message{ID: fmt.Sprint(i), Key: "k", Body: []byte("some hundred bytes, more or less")})
	}
	if err := p.Publish(ctx, ms...); err != nil {
		t.Fatal(err)
	}
}

// held waits until a queue holds a number of messages between two.
func held(t *testing.T, ctx context.Context, what string, q queue.Queue, least, most int64) {
	t.Helper()
	var n int64
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var b queue.Backlog
		if b, err = q.(queue.Backlogger).Backlog(ctx); err == nil {
			if n = max(b.Ready, 0) + max(b.InFlight, 0); n >= least && n <= most {
				return
			}
		}
	}
	t.Errorf("%s: got %d messages, %v, want %d to %d", what, n, err, least, most)
}

func TestPowerTakesFromRedisWhatItsSettingDoesNotSync(t *testing.T) {
	for _, c := range []struct {
		fsync       string
		least, most int64 // of 300 that waited, 200 of them longer than a second
	}{
		{"no", 0, 0},
		{"everysec", 200, 299},
		{"always", 300, 300},
	} {
		t.Run(c.fsync, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, time.Minute)
			b := onStorage(t, "redis", "aof-everysec")
			o, err := redis.ParseURL(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(o)
			defer client.Close()
			if err := client.ConfigSet(ctx, "appendfsync", c.fsync).Err(); err != nil {
				t.Fatal(err)
			}
			q, p := open(t, ctx, b.QueueURL("redis+list", "orders", ""))
			if err := b.SettleStorage(ctx); err != nil {
				t.Fatal(err)
			}
			publish(t, ctx, p, 200)
			if c.fsync == "everysec" {
				untilStats(t, ctx, b, "the first 200 are synced", func(s storage.Stats) bool { return s.Dirty == 0 })
			}
			publish(t, ctx, p, 100)
			if c.fsync != "always" {
				// It answers before it writes as long as it thinks that a sync is under way.
				untilStats(t, ctx, b, "the last 100 are written", func(s storage.Stats) bool { return s.Dirty > 0 })
			}
			cut, err := b.CutPower(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if dirty := cut.Dirty > 0; dirty != (c.fsync != "always") {
				t.Errorf("got %d dirty bytes", cut.Dirty)
			}
			if err := b.Restart(ctx); err == nil {
				t.Error("got nil from a Restart without saying from which image, want an error")
			}
			if err := b.RestartFrom(ctx, storage.Crash); err != nil {
				t.Fatal(err)
			}
			held(t, ctx, "of a killed process", q, 300, 300)
			if err := b.RestartFrom(ctx, storage.Power); err != nil {
				t.Fatal(err)
			}
			held(t, ctx, "of a power loss", q, c.least, c.most)
			// It is as any other broker after that.
			if err := errors.Join(b.Kill(ctx), b.Restart(ctx)); err != nil {
				t.Fatal(err)
			}
			held(t, ctx, "of a kill after that", q, c.least, c.most)
		})
	}
}

func untilStats(t *testing.T, ctx context.Context, b *broker.Broker, fact string, holds func(storage.Stats) bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s, err := b.SyncStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if holds(s) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within 10s: %s; got %+v", fact, s)
		}
	}
}

func TestPowerTakesFromKafkaAndRabbitMQWhatTheyConfirmBeforeTheySync(t *testing.T) {
	const n = 300
	for _, c := range []struct {
		kind, scheme string
		kept         map[string]int64 // by the parameters of a queue's URL
	}{
		{"kafka", "kafka", map[string]int64{"acks=all": 0, "acks=all&flush=1": n}},
		{"rabbitmq", "amqp", map[string]int64{"type=classic": n, "type=quorum": n}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 4*time.Minute)
			b := onStorage(t, c.kind, "")
			queues, publishers := map[string]queue.Queue{}, map[string]queue.Publisher{}
			for query := range c.kept {
				name := "orders-" + strings.NewReplacer("=", "-", "&", "-").Replace(query)
				queues[query], publishers[query] = open(t, ctx, b.QueueURL(c.scheme, name, query))
			}
			if err := b.SettleStorage(ctx); err != nil {
				t.Fatal(err)
			}
			for query, p := range publishers {
				publish(t, ctx, p, n)
				held(t, ctx, query, queues[query], n, n)
			}
			cut, err := b.CutPower(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", cut)
			for _, image := range []storage.Image{storage.Crash, storage.Power} {
				if err := b.RestartFrom(ctx, image); err != nil {
					t.Fatal(err)
				}
				for query, q := range queues {
					want := int64(n)
					if image == storage.Power {
						want = c.kept[query]
					}
					held(t, ctx, query+" from the image "+string(image), q, want, want)
				}
			}
		})
	}
}

func TestPostgresKeepsWhatItCommitted(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	b := onStorage(t, "postgres", "")
	exec := func(sql string) {
		t.Helper()
		c, err := pgx.Connect(ctx, b.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE orders (id int)")
	if err := b.SettleStorage(ctx); err != nil { // its files are made without a sync
		t.Fatal(err)
	}
	exec("INSERT INTO orders VALUES (1)")
	exec("SET synchronous_commit = off; INSERT INTO orders VALUES (2)")
	if _, err := b.CutPower(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.RestartFrom(ctx, storage.Power); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(ctx, b.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	var first bool
	if err := c.QueryRow(ctx, "SELECT count(*) > 0 FROM orders WHERE id = 1").Scan(&first); err != nil || !first {
		t.Errorf("got the committed row: %v, %v, want it", first, err)
	}
}

// Redis answers without having written for two seconds at most, which a busy
// machine can let pass: then it has written, and nothing is lost.
func TestRedisForgetsWhatItAnsweredWhileASyncIsUnderWayAndIsKilled(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := onStorage(t, "redis", "aof-everysec")
	q, p := open(t, ctx, b.QueueURL("redis+list", "orders", ""))
	accepted := int64(0)
	for range 5 {
		before, err := b.SyncStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.DelaySync(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
		publish(t, ctx, p, 1) // and its sync will be slow
		untilStats(t, ctx, b, "a slow sync is under way", func(s storage.Stats) bool { return s.SyncingSince > before.SyncingSince })
		publish(t, ctx, p, 50)
		accepted += 51
		if err := errors.Join(b.Kill(ctx), b.DelaySync(ctx, 0), b.Restart(ctx)); err != nil {
			t.Fatal(err)
		}
		left := count(t, ctx, q)
		if left == accepted-50 {
			return
		}
		if left != accepted {
			t.Fatalf("got %d of %d messages, want all or all but the last 50", left, accepted)
		}
	}
	t.Error("nothing was lost in five kills, want the messages that were answered for and not written")
}

// count asks a queue once that answers.
func count(t *testing.T, ctx context.Context, q queue.Queue) (n int64) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		var b queue.Backlog
		if b, err = q.(queue.Backlogger).Backlog(ctx); err == nil {
			return max(b.Ready, 0) + max(b.InFlight, 0)
		}
	}
	t.Fatal(err)
	return 0
}

func TestRedisRefusesOnAFullDiskAndGoesOn(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	b := onStorage(t, "redis", "aof-everysec")
	q, p := open(t, ctx, b.QueueURL("redis+list", "orders", ""))
	publish(t, ctx, p, 10)
	if err := b.FillDisk(ctx, true); err != nil {
		t.Fatal(err)
	}
	accepted := int64(10)
	for {
		err := p.Publish(ctx, queue.Message{ID: "x", Body: make([]byte, 200)})
		if err == nil {
			accepted++
			continue
		}
		if queue.OutcomeOf(err, 0) != queue.Rejected {
			t.Errorf("got %v from a full disk, want a rejection", err)
		}
		break
	}
	if s, err := b.SyncStats(ctx); err != nil || s.Refused == 0 {
		t.Errorf("got %+v, %v, want a refused write", s, err)
	}
	if err := b.FillDisk(ctx, false); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); p.Publish(ctx, queue.Message{ID: "y"}) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("it takes nothing though there is space again")
		}
	}
	if err := errors.Join(b.Kill(ctx), b.Restart(ctx)); err != nil {
		t.Fatal(err)
	}
	held(t, ctx, "after it all", q, accepted+1, accepted+1)
}

func TestStorageIsRefusedWhereThereIsNone(t *testing.T) {
	ctx := within(t, time.Minute)
	b := brokertest.Start(t, "redis", "")
	_, statsErr := b.SyncStats(ctx)
	_, cutErr := b.CutPower(ctx)
	for name, err := range map[string]error{
		"settle": b.SettleStorage(ctx), "cut": cutErr, "restart": b.RestartFrom(ctx, storage.Power),
		"delay": b.DelaySync(ctx, time.Second), "fill": b.FillDisk(ctx, true), "stats": statsErr,
	} {
		if !errors.Is(err, broker.ErrNoStorage) {
			t.Errorf("%s: got %v, want ErrNoStorage", name, err)
		}
	}
	if err := b.Ready(ctx); err != nil {
		t.Errorf("got %v, want it unharmed", err)
	}
}

// mountsBelow lists the mounts at or below a directory that any process sees.
func mountsBelow(dir string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, f := range files {
		b, _ := os.ReadFile(f) // it may have ended
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, dir) {
				found = append(found, f+": "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

func TestNoMountOutlivesTheCommand(t *testing.T) {
	if err := broker.StorageAvailable(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		kind   string
		times  int
		within time.Duration
	}{
		{"redis", 10, 600 * time.Millisecond},
		{"postgres", 2, 4 * time.Second},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			brokertest.Need(t, c.kind)
			dir := commonTemp(t)
			if os.Getenv("QUEUELAB_SOAK") != "" {
				c.times *= 10
			}
			part := c.within / time.Duration(c.times)
			for i := range c.times {
				killCommandAt(t, dir, "storage:"+c.kind, syscall.SIGKILL, part*time.Duration(i)+rand.N(part))
				if left := mountsBelow(dir); len(left) > 0 {
					t.Fatalf("got these mounts left, want none:\n%s", strings.Join(left, "\n"))
				}
			}
		})
	}
}

func TestNoMountOutlivesAKilledSupervisor(t *testing.T) {
	dir := commonTemp(t)
	t.Setenv("TMPDIR", dir)
	b := onStorage(t, "redis", "")
	mounts := mountsBelow(dir)
	if len(mounts) == 0 {
		t.Fatal("got no process that sees the mount, want the broker to")
	}
	self, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(self), dir) {
		t.Errorf("got the mount in the command's own namespace, %v, want it where the broker is only", err)
	}
	for _, p := range living(dir) {
		if pid, cmdline, _ := strings.Cut(p, " "); strings.Contains(cmdline, "supervise-one-broker") {
			n, _ := strconv.Atoi(pid)
			if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	for deadline := time.Now().Add(20 * time.Second); len(living(dir)) > 0 || len(mountsBelow(dir)) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %q alive and %q mounted, want nothing", living(dir), mountsBelow(dir))
		}
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	expectNothingLeft(t, dir, "after Stop")
}
