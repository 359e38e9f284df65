package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"queuelab/bench/report"
	"queuelab/bench/trial"
)

type readmeCmd struct {
	Dir    string `default:"." help:"The repository."`
	Result string `placeholder:"DIR" help:"Put the table of this result in; without it that table stays."`
}

func (c readmeCmd) Run(e *env) error {
	lab, err := trial.NewLab(nil, "")
	if err != nil {
		return err
	}
	defer lab.Close()
	caps, err := capabilityRows(e.ctx, lab)
	if err != nil {
		return err
	}
	for name, render := range map[string]struct {
		capabilities func([]report.CapabilityRow) string
		result       func(trial.Result) string
	}{
		"README.md":       {report.CapabilityTable, report.ReadmeTable},
		"README.zh-CN.md": {report.CapabilityTableZh, report.ReadmeTableZh},
	} {
		path := filepath.Join(c.Dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := replaceBlock(string(raw), "capabilities", render.capabilities(caps))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if c.Result != "" {
			result, err := report.Read(c.Result)
			if err != nil {
				return err
			}
			if text, err = replaceBlock(text, "result", render.result(result)); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// capabilityRows asks every core setting, open on its real broker.
func capabilityRows(ctx context.Context, lab *trial.Lab) ([]report.CapabilityRow, error) {
	var rows []report.CapabilityRow
	for _, s := range trial.CoreSettings() {
		caps, err := lab.Capabilities(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, report.CapabilityRow{Setting: s.String(), Capabilities: caps})
	}
	return rows, nil
}

// block finds what stands between <!-- name:begin --> and <!-- name:end -->.
func block(text, name string) (before, inside, after string, err error) {
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	before, rest, ok := strings.Cut(text, begin)
	inside, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", "", "", fmt.Errorf("no block between %q and %q", strings.TrimSpace(begin), end)
	}
	return before + begin, inside, end + after, nil
}

func replaceBlock(text, name, inside string) (string, error) {
	before, _, after, err := block(text, name)
	if err != nil {
		return "", err
	}
	return before + strings.TrimSpace(inside) + "\n" + after, nil
}
