package ledger

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestReadReturnsWhatWasAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ledger")
	w := must(Create(path, 3))(t)
	full := Record{Event: FaultHealed, Attempt: math.MaxUint16, Process: 3, Producer: math.MaxUint16, Incarnation: math.MaxUint16,
		Trial: math.MaxUint32, Seq: math.MaxUint64, At: math.MaxInt64, Due: math.MinInt64, Arg: math.MaxUint32}
	small := Record{Event: Intent, Attempt: 1, Process: 3, Producer: 2, Incarnation: 3, Trial: 4, Seq: 5, At: 6, Due: 7, Arg: 8}
	w.Append(full)
	w.Append(small)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: got %v, want nil", err)
	}
	w.Append(small) // a late handler: must do no harm
	got := must(Read(path))(t)
	if diff := cmp.Diff([]Record{small, full}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestReadMergesProcessesByTime(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for p := range uint16(3) {
		path := filepath.Join(dir, string('a'+rune(p)))
		w := must(Create(path, p))(t)
		for i := range int64(4) {
			w.Append(Record{Event: Intent, At: i*3 + int64(2-p)})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	for i, r := range must(Read(paths...))(t) {
		if r.At != int64(i) || int64(r.Process) != 2-r.At%3 {
			t.Errorf("record %d: got time %d of process %d", i, r.At, r.Process)
		}
	}
}

func TestCreateRefusesAnExistingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := must(Create(path, 1))(t)
	defer w.Close()
	if _, err := Create(path, 1); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want os.ErrExist", err)
	}
}

func TestConcurrentAppendsAcrossSegmentsAllSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := must(Create(path, 1))(t)
	const writers, each = 8, perSegment * 3 / 8
	var wg sync.WaitGroup
	for p := range uint16(writers) {
		wg.Go(func() {
			for seq := range uint64(each) {
				w.Append(Record{Event: Intent, Producer: p, Seq: seq, At: 1})
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[ID]int{}
	for _, r := range must(Read(path))(t) {
		seen[r.ID()]++
	}
	if len(seen) != writers*each {
		t.Errorf("got %d different records, want %d", len(seen), writers*each)
	}
	for id, n := range seen {
		if n != 1 || id.Producer >= writers || id.Seq >= each {
			t.Fatalf("got %d records of %v", n, id)
		}
	}
}

func TestCloseDuringAppendsKeepsTheFileSound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := must(Create(path, 1))(t)
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for range 4 {
		wg.Go(func() {
			for seq := range uint64(perSegment) {
				w.Append(Record{Event: Intent, Seq: seq})
				if seq == 100 {
					started <- struct{}{}
				}
			}
		})
	}
	<-started
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	info := must(os.Stat(path))(t)
	rs := must(Read(path))(t)
	if want := int(info.Size()/slotSize) - headerSlots; len(rs) != want || want < 100 {
		t.Errorf("got %d records in a file of %d slots", len(rs), want)
	}
}

func TestAFullDiskIsAnErrorThatReadReports(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	room := 1
	reserve := func(f *os.File, offset, size int64) error {
		if room--; room < 0 {
			return unix.ENOSPC
		}
		return allocate(f, offset, size)
	}
	w := must(create(path, 1, reserve))(t)
	for range perSegment + 10 {
		w.Append(Record{Event: Intent})
	}
	if err := w.Close(); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Close: got %v, want ENOSPC", err)
	}
	rs, err := Read(path)
	if err == nil || !strings.Contains(err.Error(), "11 records are missing") {
		t.Errorf("Read: got %v, want it to say that 11 records are missing", err)
	}
	if len(rs) != perSegment-headerSlots {
		t.Errorf("Read: got %d records, want the %d that fit", len(rs), perSegment-headerSlots)
	}
	_, err = create(filepath.Join(t.TempDir(), "b"), 1, reserve)
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Create: got %v, want ENOSPC", err)
	}
}

// A process that is killed while it appends leaves every finished record, and
// at most one torn record per appending goroutine.
func TestRecordsSurviveKillMinus9(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+path)
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())(t)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	certain := map[string]int{}
	lines := bufio.NewScanner(out)
	for range 24 { // more than one segment
		if !lines.Scan() {
			break
		}
		certain[lines.Text()] += childReport
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, out)
	child.Wait()
	if sum := certain["0"] + certain["1"] + certain["2"]; sum != 24*childReport {
		t.Fatalf("the child reported %v", certain)
	}

	next := map[uint16]uint64{}
	for i, r := range must(Read(path))(t) {
		if r.Event != Intent || r.Process != 9 || r.Trial != 1 || r.Due != int64(r.Seq) || r.Arg != uint32(r.Seq) {
			t.Fatalf("record %d is damaged: %+v", i, r)
		}
		if r.Seq != next[r.Producer] {
			t.Fatalf("producer %d: got seq %d, want %d", r.Producer, r.Seq, next[r.Producer])
		}
		next[r.Producer]++
	}
	for p, name := range []string{"0", "1", "2"} {
		if next[uint16(p)] < uint64(certain[name]) {
			t.Errorf("producer %d: got %d records, the child had appended %d", p, next[uint16(p)], certain[name])
		}
	}
}

func TestReadPassesOverTornRecordsOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := must(Create(path, 1))(t)
	for i := range int64(5) {
		w.Append(Record{Event: Delivered, Seq: uint64(i), At: i})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := must(os.ReadFile(path))(t)
	at := func(i int) int { return (headerSlots + i) * slotSize }

	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		seqs []uint64
		err  string
	}{
		{"a record whose word was never stored is passed over", func(b []byte) []byte { copy(b[at(2):], make([]byte, 4)); return b }, []uint64{0, 1, 3, 4}, ""},
		{"a tail cut inside a record is passed over", func(b []byte) []byte { return b[:at(4)+20] }, []uint64{0, 1, 2, 3}, ""},
		{"a preallocated tail is passed over", func(b []byte) []byte { return append(b, make([]byte, 10*slotSize)...) }, []uint64{0, 1, 2, 3, 4}, ""},
		{"a file cut inside the header has no records", func(b []byte) []byte { return b[:10] }, nil, ""},
		{"a preallocated file without a header has no records", func(b []byte) []byte { return make([]byte, 3*slotSize) }, nil, ""},
		{"an event that no Writer writes is damage", func(b []byte) []byte { b[at(1)] = byte(endOfEvents); return b }, []uint64{0, 2, 3, 4}, "1 damaged records"},
		{"a record before its header is damage", func(b []byte) []byte { copy(b, make([]byte, slotSize)); return b }, nil, "not a ledger"},
		{"another file is not a ledger", func(b []byte) []byte { copy(b, "hello"); return b }, nil, "not a ledger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs, err := decode(c.edit(slices.Clone(whole)))
			var seqs []uint64
			for _, r := range rs {
				seqs = append(seqs, r.Seq)
			}
			if diff := cmp.Diff(c.seqs, seqs); diff != "" {
				t.Errorf("seqs (-want +got):\n%s", diff)
			}
			if got := errString(err); c.err == "" && err != nil || !strings.Contains(got, c.err) {
				t.Errorf("error: got %q, want %q", got, c.err)
			}
		})
	}
	if _, err := Read(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v, want os.ErrNotExist", err)
	}
}

// decode is Read for the bytes of one file.
func decode(b []byte) (rs []Record, err error) {
	s := newSource(bytes.NewReader(b))
	merge([]*source{s}, func(r Record, _ error) bool { rs = append(rs, r); return true })
	return rs, s.fault()
}

func TestTheZeroesFallbackReservesTheWholeRange(t *testing.T) {
	f := must(os.Create(filepath.Join(t.TempDir(), "a")))(t)
	defer f.Close()
	if err := writeZeros(f, 10, 1<<16+5); err != nil {
		t.Fatal(err)
	}
	if got, want := must(f.Stat())(t).Size(), int64(10+1<<16+5); got != want {
		t.Errorf("size: got %d, want %d", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a")
	w, err := Create(path, 1)
	if err != nil {
		f.Fatal(err)
	}
	w.Append(Record{Event: Delivered, Seq: 7, At: 1})
	w.Append(Record{Event: Acked, Attempt: 2, Seq: 7, At: 2})
	w.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, _ := decode(b)
		if len(rs) > len(b)/slotSize {
			t.Errorf("got %d records from %d bytes", len(rs), len(b))
		}
		for _, r := range rs {
			if r.Event == 0 || r.Event >= endOfEvents {
				t.Errorf("got event %d", r.Event)
			}
		}
		Account(Input{Records: rs}) // must not panic, whatever the evidence
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name     string
		parallel bool
	}{{"one goroutine", false}, {"parallel", true}} {
		b.Run(c.name, func(b *testing.B) {
			w, err := Create(filepath.Join(b.TempDir(), "a"), 1)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			b.SetBytes(slotSize)
			b.ResetTimer()
			if !c.parallel {
				for i := range b.N {
					w.Append(Record{Event: Intent, Seq: uint64(i), At: 1})
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					w.Append(Record{Event: Intent, Seq: 1, At: 1})
				}
			})
		})
	}
}

func BenchmarkNow(b *testing.B) {
	for range b.N {
		Now()
	}
}

// must unwraps a call's result and fails the test on its error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func errString(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
