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

// keepEvidence writes a trial's ledger beside the result: the first line says
// what it is, each further one is a record.
func keepEvidence(dir string, e Evidence) (err error) {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	f, err := os.Create(evidencePath(dir, e.Trial))
	if err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	z := gzip.NewWriter(f)
	enc := json.NewEncoder(z)
	err = enc.Encode(e)
	for i := 0; i < len(e.Records) && err == nil; i++ {
		err = enc.Encode(e.Records[i])
	}
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		return fmt.Errorf("keep the ledger: %w", err)
	}
	return nil
}

// ReadEvidence reads the ledger of a trial from a result's directory.
func ReadEvidence(dir, name string) (Evidence, error) {
	var e Evidence
	f, err := os.Open(evidencePath(filepath.Join(dir, EvidenceDir), name))
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("%s has no ledger of the trial %q: a trial is named backend/setting:fault:number, as in redis-list/aof-no:power-loss:1", dir, name)
	}
	if err != nil {
		return e, fmt.Errorf("read the ledger: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return e, fmt.Errorf("read the ledger %s: %w", f.Name(), err)
	}
	d := json.NewDecoder(bufio.NewReader(z))
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("read the ledger %s: %w", f.Name(), err)
	}
	for {
		var r ledger.Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return e, nil
		case err != nil:
			return e, fmt.Errorf("read the ledger %s: %w", f.Name(), err)
		}
		e.Records = append(e.Records, r)
	}
}
