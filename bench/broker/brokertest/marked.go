package brokertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Marked lists the processes, zombies left out, that inherited the mark, an
// assignment in the environment. It is for Linux.
func Marked(t testing.TB, mark string) []string {
	t.Helper()
	var found []string
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		env, err := os.ReadFile(d + "/environ")
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		stat, err := os.ReadFile(d + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		cmdline, _ := os.ReadFile(d + "/cmdline") // it may just have ended
		found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return found
}

// UntilMarked waits for a fact about the marked processes, at most half a minute.
func UntilMarked(t testing.TB, mark, fact string, holds func([]string) bool) {
	t.Helper()
	var last []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if last = Marked(t, mark); holds(last) {
			return
		}
	}
	t.Fatalf("not within 30s: %s; there is\n%s", fact, strings.Join(last, "\n"))
}
