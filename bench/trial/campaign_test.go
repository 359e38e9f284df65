package trial

import (
	"slices"
	"strings"
	"testing"
)

func TestTheCampaignAsksOnlyOfWhatThereIs(t *testing.T) {
	var settings []string
	for _, s := range Settings() {
		settings = append(settings, s.String())
	}
	specs, err := Campaign("", "", 10, false)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, q := range questions() {
		if !slices.Contains(Faults(), q.fault) {
			t.Errorf("the campaign asks of the unknown fault %q", q.fault)
		}
		for _, s := range q.settings {
			asked++
			if !slices.Contains(settings, s) {
				t.Errorf("the campaign asks %s of the unknown setting %q", q.fault, s)
			}
		}
	}
	faults := slices.DeleteFunc(slices.Clone(specs), func(s Spec) bool { return s.Test != TestFault })
	if len(faults) != asked {
		t.Errorf("got %d cells, want the %d that the questions name", len(faults), asked)
	}
	if faults[0].Fault != FaultNone {
		t.Errorf("got %s first, want the control", faults[0].Fault)
	}
}

func TestNamedFaultsMeetEveryNamedSetting(t *testing.T) {
	specs, err := Campaign("memory,redis-list/aof-always", "none,broker-kill", 7, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, s.Setting.String()+":"+s.Fault)
		if want := map[string]int{FaultNone: 3, FaultBrokerKill: 7}[s.Fault]; s.Trials != want {
			t.Errorf("%s under %s: got %d trials, want %d", s.Setting, s.Fault, s.Trials, want)
		}
	}
	want := "memory/bounded:none redis-list/aof-always:none memory/bounded:broker-kill redis-list/aof-always:broker-kill"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, err := Campaign("", "flood", 1, false); err == nil || !strings.Contains(err.Error(), "broker-kill") {
		t.Errorf("an unknown fault: got %v, want an error that names the faults", err)
	}
}

// A fault that may strike at any moment of a cycle must strike in every part of
// it, in each cell in another order, and always the same for a seed.
func TestTheMomentsOfACellCoverTheCycle(t *testing.T) {
	s := Spec{Setting: Settings()[0], Test: TestFault, Fault: FaultBrokerKill, Trials: 10}
	parts := map[int]bool{}
	var order []int
	for n := 1; n <= s.Trials; n++ {
		m := moment(7, s, n)
		if m < 0 || m >= 1 || m != moment(7, s, n) {
			t.Fatalf("trial %d: got %v and then %v, want the same within [0, 1)", n, m, moment(7, s, n))
		}
		parts[int(m*10)] = true
		order = append(order, int(m*10))
	}
	if len(parts) != 10 {
		t.Errorf("10 trials struck in %d of 10 parts of the cycle: %v", len(parts), order)
	}
	if slices.IsSorted(order) {
		t.Errorf("got %v, want an order by chance", order)
	}
	if moment(7, s, 1) == moment(8, s, 1) {
		t.Error("another seed has the same moments")
	}
}
