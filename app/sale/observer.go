package sale

import "time"

// Observer is told what happens, for metrics. It must be fast and safe for
// concurrent use.
type Observer interface {
	// Admission: the gate answered a click, or failed ("error").
	Admission(verdict string, took time.Duration)
	// Publish: a message was handed to the queue; by is "click",
	// "admission", which did both, or "rescan".
	Publish(outcome, by string, took time.Duration)
	// Decided: an order became confirmed or failed, so long after the click.
	Decided(o Order, after time.Duration)
}

// Unobserved is an Observer for those who do not care.
type Unobserved struct{}

func (Unobserved) Admission(string, time.Duration)       {}
func (Unobserved) Publish(string, string, time.Duration) {}
func (Unobserved) Decided(Order, time.Duration)          {}
