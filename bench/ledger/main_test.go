package ledger

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// childEnv makes the test binary a process that appends until it is killed.
const childEnv = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		appendForEver(path)
	}
	goleak.VerifyTestMain(m)
}

// appendForEver has each producer append dense sequence numbers, and tells its
// parent on standard output how many records are certainly in the file.
func appendForEver(path string) {
	w, err := Create(path, 9)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for p := range uint16(childProducers) {
		go func() {
			for seq := uint64(0); ; seq++ {
				w.Append(Record{Event: Intent, Trial: 1, Producer: p, Seq: seq, At: Now(), Due: int64(seq), Arg: uint32(seq)})
				if seq%childReport == childReport-1 {
					os.Stdout.WriteString(strconv.Itoa(int(p)) + "\n")
				}
			}
		}()
	}
	select {}
}

const (
	childProducers = 3
	childReport    = 10_000
)
