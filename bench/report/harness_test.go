package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"queuelab/bench/ledger"
	"queuelab/bench/stat"
	"queuelab/bench/trial"
)

// leftover finds a word of three letters or more that Chinese does not use.
func leftover(t *testing.T, zh string) string {
	t.Helper()
	for _, w := range regexp.MustCompile(`[A-Za-z]{3,}`).FindAllString(zh, -1) {
		if !slices.Contains([]string{"Redis", "ack", "maxmemory", "policy", "smoke", "make", "bench", "Kafka", "RabbitMQ", "BRPOP"}, w) {
			return w
		}
	}
	return ""
}

func TestNotesOfVerdictsAreChineseOnTheChinesePage(t *testing.T) {
	var notes []string
	for _, where := range [][2]string{{"redis-list/aof-always", trial.FaultNone}, {"redis-list/no-persistence", trial.FaultBrokerKill}, {"redis-streams/aof-everysec", trial.FaultConsumerKillMidHandle}, {"redis-list/aof-everysec", "power-loss"}, {"redis-pubsub/default", trial.FaultBrokerKill}} {
		row, err := trial.Lookup(where[0], where[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []ledger.Counts{{}, {Lost: 3}, {Redelivered: 4}, {Phantom: 1, RejectedDelivered: 2}, {Stranded: 2, EffectDuplicates: 9}, {ProducerDuplicates: 2}} {
			for _, n := range []int{0, 1, 3} {
				_, note := trial.Verdict(row, trial.Facts{Backlog: 10, InHand: 2}, c, n)
				notes = append(notes, note)
			}
		}
	}
	notes = append(notes, stat.Noisy([]float64{1}), stat.Noisy([]float64{1, 2}), stat.Noisy([]float64{1, 9, 2, 8, 3, 7}), stat.Noisy([]float64{-9, 9, 0, 0, 0, 8, -8}))
	for _, note := range notes {
		zh := harness(note).Chinese()
		if w := leftover(t, zh); w != "" {
			t.Errorf("%q: got %q, with the English %q in it", note, zh, w)
		}
	}
	if got, want := harness("2 redelivered, expected exactly 0; 3 stranded in the queue").Chinese(), "重复投递 2 条，预期恰好 0；3 条滞留在队列中"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatNobodyKnowsStaysAsItStands(t *testing.T) {
	for _, s := range []string{"", "dial tcp 127.0.0.1:1: connection refused", "connect to a broker", "of all trials", "EOF; reset"} {
		got := harness(s)
		if zh := strings.ReplaceAll(got.Chinese(), "；", "; "); got.String() != s || zh != s {
			t.Errorf("%q: got %q and %q", s, got, got.Chinese())
		}
	}
}

// TestReasonsOfTheHarnessHaveTheirChinese reads the sentences where they are
// made, since most of them need a fault to be seen.
func TestReasonsOfTheHarnessHaveTheirChinese(t *testing.T) {
	verb := regexp.MustCompile(`%[-+.\d]*[a-zA-Z]`)
	looked := 0
	look := func(pos token.Position, format string) {
		looked++
		s := strings.ReplaceAll(verb.ReplaceAllString(format, "7"), "%%", "%")
		if zh := harness(s).Chinese(); zh == s && regexp.MustCompile(`[a-z]{3}`).MatchString(s) {
			t.Errorf("%s: no Chinese for %q in chineseNotes", pos, format)
		}
	}
	files, err := filepath.Glob("../fault/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "../load/stats.go", "../trial/judge.go", "../trial/trials.go", "../trial/measure.go", "../trial/slo.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var said []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				to, _ := n.Fun.(*ast.SelectorExpr)
				id, _ := n.Fun.(*ast.Ident)
				switch {
				case to != nil && to.Sel.Name == "Invalid":
					said = n.Args[:1]
				case id != nil && id.Name == "append" && len(n.Args) == 2 && about(n.Args[0]):
					said = inside(n.Args[1])
				}
			case *ast.AssignStmt:
				if len(n.Lhs) == 1 && about(n.Lhs[0]) {
					said = inside(n.Rhs[0])
				}
			}
			for _, e := range said {
				if s, ok := literal(e); ok {
					look(set.Position(e.Pos()), s)
				}
			}
			return true
		})
	}
	if looked < 30 {
		t.Errorf("got %d sentences: the test looks at too little", looked)
	}
}

// about reports whether a variable holds reasons.
func about(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"invalid", "saturated", "damage", "Noisy", "Limit"}, s.Sel.Name)
}

// inside is a sentence, or the form that Sprintf makes one of.
func inside(e ast.Expr) []ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok {
		return call.Args[:1]
	}
	return []ast.Expr{e}
}
