package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/bench/fault"
)

// SuiteFaults names the suite of a campaign in results.
const SuiteFaults = "faults"

// question is one row of the default campaign: a fault, and the settings on
// which its outcome teaches something.
type question struct {
	fault    string
	settings []string
}

// questions are the cells of the default campaign. They begin with the
// controls: without a fault nothing may be lost, and a setting that keeps
// nothing must lose.
func questions() []question {
	of := func(fault string, settings ...string) question { return question{fault, settings} }
	return []question{
		of("none", "memory/bounded", "redis-list/aof-everysec", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all"),
		of("broker-kill",
			"redis-list/no-persistence", "redis-list/aof-no", "redis-list/aof-everysec", "redis-list/aof-always",
			"redis-streams/no-persistence", "redis-streams/aof-everysec",
			"rabbitmq/transient", "rabbitmq/classic", "rabbitmq/quorum", "kafka/acks-all"),
		of("power-loss",
			"redis-list/aof-no", "redis-list/aof-everysec", "redis-list/aof-always", "redis-streams/aof-everysec", "redis-streams/aof-always",
			"rabbitmq/classic", "rabbitmq/quorum", "kafka/acks-all", "kafka/acks-all-flush"),
		of("slow-fsync", "redis-list/aof-everysec", "redis-streams/aof-everysec"),
		of("disk-full", "redis-streams/aof-always", "rabbitmq/quorum"),
		of("consumer-kill-mid-handle",
			"memory/bounded", "redis-list/aof-everysec", "redis-list-reliable/aof-everysec", "redis-streams/aof-everysec", "redis-streams/no-ack",
			"rabbitmq/transient", "rabbitmq/quorum", "kafka/acks-all", "kafka/commit-before"),
		of("consumer-kill-slow-handler", "kafka/acks-all", "kafka/auto-commit", "kafka/auto-commit-poll"),
		of("consumer-kill-before-ack", "redis-list/aof-everysec", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all"),
		of("producer-kill", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all"),
		of("zombie-consumer", "redis-streams/aof-everysec", "kafka/acks-all"),
		of("broker-stop", "redis-list/no-persistence", "redis-streams/aof-everysec", "rabbitmq/quorum"),
		of("broker-freeze", "redis-streams/aof-everysec", "kafka/acks-all"),
		of("lost-reply-publish", "redis-list/aof-everysec", "redis-list/client-retries", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all", "kafka/client-retries", "kafka/franz-idempotent"),
		of("lost-reply-receive", "redis-list/aof-everysec", "redis-list-reliable/aof-everysec"),
		of("black-hole-consumer", "redis-list/aof-everysec", "redis-streams/aof-everysec"),
		of("reset", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all"),
		of("unroutable", "rabbitmq/no-mandatory", "rabbitmq/quorum"),
		of("queue-limit", "rabbitmq/drop-head", "rabbitmq/reject-publish", "redis-streams/maxlen", "kafka/retention"),
		of("del-consumer", "redis-streams/aof-everysec"),
		of("group-delete", "redis-streams/aof-everysec"),
		of("script-flush", "redis-streams/aof-everysec"),
		of("memory-end", "redis-streams/aof-everysec"),
		of("out-of-memory", "redis-list/no-persistence", "redis-streams/aof-everysec"),
		of("memory-watermark", "rabbitmq/quorum"),
		of("poison", "redis-streams/aof-everysec", "rabbitmq/quorum"),
		of("database-down", "redis-streams/aof-everysec", "rabbitmq/quorum"),
		of("database-kill", "redis-streams/aof-everysec"),
		of("commit-reply-lost", "redis-streams/aof-everysec", "rabbitmq/quorum"),
		of("leader-kill", "kafka-3/acks-1", "kafka-3/acks-all", "rabbitmq-3/quorum", "redis-sentinel/list", "redis-sentinel/list-wait"),
		of("leader-partition", "kafka-3/acks-1", "kafka-3/acks-all"),
		of("majority-loss", "rabbitmq-3/quorum"),
	}
}

// Campaign lists the cells of a fault campaign. settings and faults are lists
// separated by commas, as SelectSettings and Faults have them; where one is
// given, or all is, every fault meets every setting of what is left. crashes is
// how often a fault strikes whose outcome chance decides; one whose outcome is
// certain, and the control, take fewer.
func Campaign(settings, faults string, crashes int, all bool) ([]Spec, error) {
	chosen, err := SelectSettings(settings)
	if err != nil {
		return nil, err
	}
	struck, err := selectFaults(faults)
	if err != nil {
		return nil, err
	}
	load := LoadParams{Rate: 1000, Messages: 1000, Payload: 100, Prefetch: 10}
	whole := settings == "" && faults == "" && !all
	var specs []Spec
	if whole { // what the durability of those that lose power costs
		load := LoadParams{Rate: 1000, Warmup: time.Second, Duration: 10 * time.Second, Payload: 100}
		for _, s := range chosen {
			if asks("power-loss", s) {
				specs = append(specs, Spec{Setting: s, Test: TestLatency, Fault: FaultNone, Trials: 1, Load: load})
			}
		}
	}
	for _, f := range struck {
		asked := chosen
		if whole {
			asked = slices.DeleteFunc(slices.Clone(chosen), func(s Setting) bool { return !asks(f.Name, s) })
		}
		for _, s := range asked {
			specs = append(specs, Spec{Setting: s, Test: TestFault, Fault: f.Name, Trials: min(crashes, cmp.Or(f.Trials, crashes)), Load: load})
		}
	}
	return specs, nil
}

// asks reports whether the default campaign has that cell.
func asks(fault string, s Setting) bool {
	return slices.ContainsFunc(questions(), func(q question) bool { return q.fault == fault && slices.Contains(q.settings, s.String()) })
}

func selectFaults(list string) ([]fault.Fault, error) {
	all := fault.All()
	if list == "" || list == "all" {
		return all, nil
	}
	var chosen []fault.Fault
	for name := range strings.SplitSeq(list, ",") {
		f, ok := fault.Lookup(strings.TrimSpace(name))
		if !ok {
			var names []string
			for _, f := range all {
				names = append(names, f.Name)
			}
			return nil, fmt.Errorf("unknown fault %q: the faults are %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, f)
	}
	return chosen, nil
}

// TrialName names a trial of a result, as explain and replay take it.
func TrialName(backend, setting, fault string, n int) string {
	return fmt.Sprintf("%s/%s:%s:%d", backend, setting, fault, n)
}
