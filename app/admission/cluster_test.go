package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

// startNode starts one Redis with the cluster mode on, which no setting of ours
// has, and returns its address.
func startNode(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	port := freePorts(t)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--daemonize", "no")
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	eventually(t, "the cluster node answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return addr
}

// cluster is one node that has all slots.
func cluster(t *testing.T) *redis.Client {
	t.Helper()
	return nodes(t, 1)[0]
}

// nodes is a cluster of so many nodes, each with its part of the slots.
func nodes(t *testing.T, n int) []*redis.Client {
	t.Helper()
	const slots = 16384
	cs := make([]*redis.Client, n)
	for i := range cs {
		cs[i] = client(t, startNode(t), time.Second)
		host, port, err := net.SplitHostPort(cs[0].Options().Addr)
		if err != nil {
			t.Fatal(err)
		}
		steps := []error{
			cs[i].Do(t.Context(), "cluster", "set-config-epoch", i+1).Err(),
			cs[i].ClusterAddSlotsRange(t.Context(), slots*i/n, slots*(i+1)/n-1).Err(),
		}
		if i > 0 {
			steps = append(steps, cs[i].ClusterMeet(t.Context(), host, port).Err())
		}
		if err := errors.Join(steps...); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range cs {
		eventually(t, "the cluster is up", func() bool {
			info, err := c.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", n)) &&
				strings.Contains(info, fmt.Sprint("cluster_size:", n))
		})
	}
	return cs
}

// freePorts finds a port such that the cluster bus, 10000 above, is free too.
func freePorts(t *testing.T) int {
	t.Helper()
	for port := 21000; port < 22000; port++ {
		a, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		b, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+10000)))
		a.Close()
		if err != nil {
			continue
		}
		b.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

func openAll(t *testing.T, cs []*redis.Client) *admission.Redis {
	t.Helper()
	var addrs []string
	for _, c := range cs {
		addrs = append(addrs, c.Options().Addr)
	}
	g, err := admission.OpenRedis(t.Context(), "redis+cluster://"+strings.Join(addrs, ","))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func TestAClusterOfThreeNodes(t *testing.T) {
	const n = 16
	cs := nodes(t, 3)
	single := openAll(t, cs)
	g := bucketed{openAll(t, cs), n}
	g.AskBuckets(func(context.Context, sale.ID) (int, error) { return n, nil })
	t.Run("is a gate like any other", func(t *testing.T) { conform(t, func() sale.Gate { return single }) })
	t.Run("is a gate in buckets like any other", func(t *testing.T) { conformInBuckets(t, g) })
	t.Run("sells every unit once, and all nodes take part", func(t *testing.T) {
		const stock, clicks = 300, 2000
		v := open(stock, nil)
		load(t, g, v)
		other := bucketed{openAll(t, cs[2:]), n} // one node tells of the others
		s := &sold{orders: map[sale.ID]bool{}}
		var next atomic.Int64
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				g := []bucketed{g, other}[i%2]
				for o := next.Add(1); o <= clicks; o = next.Add(1) {
					r := reservation(v, sale.ID(o), fmt.Sprint("u", o))
					switch got, order, err := g.Admit(context.Background(), r); {
					case err == nil && got == sale.Admitted:
						s.add(t, order)
					case err != nil || got != sale.SoldOut:
						t.Errorf("got %v, %v", got, err)
					}
				}
			})
		}
		wg.Wait()
		if len(s.orders) != stock {
			t.Errorf("got %d units sold, want %d", len(s.orders), stock)
		}
		wantBook(t, g, v, sale.Book{Loaded: true, Units: stock, Buyers: stock, Marks: stock})
		for i, c := range cs {
			keys, err := c.Keys(t.Context(), "seckill:{"+v.ID.String()+"*}:buyers").Result()
			if err != nil || len(keys) == 0 || len(keys) == n {
				t.Errorf("node %d has the buyers of %d buckets, %v, want some of %d", i, len(keys), err, n)
			}
		}
	})
	t.Run("has what is kept beside the gate's keys", func(t *testing.T) {
		ids := g.IDs()
		a, err1 := ids.Next()
		b, err2 := ids.Next()
		if err := errors.Join(err1, err2); err != nil || a == b {
			t.Errorf("ids: got %v, %v, %v", a, b, err)
		}
		for i := range 10 { // on all nodes
			name := fmt.Sprint("buyer", i)
			unlock, ok, err := g.Locks().TryLock(t.Context(), name)
			if err != nil || !ok {
				t.Fatalf("lock: got %v, %v", ok, err)
			}
			if _, ok, err := g.Locks().TryLock(t.Context(), name); err != nil || ok {
				t.Errorf("lock that is taken: got %v, %v", ok, err)
			}
			unlock()
		}
		set, err := g.Settings(t.Context())
		if err != nil || set["appendonly"] != "no" || set["maxmemory-policy"] != "noeviction" {
			t.Errorf("settings: got %v, %v", set, err)
		}
		if err := cs[1].ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
			t.Fatal(err)
		}
		if set, err := g.Settings(t.Context()); err != nil || set["maxmemory-policy"] != "allkeys-lru" {
			t.Errorf("settings where one node evicts: got %v, %v", set, err)
		}
	})
	t.Run("is followed when a slot goes to another node", func(t *testing.T) {
		var v sale.Voucher
		var slot int64
		from := 0
		for empty := false; !empty; { // other cases have left keys
			v = open(1, nil)
			var err error
			if slot, err = cs[0].ClusterKeySlot(t.Context(), voucherKey(v, "sale")).Result(); err != nil {
				t.Fatal(err)
			}
			from = int(slot) * len(cs) / 16384
			n, err := cs[from].ClusterCountKeysInSlot(t.Context(), int(slot)).Result()
			if err != nil {
				t.Fatal(err)
			}
			empty = n == 0
		}
		to := cs[(from+1)%len(cs)]
		id, err := to.ClusterMyID(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*redis.Client{to, cs[from]} {
			if err := c.Do(t.Context(), "cluster", "setslot", slot, "node", id).Err(); err != nil {
				t.Fatal(err)
			}
		}
		load(t, single, v)
		admit(t, single, reservation(v, 1, "u"), sale.Admitted, 1)
		if n := to.HLen(t.Context(), voucherKey(v, "buyers")).Val(); n != 1 {
			t.Errorf("got %d buyers at the slot's new node, want 1", n)
		}
	})
	t.Run("a node that comes back empty refills nothing", func(t *testing.T) {
		v := open(40, nil)
		load(t, g, v)
		var bought []sale.Reservation
		for i := range 15 {
			r := reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
			admit(t, g, r, sale.Admitted, r.OrderID)
			bought = append(bought, r)
		}
		if err := cs[0].FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := g.Restore(t.Context(), bought...); err != nil {
			t.Fatal(err)
		}
		load(t, g, v)
		wantLeft(t, g, v, 25)
	})
}
