package trial

import (
	"strings"
	"time"

	"queuelab/bench/fault"
	"queuelab/queue"
)

// pace is how long trials take on one kind of broker, in seconds: the start of
// the broker, a trial without a fault, and how much longer one is in which the
// broker has to come back. Measured on two cores with three trials at once.
type pace struct{ start, trial, back float64 }

func paceOf(kind string) pace {
	switch kind {
	case "":
		return pace{0, 2, 0}
	case "rabbitmq":
		return pace{8, 6.5, 11}
	case "kafka":
		return pace{5, 4, 8.5}
	case "kafka-3":
		return pace{15, 6, 14}
	case "rabbitmq-3":
		return pace{25, 9, 13}
	case "redis-sentinel":
		return pace{4, 5, 4}
	case "postgres":
		return pace{2, 4.5, 4}
	case "nats":
		return pace{1, 4.2, 1}
	}
	return pace{1, 3.3, 1.5}
}

// toll is what a fault adds to a trial: seconds of its own, and how often the
// broker has to come back, where a half is a broker that does not end for long.
type toll struct{ seconds, back float64 }

func tollOf(name string) toll {
	switch name {
	case "broker-kill", "broker-stop":
		return toll{0, 1}
	case "power-loss":
		return toll{2, 1.7}
	case "disk-full":
		return toll{5, 1.2}
	case "slow-fsync":
		return toll{2, 1}
	case "broker-freeze", "zombie-consumer", "database-down":
		return toll{2.5, 0}
	case "slow-consumer", "database-kill":
		return toll{3, 0}
	case "queue-limit", "unroutable":
		return toll{6, 0}
	case "leader-kill", "follower-kill":
		return toll{2, 0.6}
	case "leader-partition":
		return toll{12, 0.5}
	case "majority-loss":
		return toll{4, 0.8}
	case "bell":
		return toll{8, 0}
	case "memory-end", "idle-close", "consumer-kill-slow-handler":
		return toll{1.3, 0}
	case "out-of-memory", "memory-watermark":
		return toll{4, 1}
	}
	return toll{}
}

// unstruck is how long it takes to find that a fault means nothing to a setting.
const unstruck = 200 * time.Millisecond

// estimate is how long the spec takes, before anything is measured.
func (s Spec) estimate() time.Duration {
	p := paceOf(s.Setting.Broker)
	one := seconds(p.trial)
	switch s.Test {
	case TestLatency:
		one = s.Load.Warmup + s.Load.Duration + 2*time.Second
	case TestThroughput:
		one = s.Load.Saturate + 2*time.Second
	case TestSale:
		one = 5 * time.Second
	case TestSLO:
		one = 10 * (sloWarmup + s.Load.dwell() + 2*time.Second)
	case TestCrash, TestFault:
		if s.meaningless() {
			return unstruck
		}
		t := tollOf(s.Fault)
		one += seconds(t.seconds + t.back*p.back)
	default:
		if s.scaling() {
			one = time.Duration(len(scaleValues(s.Test))) * (s.Load.Saturate + 2*time.Second)
		}
	}
	return one * time.Duration(s.Trials)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// meaningless reports whether the fault means nothing to the setting, as far as
// that can be told without its queue: what it is capable of is guessed from the
// setting.
func (s Spec) meaningless() bool {
	if s.Test != TestFault {
		return false
	}
	if row, err := Lookup(s.Setting.Backend+"/"+s.Setting.Name, s.Fault); err == nil && row.NotApplicable() {
		return true
	}
	f, _ := fault.Lookup(s.Fault)
	if f.Storage && strings.HasSuffix(s.Setting.Broker, "-3") || f.Storage && s.Setting.Broker == "redis-sentinel" {
		return true // a cluster has none
	}
	limited := strings.Contains(s.Setting.Query, "max-length=") || strings.Contains(s.Setting.Query, "maxlen=")
	caps := queue.Capabilities{
		Guarantee: queue.AtLeastOnce, Confirm: queue.ConfirmOS,
		Stored: s.Setting.Backend != "redis-pubsub", Bounded: limited, DropsOldest: limited,
	}
	if s.Setting.Profile == ProfileAtMostOnce {
		caps.Guarantee = queue.AtMostOnce
	}
	return f.Means != nil && f.Means(s.target(caps)) != ""
}

// Estimate is how long the specs take, run width at a time where they can.
func Estimate(specs []Spec, width int) time.Duration {
	started := map[string]bool{}
	return schedule(specs, width, func(s Spec) time.Duration {
		d := s.estimate()
		if s.Setting.Broker != "" && !started[s.lane()] && d > unstruck {
			started[s.lane()] = true
			d += seconds(paceOf(s.Setting.Broker).start)
		}
		return d
	})
}

// schedule is how long specs take of which each takes as long as it is told.
func schedule(specs []Spec, width int, takes func(Spec) time.Duration) time.Duration {
	var alone, sum, longest time.Duration
	lanes := map[string]time.Duration{}
	for _, s := range specs {
		d := takes(s)
		if s.alone() {
			alone += d
			continue
		}
		sum += d
		lanes[s.lane()] += d
		longest = max(longest, lanes[s.lane()])
	}
	return alone + max(longest, sum/time.Duration(max(1, width)))
}

// outlook estimates what is left of a run from what was measured of it.
type outlook struct {
	specs []Spec
	left  map[string]int       // trials of each cell
	began map[string]time.Time // of the trial that runs
	took  map[string]time.Duration
	held  map[string]*share // by test: how the estimates held
}

type share struct{ took, expected time.Duration }

func newOutlook(specs []Spec) *outlook {
	r := &outlook{
		specs: specs, left: map[string]int{}, began: map[string]time.Time{}, took: map[string]time.Duration{}, held: map[string]*share{},
	}
	for _, s := range specs {
		r.left[cellName(s)], r.held[s.Test] = s.Trials, &share{}
	}
	return r
}

func (r *outlook) start(s Spec, at time.Time) { r.began[cellName(s)] = at }

// trial notes that one is over. One that was not started is kept from an
// earlier run, and tells nothing of this machine now.
func (r *outlook) trial(s Spec, at time.Time) {
	name := cellName(s)
	r.left[name]--
	began, ok := r.began[name]
	if !ok {
		return
	}
	delete(r.began, name)
	d := at.Sub(began)
	r.took[name] = d // the last one is nearest to the next
	h := r.held[s.Test]
	h.took, h.expected = h.took+d, h.expected+s.estimate()/time.Duration(max(1, s.Trials))
}

func (r *outlook) finish(s Spec) { r.left[cellName(s)] = 0 }

func (r *outlook) time(width int) time.Duration {
	return schedule(r.specs, width, func(s Spec) time.Duration {
		name := cellName(s)
		left := time.Duration(max(0, r.left[name]))
		if d, ok := r.took[name]; ok {
			return d * left
		}
		d := s.estimate() * left / time.Duration(max(1, s.Trials))
		if h := r.held[s.Test]; h.expected > 0 {
			return time.Duration(float64(d) * float64(h.took) / float64(h.expected))
		}
		return d
	})
}
