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

// claimsAsKept opens each setting and holds what is kept of it to what it says.
func claimsAsKept(t *testing.T, lab *trial.Lab, settings []trial.Setting) map[string]queue.Capabilities {
	t.Helper()
	kept, err := claims.All()
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]queue.Capabilities{}
	for _, s := range settings {
		caps, err := lab.Capabilities(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		open[s.String()] = caps
		if diff := cmp.Diff(kept[s.String()], caps); diff != "" && os.Getenv("QUEUELAB_UPDATE") == "" {
			t.Errorf("%s: what is kept is not what the open queue says; run QUEUELAB_UPDATE=1 go test -run Claims ./bench (-kept +open)\n%s", s, diff)
		}
	}
	return open
}

// onBrokersOf are the settings that the brokers of others serve too, so that no
// broker is started for them.
func onBrokersOf(others []trial.Setting) []trial.Setting {
	return slices.DeleteFunc(trial.Settings(), func(s trial.Setting) bool {
		return !slices.ContainsFunc(others, func(o trial.Setting) bool { return o.Broker == s.Broker && o.Conf == s.Conf })
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
	open := claimsAsKept(t, lab, all)
	if !update {
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
