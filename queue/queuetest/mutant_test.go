package queuetest_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// mutantEnv names the mutant that a child process runs the suite on.
const mutantEnv = "QUEUETEST_MUTANT"

func TestMain(m *testing.M) {
	if os.Getenv(mutantEnv) != "" {
		os.Exit(m.Run()) // a broken queue leaks as it likes
	}
	goleak.VerifyTestMain(m)
}

// shapes are honest queues of every kind that the backends are.
func shapes() map[string]shape {
	streams := queue.Capabilities{
		Confirm: queue.ConfirmOS, Guarantee: queue.AtLeastOnce, AckConfirmed: true, Attempts: queue.CountedByBroker,
		Groups: true, Nack: true, OrderedPerKey: true, Stored: true, Durable: true, Shared: true, LeaseFenced: true,
	}
	volatile := streams
	volatile.Confirm, volatile.Durable, volatile.LeaseFenced = queue.ConfirmMemory, false, false
	return map[string]shape{
		"streams":  {caps: streams, lease: 150 * time.Millisecond},
		"volatile": {caps: volatile, lease: 150 * time.Millisecond},
		"pubsub":   {caps: queue.Capabilities{Broadcast: true, OrderedPerKey: true, Shared: true}},
		"list":     {caps: queue.Capabilities{Confirm: queue.ConfirmMemory, OrderedPerKey: true, Stored: true, Shared: true}},
		"classic": {caps: queue.Capabilities{
			Confirm: queue.ConfirmDisk, Guarantee: queue.AtLeastOnce, Attempts: queue.FlaggedByBroker,
			Nack: true, OrderedPerKey: true, Stored: true, Durable: true, Shared: true,
		}},
		"log": {caps: queue.Capabilities{
			Confirm: queue.ConfirmReplicas, Guarantee: queue.AtLeastOnce, AckConfirmed: true,
			Groups: true, OrderedPerKey: true, Stored: true, Durable: true, Shared: true, LeaseFenced: true,
		}},
	}
}

// mutant is a broken queue and the case that must say so.
type mutant struct {
	name    string
	harness func() queuetest.Harness
	caught  string // "" for an honest queue: no case
	says    string // part of what the failure prints; "": anything
}

func mutants() []mutant {
	return slices.Concat(brokenQueues(), brokenBrokers(), falseClaims(), brokenScripts())
}

// honestQueues must pass; without them a suite that always fails would be the
// best of all.
func honestQueues() []mutant {
	patient := func(h queuetest.Harness) func() queuetest.Harness {
		h.Arrival = 5 * time.Second
		return func() queuetest.Harness { return h }
	}
	ms := []mutant{
		{name: "honest memory", harness: patient(tamper(func() *tampered { return &tampered{} }))},
		{name: "honest scripts", harness: patient(scriptedHarness(func(*queue.Message) {}))},
	}
	for name, s := range shapes() {
		if s.lease > 0 {
			// On a machine under load a consumer may be kept from its work for longer
			// than the mutants' short lease, and then honestly loses it.
			s.lease = 1500 * time.Millisecond
		}
		ms = append(ms, mutant{name: "honest " + name, harness: patient(newBroker(s).harness())})
	}
	return ms
}

// TestMutant runs the suite on one queue, in a child process of the next test.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	if name == "" {
		t.Skip("runs only as a child of TestTheSuiteCatchesEveryMutant")
	}
	for _, m := range slices.Concat(honestQueues(), mutants()) {
		if m.name == name {
			queuetest.Run(t, m.harness())
			return
		}
	}
	t.Fatalf("no mutant %q", name)
}

var failedCase = regexp.MustCompile(`--- FAIL: TestMutant/(?:together/)?(\w+) `)

// TestTheSuiteCatchesEveryMutant also lets it pass the honest queues.
func TestTheSuiteCatchesEveryMutant(t *testing.T) {
	// The children wait far more than they work, so that many can run at once
	// whatever -parallel says.
	slots := make(chan struct{}, 12)
	type result struct {
		out []byte
		err error
	}
	all := slices.Concat(honestQueues(), mutants())
	results := make([]chan result, len(all))
	for i, m := range all {
		results[i] = make(chan result, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutant$", "-test.parallel=64", "-test.timeout=120s")
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			results[i] <- result{out, err}
		}()
	}
	for i, m := range all {
		t.Run(m.name, func(t *testing.T) {
			r := <-results[i]
			if m.caught == "" {
				if r.err != nil {
					t.Fatalf("the suite on an honest queue: %v\n%s", r.err, r.out)
				}
				return
			}
			var exit *exec.ExitError
			if !errors.As(r.err, &exit) {
				t.Fatalf("the suite on this mutant: got %v, want a failure\n%s", r.err, r.out)
			}
			var failed []string
			for _, f := range failedCase.FindAllSubmatch(r.out, -1) {
				if name := string(f[1]); name != "together" {
					failed = append(failed, name)
				}
			}
			slices.Sort(failed)
			if !slices.Contains(failed, m.caught) {
				t.Fatalf("failed cases: got %v, want %s among them\n%s", failed, m.caught, r.out)
			}
			if !strings.Contains(string(r.out), m.says) {
				t.Errorf("the failure does not say %q:\n%s", m.says, r.out)
			}
			t.Logf("caught by %s", strings.Join(failed, ", "))
		})
	}
}
