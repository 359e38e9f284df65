package loop

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// Outage tells of what fails again and again when that begins and when it ends,
// and not each time. It is for one goroutine.
type Outage struct {
	Tell    func(error) // hears the first error, and nil once it is over; nil: nobody is told
	failing bool
}

// Note hears of each try.
func (o *Outage) Note(err error) {
	if failing := err != nil; failing != o.failing {
		o.failing = failing
		if o.Tell != nil {
			o.Tell(err)
		}
	}
}

// Say is a Tell that writes to the log; what says what is the matter while it
// fails.
func Say(log *slog.Logger, what string, args ...any) func(error) {
	var began time.Time
	return func(err error) {
		if err != nil {
			began = time.Now()
			log.Warn(what, append([]any{"error", err}, args...)...)
			return
		}
		log.Info("over: "+what, append([]any{"after", time.Since(began).Round(time.Millisecond)}, args...)...)
	}
}

// Seldom is for what fails in many requests at the same time, each with an end of
// its own: one of them a second is told. The zero value is ready, and safe for
// concurrent use.
type Seldom struct{ second atomic.Int64 }

// Now reports whether to tell.
func (s *Seldom) Now() bool {
	now := time.Now().Unix()
	last := s.second.Load()
	return last != now && s.second.CompareAndSwap(last, now)
}
