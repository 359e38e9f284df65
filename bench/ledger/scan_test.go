package ledger

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// ledgers writes one ledger file for each list of records.
func ledgers(t *testing.T, lists ...[]Record) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for p, rs := range lists {
		path := filepath.Join(dir, strconv.Itoa(p))
		w := must(Create(path, uint16(p)))(t)
		for _, r := range rs {
			w.Append(r)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestScanSortsWhateverTheDisorder(t *testing.T) {
	const n = 3*perChunk + 100
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		at   func(i int) int64
	}{
		{"in order", func(i int) int64 { return int64(i) }},
		{"all at once", func(int) int64 { return 7 }},
		{"backwards", func(i int) int64 { return int64(-i) }},
		{"neighbours swapped", func(i int) int64 { return int64(i ^ 1) }},
		{"a bit late each", func(i int) int64 { return int64(i) - random.Int64N(200) }},
		{"without any order", func(int) int64 { return random.Int64N(n) - n/2 }},
		{"one held up until the end", func(i int) int64 {
			if i == n-1 {
				return -1
			}
			return int64(i)
		}},
		{"one from the future", func(i int) int64 {
			if i == 0 {
				return 1 << 62
			}
			return int64(i)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lists [3][]Record
			var want []Record
			for p := range lists {
				for i := range n >> p {
					lists[p] = append(lists[p], Record{Event: Intent, Process: uint16(p), Seq: uint64(i), At: c.at(i)})
				}
				want = append(want, lists[p]...)
			}
			slices.SortStableFunc(want, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
			got := must(Read(ledgers(t, lists[0], lists[1], lists[2])...))(t)
			if len(got) != len(want) {
				t.Fatalf("got %d records, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("record %d: got %+v, want %+v", i, got[i], want[i])
				}
			}
		})
	}
}

func TestAScanHoldsOnlyWhatWaitsForItsTurn(t *testing.T) {
	const n = 8 * perChunk
	for _, c := range []struct {
		name string
		late int // every hundredth record is appended so many records late
		most int
	}{
		{"in order", 0, 2 * perChunk},
		{"late by half a chunk", perChunk / 2, 3 * perChunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := make([]Record, n)
			for i := range rs {
				rs[i] = Record{Event: Intent, At: int64(i)}
				if i%100 == 0 {
					rs[i].At -= int64(c.late)
				}
			}
			f := must(os.Open(ledgers(t, rs)[0]))(t)
			defer f.Close()
			s := newSource(f)
			var most, got int
			for s.more() {
				most = max(most, len(s.records))
				s.next++
				got++
			}
			if most > c.most || got != n || s.fault() != nil {
				t.Errorf("held up to %d of %d records, error %v, want at most %d of %d", most, got, s.fault(), c.most, n)
			}
		})
	}
}

func TestAScanThatIsStoppedStops(t *testing.T) {
	rs := make([]Record, 10)
	for i := range rs {
		rs[i] = Record{Event: Intent, At: int64(i)}
	}
	paths := append(ledgers(t, rs), filepath.Join(t.TempDir(), "missing"))
	var got []int64
	for r, err := range Scan(paths...) {
		if err != nil {
			t.Fatalf("got %v before the records were over", err)
		}
		if got = append(got, r.At); len(got) == 3 {
			break
		}
	}
	if diff := gocmp.Diff([]int64{0, 1, 2}, got); diff != "" {
		t.Errorf("stamps (-want +got):\n%s", diff)
	}
	// To the end, the file that is missing is said after all records.
	n, failed := 0, false
	for _, err := range Scan(paths...) {
		if failed {
			t.Fatal("something came after the error")
		}
		if failed = err != nil; !failed {
			n++
		}
	}
	if n != len(rs) || !failed {
		t.Errorf("got %d records, an error: %v, want %d and one", n, failed, len(rs))
	}
}
