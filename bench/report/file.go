package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"queuelab/bench/trial"
)

// The names of the files in a result's directory.
const (
	ResultFile   = "result.json"
	MarkdownFile = "report.md"
	HTMLFile     = "report.html"
)

// ErrExists is what Claim and Write wrap when the directory already holds a
// result.
var ErrExists = errors.New("there is a result already")

// Options are Write's.
type Options struct {
	Force bool // replace a result that is there
}

// Claim makes dir, and its parents, ready to hold a result. It is for the start
// of a run, so that a directory that cannot be had is known before anything is
// measured. A result that is there already is ErrExists unless force; other
// files do not matter.
func Claim(dir string, force bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the result directory %s: %w", dir, err)
	}
	_, err := os.Lstat(filepath.Join(dir, ResultFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("look into the result directory %s: %w", dir, err)
	case !force:
		return fmt.Errorf("%s: %w: choose another directory with --out, or replace it with --force", dir, ErrExists)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("write into the result directory %s: %w", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Write writes result.json, report.md and report.html into dir. Each is whole
// or absent, whenever the process is killed. A result that is there already is
// ErrExists unless Options.Force.
func Write(dir string, result trial.Result, o Options) error {
	if err := Claim(dir, o.Force); err != nil {
		return err
	}
	data, err := json.MarshalIndent(normal(result), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	if err := replace(dir, ResultFile, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	}); err != nil {
		return err
	}
	return Render(dir, result)
}

// Render writes report.md and report.html into dir anew, and leaves result.json
// alone.
func Render(dir string, result trial.Result) error {
	return errors.Join(
		replace(dir, MarkdownFile, func(w io.Writer) error { return Markdown(w, result) }),
		replace(dir, HTMLFile, func(w io.Writer) error { return HTML(w, result) }),
	)
}

// replace writes a file beside its name and renames it: readers see the old
// one or the new one.
func replace(dir, name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", filepath.Join(dir, name), err)
		}
	}()
	var b bytes.Buffer
	if err = write(&b); err != nil {
		return err
	}
	if _, err = f.Write(b.Bytes()); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// Read reads a result from its file, or from the directory that holds
// result.json. Unknown fields are ignored, since fields are added over time; a
// newer schema, a file that is no result, and broken JSON (with its offset in
// bytes) are errors.
func Read(path string) (trial.Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ResultFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return trial.Result{}, fmt.Errorf("read the result: %w", err)
	}
	result, err := Decode(data)
	if err != nil {
		return trial.Result{}, fmt.Errorf("read the result %s: %w", path, err)
	}
	return result, nil
}

// Decode is Read for bytes that are at hand.
func Decode(data []byte) (trial.Result, error) {
	var version struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return trial.Result{}, explain(err, len(data))
	}
	switch {
	case version.Schema == nil || *version.Schema < 1:
		return trial.Result{}, errors.New(`this is not a result of queuelab: it has no "schema"`)
	case *version.Schema > trial.Schema:
		return trial.Result{}, fmt.Errorf("it has schema %d, and this queuelab knows up to %d: use a newer queuelab", *version.Schema, trial.Schema)
	}
	var result trial.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return trial.Result{}, explain(err, len(data))
	}
	return result, nil
}

// explain says where JSON is broken.
func explain(err error, size int) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return fmt.Errorf("the JSON ends too early, at byte %d of %d: %w", syntax.Offset, size, err)
	case errors.As(err, &syntax):
		return fmt.Errorf("malformed JSON at byte %d of %d: %w", syntax.Offset, size, err)
	case errors.As(err, &kind):
		return fmt.Errorf("the field %q does not fit at byte %d of %d: %w", kind.Field, kind.Offset, size, err)
	}
	return err
}
