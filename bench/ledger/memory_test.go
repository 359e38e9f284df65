package ledger

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"queuelab/queue"
)

// soak is set where there is time, and disk, for ten million messages.
func soak() bool { return os.Getenv("QUEUELAB_SOAK") == "1" }

// used is what the process holds, in bytes.
type used struct{ heap, resident int64 }

func usedNow(t *testing.T) used {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := used{heap: int64(m.HeapAlloc)}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u // only Linux tells; the heap is judged everywhere
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "RssAnon", "RssFile", "RssShmem":
			kb := must(strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64))(t)
			u.resident += kb << 10
		}
	}
	return u
}

// record sends messages [from, to) through the recorders and no queue, by
// several producers at once that share their numbers among them.
func record(t *testing.T, w *Writer, producers, from, to int) {
	t.Helper()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			publisher := RecordPublisher(nullQueue{}, w)
			for i := from / producers; i < to/producers; i++ {
				msgs := []queue.Message{{ID: FormatID(ID{Trial: 1, Producer: uint16(p), Seq: uint64(i)})}}
				consumer := recordingConsumer{nullQueue{[]*queue.Delivery{queue.NewDelivery(msgs[0], 1, nil)}}, w, uint32(p)}
				m := nullMessage{msgs, w, publisher, consumer}
				if err := m.pass(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// While messages are recorded neither the heap nor the resident memory grows,
// and the account of them takes no more than it says. The short form has half a
// million messages, the long one ten million.
func TestMemoryStaysFlatHoweverMuchIsRecorded(t *testing.T) {
	const mostHeap, mostResident, mostPerMessage = 2 << 20, 24 << 20, 80
	marks := []int{100_000, 250_000, 500_000}
	if soak() {
		marks = []int{1_000_000, 5_000_000, 10_000_000}
	}
	for _, producers := range []int{1, 8} {
		t.Run(strconv.Itoa(producers)+" at once", func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			w := must(Create(path, 1))(t)
			var first used
			done := 0
			for i, mark := range marks {
				record(t, w, producers, done, mark)
				done = mark
				u := usedNow(t)
				t.Logf("%d messages: heap %d KiB, resident %d KiB", mark, u.heap>>10, u.resident>>10)
				if i == 0 {
					first = u
					continue
				}
				if grown := u.heap - first.heap; grown > mostHeap {
					t.Errorf("the heap grew by %d bytes, want at most %d", grown, mostHeap)
				}
				// The race detector's shadow memory is resident too.
				if grown := u.resident - first.resident; grown > mostResident && !raceEnabled {
					t.Errorf("the resident memory grew by %d bytes, want at most %d", grown, mostResident)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			before := usedNow(t)
			tally := NewTally(Input{CountEffects: true})
			for r, err := range Scan(path) {
				if err != nil {
					t.Fatal(err)
				}
				tally.Add(r)
			}
			perMessage := float64(usedNow(t).heap-before.heap) / float64(done)
			t.Logf("the account holds %.1f bytes a message", perMessage)
			if perMessage > mostPerMessage {
				t.Errorf("the account holds %.1f bytes a message, want at most %d", perMessage, mostPerMessage)
			}
			r := tally.Report()
			if r.Conservation != nil || r.Accepted != int64(done) || r.Findings() != nil {
				t.Errorf("got %d accepted, findings %q, want %d and none", r.Accepted, r.Findings(), done)
			}
		})
	}
}

// An append that was given a slot long ago may still write to it, however much
// was appended since, and its segment goes once it has.
func TestASlowAppendKeepsItsSegmentAndNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	w := must(Create(path, 1))(t)
	w.Append(Record{Event: Intent, Seq: 1})
	n := w.next.Add(1) - 1 // the slow one has its slot
	seg := w.segment(n)
	fill := func(segments int) {
		for range segments * perSegment {
			w.Append(Record{Event: Intent, Seq: 2})
		}
		w.growing.Wait()
	}
	fill(6)
	v := w.mapped.Load()
	var held int
	for _, s := range v.segs {
		if s != nil {
			held++
		}
	}
	if v.first != 0 || v.segs[0] != seg || held > 4 {
		t.Errorf("got %d segments from number %d on, want at most 4, and the slow one's", held, v.first)
	}
	s := seg.slot(n)
	s.seq, s.word = 77, uint32(Intent)
	seg.done.Add(1)
	fill(2)
	if v := w.mapped.Load(); v.first < 5 || len(v.segs) > 4 {
		t.Errorf("got segments %d to %d mapped after it had ended, want the last few", v.first, v.end()-1)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rs := must(Read(path))(t)
	if len(rs) != 2+8*perSegment || rs[0].Seq != 1 || rs[1].Seq != 77 {
		t.Errorf("got %d records, the first of %d and %d, want %d, of 1 and 77", len(rs), rs[0].Seq, rs[1].Seq, 2+8*perSegment)
	}
}
