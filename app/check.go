package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/backends"
	"queuelab/queue"
)

// danger is a setting with which orders can be lost.
type danger struct {
	name    string // for --allow-unsafe
	setting string // what is set, as "maxmemory-policy=allkeys-lru of the Redis of admission"
	loses   string // why that loses orders
	mend    string // what to do about it
}

// Names of what the check refuses.
const (
	redisEviction    = "redis-eviction"
	redisPersistence = "redis-persistence"
	redisFsync       = "redis-fsync"
	kafkaAcks        = "kafka-acks"
	rabbitTransient  = "rabbitmq-transient"
	rabbitPrefetch   = "rabbitmq-prefetch"
	pgFsync          = "postgres-fsync"
	pgCommit         = "postgres-synchronous-commit"
	mixedInstances   = "mixed-instances"
)

func unsafeNames() []string {
	return []string{redisEviction, redisPersistence, redisFsync, kafkaAcks, rabbitTransient, rabbitPrefetch, pgFsync, pgCommit, mixedInstances}
}

func (d danger) Error() string {
	return fmt.Sprintf("%s: %s; %s, or accept it with --allow-unsafe=%s", d.setting, d.loses, d.mend, d.name)
}

// refuse is an error that names each danger that was not allowed, and logs those
// that were.
func (s *service) refuse(dangers ...danger) error {
	var errs []error
	for _, d := range dangers {
		if slices.Contains(s.f.AllowUnsafe, d.name) {
			s.log.Warn("an unsafe setting is accepted", "check", d.name, "setting", d.setting, "loses", d.loses)
			continue
		}
		errs = append(errs, d)
	}
	if len(errs) > 0 {
		return fmt.Errorf("refusing to start: %w", errors.Join(errs...))
	}
	return nil
}

// queueDangers are those of the broker's settings.
func (s *service) queueDangers() []danger {
	if q, ok := s.queue.(queue.Inspector); ok {
		return redisDangers("the queue", q.Settings())
	}
	return nil
}

// checkQueue says all that is wrong with the queue at once: whoever has accepted
// one thing should not be told of the next.
func (s *service) checkQueue() error {
	err := s.refuse(s.queueDangers()...)
	if missing := missingPromise(s.queue.Capabilities()); missing != "" && s.f.Queue != "" && !s.f.AllowLossy {
		err = errors.Join(err, fmt.Errorf("queue %s can lose orders: %s; choose another one, or accept that with --allow-lossy", store.Redact(s.f.Queue), missing))
	}
	return err
}

// check looks at gate and database; a setting that a server does not tell is not
// refused, as hosted ones tell little.
func (s *service) check(ctx context.Context) error {
	var ds []danger
	known := s.queueDangers()
	gate, err := gateDangers(ctx, s.gate)
	if err != nil {
		return err
	}
	settings, err := s.store.Settings(ctx)
	if err != nil {
		return err
	}
	for _, d := range gate {
		// The queue is most often in the Redis of admission: one sentence is enough.
		if !slices.ContainsFunc(known, func(e danger) bool { return e.name == d.name }) {
			ds = append(ds, d)
		}
	}
	return s.refuse(append(ds, databaseDangers(settings...)...)...)
}

func gateDangers(ctx context.Context, gate sale.Gate) ([]danger, error) {
	g, ok := gate.(*admission.Redis)
	if !ok {
		return nil, nil
	}
	settings, err := g.Settings(ctx)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	return redisDangers("admission", settings), nil
}

func redisDangers(whose string, set map[string]string) []danger {
	var ds []danger
	if policy := set["maxmemory-policy"]; policy != "" && policy != "noeviction" {
		ds = append(ds, danger{redisEviction, "maxmemory-policy=" + policy + " in the Redis of " + whose,
			"when its memory is full it deletes keys, and with them stock, buyers or queued orders",
			"set maxmemory-policy noeviction"})
	}
	if set["appendonly"] == "no" {
		ds = append(ds, danger{redisPersistence, "appendonly=no in the Redis of " + whose,
			"a restart forgets all that came after the last snapshot, or everything if there is none",
			"set appendonly yes"})
	} else if set["appendfsync"] == "no" {
		ds = append(ds, danger{redisFsync, "appendfsync=no in the Redis of " + whose,
			"the system writes to the disk when it likes, so that a power cut forgets half a minute of stock, buyers or orders",
			"set appendfsync everysec"})
	}
	return ds
}

func databaseDangers(all ...store.Settings) []danger {
	var ds []danger
	for _, set := range all {
		if set.Fsync == "off" {
			ds = append(ds, danger{pgFsync, "fsync=off in " + set.Of,
				"a power cut can destroy it, and undo orders that buyers were told of",
				"set fsync = on"})
		}
		if set.SynchronousCommit == "off" {
			ds = append(ds, danger{pgCommit, "synchronous_commit=off in " + set.Of,
				"a commit is answered before it is on the disk, so that a crash undoes orders whose messages are acked",
				"set synchronous_commit = on"})
		}
	}
	return ds
}

// queueURLDangers are those of the client's own settings.
func queueURLDangers(name string) []danger {
	b, err := backends.Lookup(name)
	u, err2 := url.Parse(name)
	if err != nil || err2 != nil || !strings.Contains(name, "://") {
		return nil // a bare name has safe settings
	}
	q := u.Query()
	var ds []danger
	switch b.Name {
	case "kafka":
		if acks := q.Get("acks"); acks != "" && acks != "all" {
			ds = append(ds, danger{kafkaAcks, "acks=" + acks + " in the queue's URL",
				"a message is accepted before its replicas have it, and gone when the leader is",
				"use acks=all, which is the default"})
		}
	case "rabbitmq":
		if q.Get("persistent") == "false" {
			ds = append(ds, danger{rabbitTransient, "persistent=false in the queue's URL",
				"messages are in the broker's memory only, and a restart forgets them",
				"leave it out, or use type=quorum"})
		}
		if q.Get("auto-ack") == "true" {
			ds = append(ds, danger{rabbitPrefetch, "auto-ack=true in the queue's URL",
				"no prefetch bounds what the broker sends, and it forgets that at once, so that all of it is lost with a worker",
				"leave it out"})
		}
	}
	return ds
}
