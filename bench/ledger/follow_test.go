package ledger

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func follow(t *testing.T, path string) *Follower {
	t.Helper()
	f, err := Follow(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func next(t *testing.T, f *Follower) []Record {
	t.Helper()
	rs, err := f.Next()
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func TestAFollowerSeesEachRecordOnceWhileTheyAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w, err := Create(path, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := follow(t, path)
	if rs := next(t, f); len(rs) != 0 {
		t.Errorf("got %d records of an empty ledger, want none", len(rs))
	}
	const writers, each = 4, perSegment/2 + 11 // more than one segment
	var wg sync.WaitGroup
	for p := range uint16(writers) {
		wg.Go(func() {
			for n := range uint64(each) {
				w.Append(Record{Event: Intent, Producer: p, Seq: n, At: Now()})
			}
		})
	}
	seen := map[ID]int{}
	for deadline := time.Now().Add(20 * time.Second); len(seen) < writers*each; {
		for _, r := range next(t, f) {
			if r.Process != 7 {
				t.Fatalf("got process %d, want 7", r.Process)
			}
			seen[r.ID()]++
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d of %d records", len(seen), writers*each)
		}
	}
	wg.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Fatalf("got message %v %d times, want once", id, n)
		}
	}
	if rs := next(t, f); len(rs) != 0 {
		t.Errorf("got %d more, want none", len(rs))
	}
}

// What was begun first may be stored last, and what a kill tore never is.
func TestAFollowerComesBackForWhatWasNotStoredYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w, err := Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(4) {
		w.Append(Record{Event: Intent, Seq: n, At: int64(n)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	word := func(n int64, event Event) {
		if _, err := file.WriteAt(binary.NativeEndian.AppendUint32(nil, uint32(event)), (headerSlots+n)*slotSize); err != nil {
			t.Fatal(err)
		}
	}
	word(1, 0)
	word(2, 0)
	f := follow(t, path)
	if rs := next(t, f); len(rs) != 2 || rs[0].Seq != 0 || rs[1].Seq != 3 {
		t.Errorf("got %v, want messages 0 and 3", rs)
	}
	word(2, Intent)
	if rs := next(t, f); len(rs) != 1 || rs[0].Seq != 2 {
		t.Errorf("got %v, want message 2, stored late", rs)
	}
	if rs := next(t, f); len(rs) != 0 {
		t.Errorf("got %v, want nothing: 1 is torn", rs)
	}
}

func TestWhatIsNoLedgerIsNotFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if _, err := Follow(path); err == nil {
		t.Error("got nil for a file that is not there, want an error")
	}
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Follow(path); err == nil {
		t.Error("got nil for a file of zeros, want an error")
	}
}
