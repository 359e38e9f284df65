package admission_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"queuelab/app/admission"
	"queuelab/app/sale"
)

func bothLocks(t *testing.T, test func(t *testing.T, l sale.UserLock)) {
	t.Run("memory", func(t *testing.T) { test(t, &admission.MemoryLock{}) })
	t.Run("redis", func(t *testing.T) {
		g, _ := gate(t)
		test(t, g.Locks())
	})
}

// All who try keep what they get until the others have tried as well.
func TestALockHasOneOwnerAtATime(t *testing.T) {
	bothLocks(t, func(t *testing.T, l sale.UserLock) {
		name := t.Name()
		for round := range 50 {
			var tried sync.WaitGroup
			var mu sync.Mutex
			var owners []func()
			start := make(chan struct{})
			for range 16 {
				tried.Go(func() {
					<-start
					unlock, ok, err := l.TryLock(t.Context(), name)
					if err != nil {
						t.Error(err)
					}
					if ok {
						mu.Lock()
						defer mu.Unlock()
						owners = append(owners, unlock)
					}
				})
			}
			close(start)
			tried.Wait()
			if len(owners) != 1 {
				t.Fatalf("round %d: got %d owners, want one, after all of the round before have given it back", round, len(owners))
			}
			owners[0]()
		}
	})
}

func TestALockThatEndedIsNotTakenFromItsNextOwner(t *testing.T) {
	g, c := gate(t)
	l, name := g.Locks(), t.Name()
	late, ok, err := l.TryLock(t.Context(), name)
	if err != nil || !ok {
		t.Fatalf("got %v, %v, want the lock", ok, err)
	}
	key := "seckill:lock:{" + name + "}"
	if ttl := c.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("got %v to live, want the lock of a process that dies to end by itself", ttl)
	}
	if n := c.Del(t.Context(), key).Val(); n != 1 { // as if it had ended
		t.Fatalf("got %d keys deleted, want the lock's", n)
	}
	next, ok, err := l.TryLock(t.Context(), name)
	if err != nil || !ok {
		t.Fatalf("got %v, %v, want the lock", ok, err)
	}
	late()
	if _, ok, err := l.TryLock(t.Context(), name); err != nil || ok {
		t.Errorf("after its first owner gave it back too late: got it %v, %v, want it to be the second one's", ok, err)
	}
	next()
	if _, ok, err := l.TryLock(t.Context(), name); err != nil || !ok {
		t.Errorf("after its owner gave it back: got it %v, %v", ok, err)
	}
}

func TestAGateWithoutStockAdmitsWhoeverComes(t *testing.T) {
	g, _ := gate(t)
	for name, gate := range map[string]interface {
		sale.Gate
		Stockless(func(context.Context, sale.ID) (int64, error))
	}{"memory": admission.NewMemory(nil), "redis": g} {
		t.Run(name, func(t *testing.T) {
			gate.Stockless(func(context.Context, sale.ID) (int64, error) { return 3, nil })
			v := open(1, nil)
			load(t, gate, v)
			for i, user := range []string{"a", "b", "c"} {
				r := reservation(v, sale.ID(i+1), user)
				admit(t, gate, r, sale.Admitted, r.OrderID)
			}
			admit(t, gate, reservation(v, 9, "b"), sale.AlreadyBought, 2)
			wantLeft(t, gate, v, 3)
			if ok, err := gate.Release(t.Context(), reservation(v, 2, "b")); err != nil || !ok {
				t.Errorf("got %v, %v, want the buyer to be let go", ok, err)
			}
			admit(t, gate, reservation(v, 10, "b"), sale.Admitted, 10)
		})
	}
}
