package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/report"
	"queuelab/bench/trial"
)

func TestTheReadmesShowTheCapabilitiesOfOpenQueues(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis", "rabbitmq", "kafka"} {
		brokertest.Need(t, kind)
	}
	lab, err := trial.NewLab(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	rows, err := capabilityRows(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		asKept(t, r.Setting, r.Capabilities)
	}
	for name, caps := range opened(t, lab, besideCore()) {
		asKept(t, name, caps)
	}
	for name, want := range map[string]string{"README.md": report.CapabilityTable(rows), "README.zh-CN.md": report.CapabilityTableZh(rows)} {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		_, got, _, err := block(string(raw), "capabilities")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: the table is not what the open queues say; run `make readme`\ngot:\n%s\nwant:\n%s", name, got, want)
		}
	}
}
