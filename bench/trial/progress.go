package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows people how far a run is. On a terminal it is a bar; elsewhere
// one plain line for each finished cell.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	bars     *mpb.Progress
	bar      *mpb.Bar
	json     *json.Encoder // one line for each event; nil: words for people
	cells    int
	trials   int
	finished int // cells
	outlook  *outlook
	width    int // trials at once
	running  string
}

// NewProgress shows the progress over specs on w.
func NewProgress(w io.Writer, terminal bool, specs []Spec) *Progress {
	p := &Progress{w: w, cells: len(specs), outlook: newOutlook(specs), width: 1}
	for _, s := range specs {
		p.trials += s.Trials
	}
	if terminal {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		p.bar = p.bars.AddBar(int64(p.trials),
			mpb.PrependDecorators(decor.CountersNoUnit("%d/%d trials ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.status() })))
	}
	return p
}

func (p *Progress) status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf(" %s left  %s", p.left(), p.running)
}

// left is the time that is left, in words; the lock is held.
func (p *Progress) left() string {
	d, to := p.outlook.time(p.width), time.Second
	if d > 10*time.Minute {
		to = time.Minute
	}
	return "~" + d.Round(to).String()
}

// beside tells how many trials run at once.
func (p *Progress) beside(width int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.width = width
}

func (p *Progress) start(s Spec, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outlook.start(s, time.Now())
	p.running = fmt.Sprintf("%s %s %s", s.Setting, s.Test, s.Fault)
	if s.Trials > 1 {
		p.running += fmt.Sprintf(" %d/%d", n, s.Trials)
	}
	p.emit(ProgressEvent{Event: "start", Cell: cellName(s), Trial: n, Of: s.Trials})
}

// trial notes that one trial is over.
func (p *Progress) trial(s Spec, o Outcome) {
	p.mu.Lock()
	p.outlook.trial(s, time.Now())
	p.emit(ProgressEvent{Event: "trial", Cell: o.Backend + "/" + o.Setting + " " + o.Test + " " + o.Fault, Trial: o.Run.N, Run: &o.Run})
	p.mu.Unlock()
	if p.bar != nil {
		p.bar.Increment()
	}
}

func (p *Progress) finish(s Spec, c Cell) {
	p.mu.Lock()
	p.finished++
	p.outlook.finish(s) // with what was skipped of it
	p.emit(ProgressEvent{Event: "cell", Cell: cellName(s), Verdict: c.Verdict, Note: c.Note, Finished: p.finished, Of: p.cells})
	line := fmt.Sprintf("[%d/%d, %s left] %s %s %s: %s", p.finished, p.cells, p.left(), s.Setting, s.Test, s.Fault, c.Verdict)
	if c.Verdict == VerdictInvalid || c.Verdict == VerdictContradiction {
		line += ": " + c.Note
		for _, r := range c.InvalidReasons {
			if !strings.Contains(line, r) { // the note has one of them, and trials fail alike
				line += "; " + r
			}
		}
	}
	p.mu.Unlock()
	switch {
	case p.json != nil:
	case p.bar != nil:
		p.bar.IncrBy(max(0, s.Trials-len(c.Runs))) // those of a cell that was skipped
		if c.Verdict == VerdictInvalid || c.Verdict == VerdictContradiction {
			fmt.Fprintln(p.bars, line)
		}
	case c.Verdict != VerdictSkipped && c.Verdict != VerdictNotApplicable:
		fmt.Fprintln(p.w, line)
	}
}

func cellName(s Spec) string { return s.Setting.String() + " " + s.Test + " " + s.Fault }

// ProgressEvent is one line of --json.
type ProgressEvent struct {
	Time     time.Time `json:"time"`
	Event    string    `json:"event"` // start and trial, of one trial; cell, of a finished one; say; end
	Cell     string    `json:"cell,omitempty"`
	Trial    int       `json:"trial,omitempty"`
	Finished int       `json:"finished,omitempty"` // cells
	Of       int       `json:"of,omitempty"`
	Verdict  string    `json:"verdict,omitempty"`
	Note     string    `json:"note,omitempty"`
	Run      *TrialRun `json:"run,omitempty"`
}

// emit writes an event, where events are wanted; the lock is held.
func (p *Progress) emit(e ProgressEvent) {
	if p.json != nil {
		e.Time = time.Now()
		_ = p.json.Encode(e) // a reader that went away does not end the run
	}
}

// NewEvents shows the progress as events on w, for scripts.
func NewEvents(w io.Writer, specs []Spec) *Progress {
	p := NewProgress(io.Discard, false, specs)
	p.json = json.NewEncoder(w)
	return p
}

// End is the last event: where the result is.
func (p *Progress) End(dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.emit(ProgressEvent{Event: "end", Finished: p.finished, Of: p.cells, Note: dir})
}

// Say prints a line above the bar.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	p.emit(ProgressEvent{Event: "say", Note: fmt.Sprintf(format, args...)})
	p.mu.Unlock()
	if p.bars != nil {
		fmt.Fprintf(p.bars, format+"\n", args...)
		return
	}
	fmt.Fprintf(p.w, format+"\n", args...)
}

// Close ends the bar, finished or not.
func (p *Progress) Close() {
	if p.bar != nil {
		p.bar.Abort(false)
		p.bars.Wait()
	}
}

// Finished returns how many cells are done.
func (p *Progress) Finished() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished
}
