package trial

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"queuelab/bench/ledger"
)

// EvidenceDir is the directory of the ledgers beside a result.
const EvidenceDir = "ledgers"

// Evidence is all that a crash trial's verdict was drawn from.
type Evidence struct {
	Trial     string          `json:"trial"` // as TrialName
	Processes map[uint16]Part `json:"processes"`
	Effects   map[string]int  `json:"effects"`
	Remaining []string        `json:"remaining"` // still in the queue at the end
	Notes     []string        `json:"notes"`
	Count     *int            `json:"records"` // how many records follow; nil in those before 2026-12
	Records   []ledger.Record `json:"-"`
}

// Part is what a process was in a trial.
type Part struct {
	Role   string `json:"role"`
	Victim bool   `json:"victim"`
}

func evidencePath(dir, name string) string {
	return filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(name)+".jsonl.gz")
}

// HasEvidence reports whether the result in dir has the ledger of a trial.
func HasEvidence(dir, name string) bool {
	_, err := os.Stat(evidencePath(filepath.Join(dir, EvidenceDir), name))
	return err == nil
}

// keepEvidence writes a trial's ledger beside the result, whole or not at all:
// the first line says what it is, each further one is a record.
func keepEvidence(dir string, e Evidence) (err error) {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	f, err := os.CreateTemp(dir, ".ledger-*.jsonl.gz")
	if err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	n := len(e.Records)
	e.Count = &n
	z := gzip.NewWriter(f)
	enc := json.NewEncoder(z)
	err = enc.Encode(e)
	for i := 0; i < len(e.Records) && err == nil; i++ {
		err = enc.Encode(e.Records[i])
	}
	if err = errors.Join(err, z.Close(), f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), evidencePath(dir, e.Trial))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("keep the ledger: %w", err)
	}
	return nil
}

// ReadEvidence reads the ledger of a trial from a result's directory. One that
// is cut short, or is another trial's, is an error: no story is told from it.
func ReadEvidence(dir, name string) (Evidence, error) {
	path := evidencePath(filepath.Join(dir, EvidenceDir), name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Evidence{}, fmt.Errorf("%s has no ledger of the trial %q: a trial is named backend/setting:fault:number, as in redis-list/aof-no:power-loss:1", dir, name)
	}
	if err != nil {
		return Evidence{}, fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	e, err := decodeEvidence(f)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return e, fmt.Errorf("read the ledger %s: it ends too early: %w", path, err)
	case err != nil:
		return e, fmt.Errorf("read the ledger %s: %w", path, err)
	case e.Trial != name:
		return e, fmt.Errorf("read the ledger %s: it is of the trial %q, not of %q", path, e.Trial, name)
	case e.Count != nil && *e.Count != len(e.Records):
		return e, fmt.Errorf("read the ledger %s: it has %d records, and says that it has %d", path, len(e.Records), *e.Count)
	}
	return e, nil
}

func decodeEvidence(r io.Reader) (e Evidence, err error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return e, err
	}
	d := json.NewDecoder(bufio.NewReader(z))
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	for {
		var r ledger.Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return e, nil
		case err != nil:
			return e, err
		}
		e.Records = append(e.Records, r)
	}
}
