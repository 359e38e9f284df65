package driver

import (
	"errors"
	"testing"

	"queuelab/queue"
)

type child struct{ closes int }

var errChild = errors.New("it does not close")

func (c *child) Close() error { c.closes++; return errChild }

func TestChildrenAreClosedWithTheirQueue(t *testing.T) {
	var cs Children
	kept, gone, late := &child{}, &child{}, &child{}
	if err := errors.Join(cs.Keep(kept), cs.Add(gone)); err != nil {
		t.Fatal(err)
	}
	cs.Remove(gone)
	if first, err := cs.CloseAll(); !first || !errors.Is(err, errChild) {
		t.Errorf("got first %v, %v, want true, and the child's error", first, err)
	}
	if first, err := cs.CloseAll(); first || err != nil {
		t.Errorf("again: got first %v, %v, want false and nil", first, err)
	}
	if err := cs.Add(late); !errors.Is(err, queue.ErrClosed) || late.closes != 0 {
		t.Errorf("added late: got %v and %d closes, want ErrClosed and none", err, late.closes)
	}
	if err := cs.Keep(late); !errors.Is(err, queue.ErrClosed) || late.closes != 1 {
		t.Errorf("kept late: got %v and %d closes, want ErrClosed and one", err, late.closes)
	}
	if kept.closes != 1 || gone.closes != 0 {
		t.Errorf("closes: got %d of the one that was kept and %d of the other, want 1 and 0", kept.closes, gone.closes)
	}
}
