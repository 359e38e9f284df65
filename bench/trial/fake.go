package trial

import (
	"fmt"

	"queuelab/queue"
)

// openFake opens a queue with a known fault.
func openFake(name string) (queue.Queue, error) {
	return nil, fmt.Errorf("unknown fake queue %q", name)
}
