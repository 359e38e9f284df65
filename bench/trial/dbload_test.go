package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheDatabasesLoadIsThatOfTheSale(t *testing.T) {
	before := DatabaseLoad{Transactions: 100, Rollbacks: 10, RowsWritten: 1000, CPUSeconds: 5}
	after := DatabaseLoad{Transactions: 180, Rollbacks: 13, RowsWritten: 1500, CPUSeconds: 7.5}
	want := DatabaseLoad{Transactions: 80, Rollbacks: 3, RowsWritten: 500, PerSecond: 20, PerOrder: 2, CPUSeconds: 2.5}
	if d := cmp.Diff(want, after.since(before, 4*time.Second, 40)); d != "" {
		t.Errorf("a sale of 40 in 4 s (-want +got):\n%s", d)
	}
	unknown := after.since(DatabaseLoad{Transactions: 180}, time.Second, 0)
	if unknown.PerOrder != 0 || unknown.PerSecond != 0 || unknown.CPUSeconds != 0 {
		t.Errorf("got %+v, want nothing of a sale that sold nothing, and no CPU that was not known before", unknown)
	}
}
