package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnExamWithoutAPredictionIsNotRun(t *testing.T) {
	_, stderr, err := command(t, "exam", "--questions", "2", "--seed", "1")
	if !errors.Is(err, exitError(2)) || !strings.Contains(stderr, "nothing was predicted") || !strings.Contains(stderr, "--answers") {
		t.Errorf("got %v, %s, want status 2, and what to do about it", err, stderr)
	}
}

func TestLessonsAreAskedForInOneWay(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a number that does not exist":        {[]string{"learn", "99"}, "the nearest is 53"},
		"a word that is none":                 {[]string{"learn", "brpob"}, "brpop-loses"},
		"all of them and one":                 {[]string{"learn", "--all", "2"}, "give one of them"},
		"a book of one lesson":                {[]string{"learn", "2", "--book", t.TempDir()}, "--book"},
		"a book among other files":            {[]string{"learn", "--book", full}, "something else than a book"},
		"an exhibit that does not exist":      {[]string{"museum", "21"}, "the nearest is 20"},
		"more questions than there are":       {[]string{"exam", "--questions", "54"}, "1 to 53"},
		"fewer answers than questions":        {[]string{"exam", "--answers", "1,2"}, "2 predictions for 10 questions"},
		"an answer that is not among choices": {[]string{"exam", "--questions", "1", "--answers", "9"}, "no prediction"},
	} {
		_, stderr, err := command(t, c.args...)
		if !errors.Is(err, exitError(2)) || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: got %v, %s, want status 2 and %q", name, err, stderr, c.want)
		}
	}
}
