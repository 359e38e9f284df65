package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"queuelab/bench/trial"
)

// written writes a result and returns its page, and its JSON as anybody reads it.
func written(t *testing.T, result trial.Result) (page string, root any) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, result, Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), root
}

var step = regexp.MustCompile(`^\.?([A-Za-z0-9]+)|^\[(\d+)\]|^\[("(?:[^"\\]|\\.)*")\]`)

// lookup follows a path such as cells[12].spread["endToEnd.p99"].median.
func lookup(root any, path string) (json.Number, error) {
	at := root
	for rest := path; rest != ""; {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return "", fmt.Errorf("%s: no step at %q", path, rest)
		}
		rest = rest[len(m[0]):]
		switch key := m[1]; {
		case m[2] != "":
			list, ok := at.([]any)
			i, _ := strconv.Atoi(m[2])
			if !ok || i >= len(list) {
				return "", fmt.Errorf("%s: nothing at %s", path, m[0])
			}
			at = list[i]
		default:
			if m[3] != "" {
				key, _ = strconv.Unquote(m[3])
			}
			object, ok := at.(map[string]any)
			if !ok || object[key] == nil {
				return "", fmt.Errorf("%s: nothing at %s", path, m[0])
			}
			at = object[key]
		}
	}
	n, ok := at.(json.Number)
	if !ok {
		return "", fmt.Errorf("%s is no number", path)
	}
	return n, nil
}

// typed is a number as the result's types hold it.
func typed(kind string, n string) any {
	if i, err := strconv.ParseInt(n, 10, 64); err == nil && (kind == asCount || kind == asInteger) {
		return i
	}
	if u, err := strconv.ParseUint(n, 10, 64); err == nil && kind == asInteger {
		return u
	}
	f, _ := strconv.ParseFloat(n, 64)
	return f
}

// unitOf is how the number at a path must be shown, by the names on its way.
func unitOf(path string) []string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(path, p) {
				return true
			}
		}
		return false
	}
	last := path[strings.LastIndexAny(path, ".]")+1:]
	switch {
	case last == "n" || has("scaling") && last == "value":
		return []string{asCount, asInteger}
	case last == "payloadBytes" || last == "prefetch" || last == "consumers" || last == "concurrency":
		return []string{asCount, asInteger}
	case has("Nanos"):
		return []string{asNanos}
	case has("Millis"):
		return []string{asMillis}
	case has("CpuSeconds"):
		return []string{asSeconds}
	case has("Bytes"):
		return []string{asBytes}
	case has("Micros", ".curve[") && !has("slo.curve[") || has("latencyMicros", `spread["endToEnd`, `spread["sale.`):
		return []string{asMicros}
	case has("ratePerSecond", "highestRate", "offered", "achieved", ".rate."):
		return []string{asRate}
	case has("loss.low", "loss.high"):
		return []string{asShare}
	case has("cpuPressure"):
		return []string{asPercent}
	case has("load1"):
		return []string{asPlain}
	}
	return []string{asCount, asInteger}
}

// computed evaluates what a figure says it follows from.
func computed(root any, how string) (float64, error) {
	list := func(path string) []any {
		cells, _ := root.(map[string]any)["cells"].([]any)
		return cells
	}
	distinct := func(key func(map[string]any) string) float64 {
		seen := map[string]bool{}
		for _, c := range list("cells") {
			seen[key(c.(map[string]any))] = true
		}
		return float64(len(seen))
	}
	word := func(c map[string]any, key string) string { return fmt.Sprint(c[key]) }
	switch {
	case how == "cells":
		return float64(len(list("cells"))), nil
	case how == "settings":
		return distinct(func(c map[string]any) string { return word(c, "backend") + "/" + word(c, "setting") }), nil
	case how == "seeds":
		return distinct(func(c map[string]any) string { return word(c, "seed") }), nil
	}
	name, args, ok := strings.Cut(strings.TrimSuffix(how, ")"), "(")
	if !ok {
		return 0, fmt.Errorf("unknown computation %q", how)
	}
	total := 0.0
	for _, path := range strings.Split(args, ",") {
		n, err := lookup(root, path)
		if err != nil {
			return 0, err
		}
		f, err := n.Float64()
		if err != nil {
			return 0, err
		}
		if name == "excluded" {
			return excluded(int(f)), nil
		}
		total += f
	}
	if name != "sum" {
		return 0, fmt.Errorf("unknown computation %q", how)
	}
	return total, nil
}

var (
	shownFigure = regexp.MustCompile(`<(span|tspan) data-k="(\w+)" data-v="([^"]*)" (data-src|data-calc)="([^"]*)">([^<]*)</(?:span|tspan)>`)
	drawnFigure = regexp.MustCompile(`<g class="dot" data-k="(\w+)" data-v="([^"]*)" data-src="([^"]*)">`)
)

