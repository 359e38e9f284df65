package trial

import (
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
	began    time.Time
	cells    int
	finished int
	total    time.Duration // estimated cost of all cells
	done     time.Duration // estimated cost of the finished ones
	running  string
}

// NewProgress shows the progress over specs on w.
func NewProgress(w io.Writer, terminal bool, specs []Spec) *Progress {
	p := &Progress{w: w, began: time.Now(), cells: len(specs)}
	for _, s := range specs {
		p.total += s.estimate()
	}
	if terminal {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
		p.bar = p.bars.AddBar(int64(len(specs)),
			mpb.PrependDecorators(decor.CountersNoUnit("%d/%d cells ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.status() })))
	}
	return p
}

func (p *Progress) status() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf(" %s left  %s", p.left(), p.running)
}

// left scales the estimates by how they held so far.
func (p *Progress) left() string {
	if p.done == 0 {
		return "~" + p.total.Round(10*time.Second).String()
	}
	pace := float64(time.Since(p.began)) / float64(p.done)
	return "~" + time.Duration(pace*float64(p.total-p.done)).Round(time.Second).String()
}

func (p *Progress) start(s Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = fmt.Sprintf("%s %s %s", s.Setting, s.Test, s.Fault)
}

func (p *Progress) finish(s Spec, c Cell) {
	p.mu.Lock()
	p.finished++
	p.done += s.estimate()
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
	if p.bar != nil {
		p.bar.Increment()
		if c.Verdict == VerdictInvalid || c.Verdict == VerdictContradiction {
			fmt.Fprintln(p.bars, line)
		}
		return
	}
	if c.Verdict != VerdictSkipped && c.Verdict != VerdictNotApplicable {
		fmt.Fprintln(p.w, line)
	}
}

// Say prints a line above the bar.
func (p *Progress) Say(format string, args ...any) {
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
