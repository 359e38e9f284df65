package driver

import (
	"errors"
	"testing"

	"queuelab/queue"
)

type child struct{ closes int }

var errChild, errStart = errors.New("it does not close"), errors.New("it does not start")

func (c *child) Close() error { c.closes++; return errChild }

func TestChildrenAreClosedWithTheirQueue(t *testing.T) {
	var cs Children
	started := false
	kept, gone, sick, late := &child{}, &child{}, &child{}, &child{}
	if err := errors.Join(cs.Keep(kept, func() error { started = true; return nil }), cs.Keep(gone)); err != nil {
		t.Fatal(err)
	}
	cs.Remove(gone)
	if err := cs.Keep(sick, func() error { return errStart }); !started || !errors.Is(err, errStart) || sick.closes != 1 {
		t.Errorf("starts: got %v of the first, %v and %d closes of the one that fails, want true, its error and one", started, err, sick.closes)
	}
	cs.Remove(sick)
	if first, err := cs.CloseAll(); !first || !errors.Is(err, errChild) {
		t.Errorf("got first %v, %v, want true, and the child's error", first, err)
	}
	if first, err := cs.CloseAll(); first || err != nil {
		t.Errorf("again: got first %v, %v, want false and nil", first, err)
	}
	if err := cs.Keep(late, func() error { t.Error("got a start after the end, want none"); return nil }); !errors.Is(err, queue.ErrClosed) || late.closes != 1 {
		t.Errorf("kept late: got %v and %d closes, want ErrClosed and one", err, late.closes)
	}
	if kept.closes != 1 || gone.closes != 0 {
		t.Errorf("closes: got %d of the one that was kept and %d of the other, want 1 and 0", kept.closes, gone.closes)
	}
}
