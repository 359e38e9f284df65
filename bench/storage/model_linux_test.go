package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// modelFile is a file as the model has it.
type modelFile struct{ now, kept string }

// model is the file system in a few lines: files in one directory and in a
// second one below it, which comes and goes by renames.
type model struct {
	now, kept map[string]*modelFile
}

func (m *model) keepNames() { m.kept = maps.Clone(m.now) }

func (m *model) images() (crash, power files) {
	crash, power = files{}, files{}
	for name, f := range m.now {
		crash[name] = f.now
	}
	for name, f := range m.kept {
		power[name] = f.kept
	}
	return crash, power
}

// patch is a string with a part written over, at or behind its end.
func patch(s, with string, at int) string {
	b := []byte(s)
	if n := at + len(with); n > len(b) {
		b = append(b, make([]byte, n-len(b))...)
	}
	copy(b[at:], with)
	return string(b)
}

func resized(s string, n int) string {
	if n <= len(s) {
		return s[:n]
	}
	return patch(s, "", n)
}

func TestWhateverIsDoneTheImagesAreThoseOfTheModel(t *testing.T) {
	_, _ = mounted(t, "") // the namespace, and the reason where there is none
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		base := filepath.Join(dir, fmt.Sprint(round))
		d, at := mount(t, base, "")
		m := &model{now: map[string]*modelFile{}}
		path := func(name string) string { return filepath.Join(at, name) }
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		some := func() string {
			have := slices.Sorted(maps.Keys(m.now))
			if len(have) == 0 {
				t.Skip("there is no file")
			}
			return rapid.SampledFrom(have).Draw(t, "file")
		}
		with := func(name string, f func(*os.File) error) {
			t.Helper()
			file, err := os.OpenFile(path(name), os.O_RDWR, 0)
			must(err)
			must(errors.Join(f(file), file.Close()))
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				n := name.Draw(t, "name")
				f, err := os.OpenFile(path(n), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
				must(err)
				must(f.Close())
				if m.now[n] == nil {
					m.now[n] = &modelFile{}
				}
				m.now[n].now = ""
			},
			"write": func(t *rapid.T) {
				n, off := some(), rapid.IntRange(0, 9000).Draw(t, "at")
				text := rapid.StringMatching(`[a-z]{1,40}`).Draw(t, "text")
				with(n, func(f *os.File) error { _, err := f.WriteAt([]byte(text), int64(off)); return err })
				m.now[n].now = patch(m.now[n].now, text, off)
			},
			"truncate": func(t *rapid.T) {
				n, size := some(), rapid.IntRange(0, 9000).Draw(t, "size")
				must(os.Truncate(path(n), int64(size)))
				m.now[n].now = resized(m.now[n].now, size)
			},
			"sync": func(*rapid.T) {
				n := some()
				with(n, (*os.File).Sync)
				m.now[n].kept = m.now[n].now
				m.keepNames()
			},
			"datasync": func(*rapid.T) {
				n := some()
				f := m.now[n]
				// The size may have changed and changed back: then the journal has
				// something to tell, and the model does not follow.
				if len(f.now) == len(f.kept) {
					t.Skip("the size is the same")
				}
				with(n, func(file *os.File) error { return unix.Fdatasync(int(file.Fd())) })
				f.kept = f.now
				m.keepNames()
			},
			"sync the directory": func(*rapid.T) {
				f, err := os.Open(at)
				must(err)
				must(errors.Join(f.Sync(), f.Close()))
				m.keepNames()
			},
			"rename": func(t *rapid.T) {
				from, to := some(), name.Draw(t, "to")
				must(os.Rename(path(from), path(to)))
				if f := m.now[from]; f != m.now[to] { // else they are names of one file, and stay
					delete(m.now, from)
					m.now[to] = f
				}
			},
			"remove": func(*rapid.T) {
				n := some()
				must(os.Remove(path(n)))
				delete(m.now, n)
			},
			"link": func(t *rapid.T) {
				from, to := some(), name.Draw(t, "to")
				err := os.Link(path(from), path(to))
				if m.now[to] != nil {
					if !errors.Is(err, fs.ErrExist) {
						t.Fatalf("got %v from a link over a file, want ErrExist", err)
					}
					return
				}
				must(err)
				m.now[to] = m.now[from]
			},
		})
		wantCrash, wantPower := m.images()
		_, crash, power := cut(t, d)
		if diff := cmp.Diff(wantCrash, tree(t, crash)); diff != "" {
			t.Errorf("of a killed process (-model +got):\n%s", diff)
		}
		if diff := cmp.Diff(wantPower, tree(t, power)); diff != "" {
			t.Errorf("of a power loss (-model +got):\n%s", diff)
		}
	})
}

func TestSpansAreThoseOfAMapOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s spans
		want := map[int64]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			if rapid.Bool().Draw(t, "add") {
				to := from + rapid.Int64Range(0, 10).Draw(t, "length")
				s.add(from, to)
				for i := from; i < to; i++ {
					want[i] = true
				}
				continue
			}
			s.cut(from)
			maps.DeleteFunc(want, func(i int64, _ bool) bool { return i >= from })
		}
		got := map[int64]bool{}
		for i, p := range s {
			if p.from >= p.to || i > 0 && s[i-1].to >= p.from {
				t.Fatalf("got %v, want them in order and apart", s)
			}
			for b := p.from; b < p.to; b++ {
				got[b] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || s.bytes() != int64(len(want)) {
			t.Errorf("%v (-want +got):\n%s", s, diff)
		}
	})
}
