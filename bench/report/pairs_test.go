package report

import (
	"bytes"
	"encoding/csv"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"queuelab/bench/trial"
	"queuelab/queue"
)

// sentences collects every English sentence that the package and its templates
// can say.
func sentences(t *testing.T) []string {
	t.Helper()
	var out []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			id, ok := call.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			var keys []ast.Expr
			switch id.Name {
			case "say", "col":
				keys = call.Args[:1]
			case "many":
				keys = call.Args[1:3]
			}
			for _, k := range keys {
				if s, ok := literal(k); ok {
					out = append(out, s)
				} else if name, ok := k.(*ast.Ident); !ok || !slices.Contains([]string{"one", "more", "en", "title", "s", "note"}, name.Name) {
					t.Errorf("%s: got %s of something that is not a literal: no test can see its words", name, id.Name)
				}
			}
			return true
		})
	}
	inTemplate := regexp.MustCompile(`say ("(?:[^"\\]|\\.)*")`)
	if err := fs.WalkDir(assets, "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".tmpl") {
			return err
		}
		data, err := assets.ReadFile(path)
		for _, m := range inTemplate.FindAllSubmatch(data, -1) {
			s, err := strconv.Unquote(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// literal is a string literal, or a sum of them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(e.X)
		b, also := literal(e.Y)
		return a + b, ok && also
	}
	return "", false
}

// vocabulary is the words of a result that people read on the page.
func vocabulary(t *testing.T) []string {
	t.Helper()
	out := []string{
		trial.TestLatency, trial.TestThroughput, trial.TestCrash, trial.TestSale, trial.TestSLO, trial.TestScalingConsumers, trial.TestScalingConnections,
		trial.TestScalingPayload, trial.TestScalingBatch, queue.AtLeastOnce.String(), queue.AtMostOnce.String(), note,
	}
	for c := queue.ConfirmNone; c <= queue.ConfirmReplicas; c++ {
		out = append(out, c.String())
	}
	for _, m := range append(marks(), knownLoss()) {
		out = append(out, m.Verdict)
	}
	data, err := os.ReadFile(filepath.Join("..", "trial", "oracle.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := csv.NewReader(bytes.NewReader(data))
	rows.Comment = '#'
	records, err := rows.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records[1:] {
		out = append(out, r[5])
	}
	return out
}

func TestEverySentenceHasItsChinese(t *testing.T) {
	places := regexp.MustCompile(`\{\d+\}`)
	all := append(sentences(t), vocabulary(t)...)
	if len(all) < 200 {
		t.Fatalf("got %d sentences: the test looks at nothing", len(all))
	}
	for _, en := range all {
		words := places.ReplaceAllString(en, "")
		zh, ok := chineseOf(en)
		if !ok && !strings.ContainsFunc(words, unicode.IsLetter) {
			continue // signs between arguments
		}
		if !ok || zh == "" {
			t.Errorf("no Chinese for %q", en)
			continue
		}
		want, got := places.FindAllString(en, -1), places.FindAllString(zh, -1)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%q: got the places %v in %q, want %v", en, got, zh, want)
		}
		if strings.ContainsFunc(words, unicode.IsLetter) && zh == en && !slices.Contains(sameInBoth(), en) {
			t.Errorf("%q is its own Chinese", en)
		}
	}
}

// sameInBoth are names of percentiles and units, which have no Chinese.
func sameInBoth() []string {
	return []string{"p90", "p99", "p99.9", "max", "p99 {0}", "n", "n={0}", "{0} B"}
}

func TestNoPairIsLeftOver(t *testing.T) {
	said := map[string]bool{}
	for _, s := range append(sentences(t), vocabulary(t)...) {
		said[s] = true
	}
	seen := map[string]bool{}
	for _, table := range chineseTables() {
		for en := range table {
			if seen[en] {
				t.Errorf("%q is in two tables", en)
			}
			seen[en] = true
			if !said[en] && !slices.Contains(wordsOfResults(), en) {
				t.Errorf("%q is said nowhere", en)
			}
		}
	}
}

// wordsOfResults are in results, but not in a constant that the test can list.
func wordsOfResults() []string {
	return []string{"in-hand", "backlog", "unacked", "any", "pops", "since commit", "in-hand + buffer", "buffer", "backlog + in-hand", "in-hand + buffer + until resubscribed", "buffer + until resubscribed"}
}

func TestTheSwitchKeepsTheArgumentsOfASentence(t *testing.T) {
	got := say("{0} is emulated by {1}: it is not ranked, and not the real broker", "a", "b")
	if got.String() != "a is emulated by b: it is not ranked, and not the real broker" {
		t.Errorf("got %q", got)
	}
	if zh := got.Chinese(); !strings.Contains(zh, "a") || !strings.Contains(zh, "b") || zh == got.String() {
		t.Errorf("got the Chinese %q, want both names in it", zh)
	}
}
