package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/choose/claims"
	"queuelab/bench/trial"
	"queuelab/queue"
)

// asKept holds what is kept of a setting to what its open queue says.
func asKept(t *testing.T, setting string, open queue.Capabilities) {
	t.Helper()
	kept, err := claims.All()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept[setting], open); diff != "" {
		t.Errorf("%s: what is kept is not what the open queue says; run QUEUELAB_UPDATE=1 go test -run Claims ./bench (-kept +open)\n%s", setting, diff)
	}
}

// opened is what the open queues of these settings say.
func opened(t *testing.T, lab *trial.Lab, settings []trial.Setting) map[string]queue.Capabilities {
	t.Helper()
	open := map[string]queue.Capabilities{}
	for _, s := range settings {
		caps, err := lab.Capabilities(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		open[s.String()] = caps
	}
	return open
}

// besideCore are the settings that the brokers of the core settings serve too, so
// that no broker is started for them.
func besideCore() []trial.Setting {
	core := trial.CoreSettings()
	return slices.DeleteFunc(trial.Settings(), func(s trial.Setting) bool {
		served := slices.ContainsFunc(core, func(c trial.Setting) bool { return c.Broker == s.Broker && c.Conf == s.Conf })
		return !served || slices.ContainsFunc(core, func(c trial.Setting) bool { return c.String() == s.String() })
	})
}

// Every setting, on brokers of all kinds, clusters too: a minute. The tests that
// have them open anyway are the one of the READMEs' tables and those of clusters.
func TestClaimsAreWhatTheOpenQueuesSay(t *testing.T) {
	update := os.Getenv("QUEUELAB_UPDATE") != ""
	if !update && os.Getenv("QUEUELAB_SOAK") == "" {
		t.Skip("a minute; QUEUELAB_SOAK=1 runs it, QUEUELAB_UPDATE=1 writes the file")
	}
	all := trial.Settings()
	var names []string
	for _, s := range all {
		names = append(names, s.String())
		if s.Broker != "" {
			brokertest.Need(t, s.Broker)
		}
	}
	lab, err := trial.NewLab(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	open := opened(t, lab, all)
	if !update {
		for name, caps := range open {
			asKept(t, name, caps)
		}
		return
	}
	data, err := claims.Encode(open, names)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("choose", "claims", claims.File), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
