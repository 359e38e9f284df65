package sale

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

func row(way, setting string, n int, p99 int64, wrong ...string) Row {
	r := Row{Trial: n, SaleRow: trial.SaleRow{Way: way, Setting: setting, Invalid: wrong, Sale: trial.Sale{Buyers: 10, Stock: 5, Sold: 5,
		AnswerMicros: &trial.Percentiles{P50: p99 / 2, P99: p99, N: 10}}}}
	return r
}

func TestALineIsTheMedianOfTheValidTrials(t *testing.T) {
	rows := []Row{
		row("queue", "kafka/acks-all", 1, 3000), row("sync", "", 1, 1000),
		row("queue", "kafka/acks-all", 2, 1000), row("queue", "memory/bounded", 1, 500),
		row("queue", "kafka/acks-all", 3, 90_000, "2 oversold"), row("queue", "kafka/acks-all", 4, 2000),
	}
	rows[4].Oversold = 2
	lines := Lines(rows)
	var names []string
	for _, l := range lines {
		names = append(names, l.Way+" "+l.Setting)
	}
	if got := strings.Join(names, ", "); got != "sync , queue memory/bounded, queue kafka/acks-all" {
		t.Fatalf("got lines %q, want the simplest way first and the queues in their order", got)
	}
	k := lines[2]
	if p99 := k.Figures["answer_p99_ms"]; p99 == nil || *p99 != 2 || k.Valid != 3 || k.Trials != 4 || k.Oversold != 2 || k.Why != "2 oversold" {
		t.Errorf("got p99 %v of %+v, want 2 ms of 3 of 4 trials, and what the other did wrong", p99, k)
	}
}

func TestWhatIsNotValidHasNothingToCompare(t *testing.T) {
	ended := row("queue", "kafka/acks-all", 1, 77_000) // it had begun
	ended.Error = "the service did not start"
	for why, bad := range map[string]Row{"2 oversold": row("queue", "kafka/acks-all", 1, 77_000, "2 oversold"), ended.Error: ended} {
		r := Result{Load: Load{Buyers: 10, Stock: 5, Rate: 1, Trials: 1}, Rows: []Row{bad}}
		for name, n := range Lines(r.Rows)[0].Figures {
			if n != nil {
				t.Errorf("%s: got %s %v, want none", why, name, *n)
			}
		}
		for form, write := range map[string]func(*bytes.Buffer) error{
			"table": func(b *bytes.Buffer) error { return Table(b, r, false, 160) },
			"CSV":   func(b *bytes.Buffer) error { return CSV(b, r) },
		} {
			var out bytes.Buffer
			if err := write(&out); err != nil || strings.Contains(out.String(), "77") || !strings.Contains(out.String(), why) {
				t.Errorf("%s: got %v\n%s\nwant %q and no figures", form, err, out.String(), why)
			}
		}
	}
}

func TestWhatIsNotKnownIsNoNumber(t *testing.T) {
	skipped := Row{Trial: 1, SaleRow: trial.SaleRow{Way: "script", Setting: "kafka/acks-all", Invalid: []string{}, Skipped: "no script reaches it"}}
	r := Result{Load: Load{Buyers: 10, Stock: 5, Rate: 1, Trials: 1}, Rows: []Row{row("queue", "memory/bounded", 1, 500), skipped}}
	var out bytes.Buffer
	if err := Table(&out, r, false, 160); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"│         - │", "script kafka/acks-all was left out: no script reaches it", "no claim of a difference"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := CSV(&out, r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "false,no script reaches it,0,0,,,,") {
		t.Errorf("got\n%s\nwant a line without numbers for what was left out", out.String())
	}
}

func TestEachFigureIsThatOfItsRow(t *testing.T) {
	r := row("queue", "kafka/acks-all", 1, 3000)
	r.CommittedMicros = &trial.Percentiles{P50: 7000, P99: 9000, N: 5}
	r.OrdersPerSecond, r.BehindMillis = 11, 13
	r.Database = &trial.DatabaseLoad{Transactions: 17, PerSecond: 19, PerOrder: 23, RowsWritten: 29, CPUSeconds: 31}
	got := map[string]float64{}
	for name, n := range Lines([]Row{r})[0].Figures {
		if n != nil {
			got[name] = *n
		}
	}
	want := map[string]float64{
		"answer_p50_ms": 1.5, "answer_p99_ms": 3, "committed_p50_ms": 7, "committed_p99_ms": 9, "orders_per_second": 11, "behind_ms": 13,
		"transactions": 17, "transactions_per_second": 19, "transactions_per_order": 23, "rows_written": 29, "database_cpu_seconds": 31,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("figures (-want +got):\n%s", d)
	}
}