func TestEveryFigureIsFoundInTheResult(t *testing.T) {
	for name, result := range map[string]trial.Result{"full": sampleFull(), "old": sample(), "hostile": hostile()} {
		t.Run(name, func(t *testing.T) {
			page, root := written(t, result)
			figures := shownFigure.FindAllStringSubmatch(page, -1)
			if len(figures) < 50 {
				t.Fatalf("got %d figures: the test looks at nothing", len(figures))
			}
			verdicts := 0.0
			for _, m := range figures {
				kind, value, source, shown := m[2], html.UnescapeString(m[3]), html.UnescapeString(m[5]), html.UnescapeString(m[6])
				switch {
				case m[4] == "data-src":
					n, err := lookup(root, source)
					if err != nil {
						t.Error(err)
						continue
					}
					if units := unitOf(source); !slices.Contains(units, kind) {
						t.Errorf("%s: got it shown as %s, want %v", source, kind, units)
					}
					if typed(kind, value) != typed(kind, n.String()) {
						t.Errorf("%s: got the value %s, want %s", source, value, n)
					}
					if want := show(kind, typed(kind, n.String())); shown != want {
						t.Errorf("%s: got %q on the page, want %q", source, shown, want)
					}
				case source == "rank": // TestRanks has its rules
				case source == "verdicts":
					f, _ := strconv.ParseFloat(value, 64)
					verdicts += f
				default:
					want, err := computed(root, source)
					if err != nil {
						t.Error(err)
						continue
					}
					if got, _ := strconv.ParseFloat(value, 64); got != want {
						t.Errorf("%s: got %v, want %v", source, got, want)
					}
					if want := show(kind, typed(kind, value)); shown != want {
						t.Errorf("%s: got %q on the page, want %q", source, shown, want)
					}
				}
			}
			if want, _ := computed(root, "cells"); verdicts != want {
				t.Errorf("the verdicts add up to %v, want %v cells", verdicts, want)
			}
			for _, m := range drawnFigure.FindAllStringSubmatch(page, -1) {
				n, err := lookup(root, html.UnescapeString(m[3]))
				if err != nil || typed(m[1], m[2]) != typed(m[1], n.String()) {
					t.Errorf("a mark of %s: got %s, want %s (%v)", m[3], m[2], n, err)
				}
			}
		})
	}
}

// A number that stands on the page without saying whence must be words: of a
// sentence, of a name or reason in the result, of an axis, or of a hover text
// over a mark that has the number.
func TestNoFigureStandsWithoutItsSource(t *testing.T) {
	for name, result := range map[string]trial.Result{"full": sampleFull(), "old": sample()} {
		t.Run(name, func(t *testing.T) {
			page, root := written(t, result)
			allowed := map[string]bool{}
			digits := regexp.MustCompile(`\d[\d,.]*\d|\d`)
			allow := func(s string) {
				for _, d := range digits.FindAllString(s, -1) {
					allowed[d] = true
				}
			}
			for _, table := range chineseTables() {
				for en, zh := range table {
					allow(en + " " + zh)
				}
			}
			for _, p := range percentiles(trial.Percentiles{}) {
				allow(p.Name + " n<" + count(p.Needs))
			}
			allow(boundText().String())
			var strings_ func(any)
			strings_ = func(v any) {
				switch v := v.(type) {
				case string:
					allow(v)
				case []any:
					for _, e := range v {
						strings_(e)
					}
				case map[string]any:
					for k, e := range v {
						allow(k)
						strings_(e)
					}
				}
			}
			strings_(root)
			allow(day(result.Run.StartedAt) + result.Run.FinishedAt.Sub(result.Run.StartedAt).String())
			n, _ := newView(result).evenTrials(trial.TestSale)
			allow(n.String()) // in the title of a table, for all its cells

			_, body, _ := strings.Cut(page, "<body")
			body, _, _ = strings.Cut(body, `<script type="application/json"`)
			body = shownFigure.ReplaceAllStringFunc(body, func(s string) string {
				allow(html.UnescapeString(shownFigure.FindStringSubmatch(s)[6])) // for the hover texts
				return " "
			})
			for _, m := range drawnFigure.FindAllStringSubmatch(body, -1) {
				allow(show(m[1], typed(m[1], m[2])))
			}
			body = regexp.MustCompile(`<text class="tick"[^>]*>[^<]*</text>`).ReplaceAllString(body, " ")
			hovers := regexp.MustCompile(`(?s)<title[^>]*>.*?</title>`)
			body = hovers.ReplaceAllString(body, " ")
			checked := 0
			for _, words := range regexp.MustCompile(`<[^>]*>`).Split(body, -1) {
				for _, d := range digits.FindAllString(html.UnescapeString(words), -1) {
					checked++
					if !allowed[d] {
						t.Errorf("got %s in %q, which says not whence it is", d, strings.TrimSpace(words))
					}
				}
			}
			if checked < 20 || !strings.ContainsFunc(body, unicode.IsDigit) {
				t.Errorf("checked %d numbers: the test looks at nothing", checked)
			}
		})
	}
}

func TestALookupSeesAWrongPath(t *testing.T) {
	root := map[string]any{"cells": []any{map[string]any{"spread": map[string]any{"endToEnd.p99": map[string]any{"median": json.Number("7")}}}}}
	if n, err := lookup(root, `cells[0].spread["endToEnd.p99"].median`); n != "7" || err != nil {
		t.Errorf("got %s, %v, want 7", n, err)
	}
	for _, path := range []string{"cells[1].spread", `cells[0].spread["endToEnd.p50"].median`, "cells[0].spread", "cells"} {
		if n, err := lookup(root, path); err == nil {
			t.Errorf("%s: got %s, want an error", path, n)
		}
	}
}
