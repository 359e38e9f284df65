package learn

import (
	"time"

	"queuelab/bench/wire"
)

// Result is what became of a lesson.
type Result struct {
	Number   int       `json:"number"`
	Name     string    `json:"name"`
	Topic    Topic     `json:"topic"`
	Question Text      `json:"question"`
	Choices  []Text    `json:"choices"`
	Right    int       `json:"right"`
	Measured int       `json:"measured"`            // index into Choices; -1: none of them
	Guess    *int      `json:"predicted,omitempty"` // what the reader predicted
	Figures  []Figure  `json:"figures"`
	Said     []Said    `json:"transcript"`
	Why      Text      `json:"why"` // with the figures in it
	Say      Text      `json:"say"`
	Further  []Link    `json:"further,omitempty"`
	ID       string    `json:"id"`       // random, in every name that the lesson made
	Versions []Version `json:"versions"` // of the brokers that answered
	At       time.Time `json:"at"`
	Millis   float64   `json:"millis"`
	Skipped  string    `json:"skipped,omitempty"` // why it was not tried here
	Error    string    `json:"error,omitempty"`   // why it ended without an answer, or what is not as it says
}

// Passed reports whether it was tried and is as it says.
func (r Result) Passed() bool { return r.Skipped == "" && r.Error == "" }

// Version is a broker that answered.
type Version struct {
	Broker  string `json:"broker"`
	Setting string `json:"setting"`
	Version string `json:"version"`
}

// Said is a line of a transcript: what the lesson does next, or what was read on
// the wire between a client and a broker.
type Said struct {
	Step   *Text      `json:"step,omitempty"`
	Broker string     `json:"broker,omitempty"` // whose connection it was
	Line   *wire.Line `json:"line,omitempty"`
	// Left is how many lines were left out here, since they were too many.
	Left int `json:"left,omitempty"`
}
