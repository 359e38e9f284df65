package ledger

import (
	"errors"
	"fmt"
	"iter"
	"os"
)

// errNotLedger: the file is not a ledger of this version and machine.
var errNotLedger = errors.New("not a ledger")

// Read returns the records of ledger files, merged and sorted by At. A process
// that was killed leaves unwritten and torn records, which are passed over. It
// is an error where a file cannot be read, holds what no Writer wrote, or lacks
// records for which there was no room; what could be read is returned with it.
// A file that is still written to may be read: its latest records may be missing.
func Read(paths ...string) ([]Record, error) {
	var all []Record
	for r, err := range Scan(paths...) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Scan yields what Read returns, one record at a time; the error, if there is
// one, comes last and by itself. It reads each file twice and holds but a little
// of it: records that were appended in another order than that of their times
// wait in memory for those that belong before them, however late these come.
// Of a file that is still written to, records that came after the scan had
// begun may be out of order.
func Scan(paths ...string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var sources []*source
		var errs []error
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				errs = append(errs, fmt.Errorf("read ledger: %w", err))
				continue
			}
			defer f.Close()
			s := newSource(f)
			s.path = path
			sources = append(sources, s)
		}
		if !merge(sources, yield) {
			return
		}
		for _, s := range sources {
			if err := s.fault(); err != nil {
				errs = append(errs, fmt.Errorf("read ledger %s: %w", s.path, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			yield(Record{}, err)
		}
	}
}

// merge yields the records of all sources by time, those of the same time in
// the order of the sources. It returns false where yield did.
func merge(sources []*source, yield func(Record, error) bool) bool {
	live := make([]*source, 0, len(sources))
	for _, s := range sources {
		if s.more() {
			live = append(live, s)
		}
	}
	for len(live) > 0 {
		first := 0
		for i, s := range live {
			if s.head().At < live[first].head().At {
				first = i
			}
		}
		s := live[first]
		if !yield(*s.head(), nil) {
			return false
		}
		s.next++
		if !s.more() {
			live = append(live[:first], live[first+1:]...)
		}
	}
	return true
}
