package trial

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LogFile is the name of the trial log in a result's directory.
const LogFile = "trials.jsonl"

// Log keeps every trial as soon as it is over, one line of JSON each.
type Log struct{ f *os.File }

// OpenLog goes on with the log in dir, or begins one; anew drops what is there.
func OpenLog(dir string, anew bool) (*Log, error) {
	flags := os.O_CREATE | os.O_RDWR | os.O_APPEND
	if anew {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(filepath.Join(dir, LogFile), flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the trial log: %w", err)
	}
	// A line that a killed run left unfinished must not spoil the next one.
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			if _, err := f.Write([]byte("\n")); err != nil {
				f.Close()
				return nil, fmt.Errorf("open the trial log: %w", err)
			}
		}
	}
	return &Log{f}, nil
}

// Append writes one trial down.
func (l *Log) Append(o Outcome) error {
	line, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write the trial log: %w", err)
	}
	if _, err := l.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the trial log: %w", err)
	}
	return nil
}

// Close closes the log.
func (l *Log) Close() error { return l.f.Close() }

// ReadLog returns the trials in dir's log; none where there is no log. A line
// that is no trial, such as the last one of a run that was killed, is passed
// over: that trial is measured again.
func ReadLog(dir string) ([]Outcome, error) {
	f, err := os.Open(filepath.Join(dir, LogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the trial log: %w", err)
	}
	defer f.Close()
	var out []Outcome
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var o Outcome
		if len(bytes.TrimSpace(lines.Bytes())) > 0 && json.Unmarshal(lines.Bytes(), &o) == nil && o.Test != "" {
			out = append(out, o)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the trial log: %w", err)
	}
	return out, nil
}
