package report

import (
	"math"
	"strconv"
	"strings"
)

// A plot of lines, in SVG user units: narrower than the bands, so that its
// words stay legible on a telephone.
const (
	plotWidth  = 760.0
	plotLeft   = 64.0
	plotRight  = plotWidth - 22
	plotTop    = 16.0
	plotBottom = 316.0
	legendRow  = 22.0
)

// plot is a picture of lines over two axes; the template draws it.
type plot struct {
	Name          string
	Title, Desc   text
	XName, YName  text
	X, Y          []tick
	Width, Height px
	Series        []series
	Rules         []rule
	Missing       []text // whose lines are not there, and why
}

// series is one line, told from the others by colour, dashes and shape.
type series struct {
	Class    string
	Label    string
	Note     text
	ID       string // of the cell
	Path     string
	Grey     string // the uncorrected line
	Dots     []dot
	Whiskers []whisker
	Shape    string // of the legend
	LX, LY   px
	HasGrey  bool
}

// dot is a mark on a line, and the figure that it stands for.
type dot struct {
	Shape  string
	Class  string
	Figure figure
	Hover  text
	X, Y   px
}

type whisker struct{ X, Y1, Y2 px }

// rule is a line that means something by itself.
type rule struct {
	X1, Y1, X2, Y2 px
	TX, TY         px
	Anchor         string
	Text           text
	Class          string
}

// Colours and shapes of lines. More colours than these cannot be told apart by
// everybody; there is one shape more, so that no two of the first 72 lines share
// both, and none of the first eight either.
const lineColours, lineShapes = 8, 9

// lineClass is the class of the i-th line of a plot: its colour with its dashes,
// and its shape.
func lineClass(i int, r *row) string {
	if r.Unranked() {
		return "floor"
	}
	return "s" + strconv.Itoa(1+i%lineColours) + " m" + strconv.Itoa(1+i%lineShapes)
}

// shape is the path of a mark of its own form around a point.
func shape(class string, x, y float64) string {
	_, form, _ := strings.Cut(class, " ")
	switch form {
	case "m1": // circle
		return "M" + at(x-4, y) + "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
	case "m2": // square
		return "M" + at(x-3.6, y-3.6) + "h7.2v7.2h-7.2z"
	case "m3": // diamond
		return "M" + at(x, y-5.2) + "l5.2 5.2l-5.2 5.2l-5.2 -5.2z"
	case "m4": // triangle
		return "M" + at(x, y-5) + "l5 8.6h-10z"
	case "m5": // triangle upside down
		return "M" + at(x, y+5) + "l5 -8.6h-10z"
	case "m6": // hour-glass
		return "M" + at(x-4.4, y-4.4) + "h8.8l-8.8 8.8h8.8z"
	case "m7": // plus
		return "M" + at(x-1.7, y-5) + "h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z"
	case "m8": // half a disc
		return "M" + at(x-5, y+2.4) + "a5 5 0 0 1 10 0z"
	case "m9": // star of four
		return "M" + at(x, y-6) + "l1.7 4.3l4.3 1.7l-4.3 1.7l-1.7 4.3l-1.7 -4.3l-4.3 -1.7l4.3 -1.7z"
	}
	return "M" + at(x-3.4, y-1) + "h6.8v2h-6.8z" // a dash
}

// cross is the mark of what was not kept.
func cross(x, y float64) string {
	return "M" + at(x-4, y-4) + "l8 8M" + at(x-4, y+4) + "l8 -8"
}

func at(x, y float64) string { return px(x).String() + " " + px(y).String() }

// axis maps numbers to a line of the plot.
type axis struct {
	from, to   float64 // as powers of ten where log
	start, end float64
	log        bool
}

func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(math.Max(v, 1e-9))
	}
	if math.IsNaN(v) || a.from == a.to {
		return a.start
	}
	v = math.Min(math.Max(v, math.Min(a.from, a.to)), math.Max(a.from, a.to))
	return a.start + (a.end-a.start)*(v-a.from)/(a.to-a.from)
}

// microsAxis is the upright, logarithmic axis of latencies, by whole decades.
func microsAxis(low, high float64) (axis, []tick) {
	if !(low <= high) {
		low, high = 100, 1000
	}
	a := axis{from: math.Floor(math.Log10(min(max(low, 1), 1e9))), to: math.Ceil(math.Log10(min(max(high, 1), 1e10))), start: plotBottom, end: plotTop, log: true}
	if a.from >= a.to {
		a.to = a.from + 1
	}
	var ticks []tick
	for e := a.from; e <= a.to; e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, tick{px(a.at(v)), decade(int64(v))})
	}
	return a, ticks
}

// rateAxis begins at 0 and has round steps.
func rateAxis(most, start, end float64) (axis, []tick) {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	step, scale := niceScale(min(most, 1e12))
	a := axis{from: 0, to: scale, start: start, end: end}
	var ticks []tick
	for t := 0.0; t <= scale*1.0001; t += step {
		ticks = append(ticks, tick{px(a.at(t)), rateTick(t)})
	}
	return a, ticks
}

// legend sets the entries below the plot, two in a row, and its height.
func (p *plot) legend() {
	p.Width = plotWidth
	y := plotBottom + 62
	for i := range p.Series {
		s := &p.Series[i]
		if i > 0 && i%2 == 0 {
			y += legendRow
		}
		x := plotLeft - 40 + float64(i%2)*(plotWidth-40)/2
		s.LX, s.LY, s.Shape = px(x), px(y), shape(s.Class, x+18, y)
	}
	p.Height = px(y + 18)
}

// line draws a path through points.
type trace struct{ b strings.Builder }

func (l *trace) to(x, y float64) {
	if l.b.Len() == 0 {
		l.b.WriteString("M" + at(x, y))
		return
	}
	l.b.WriteString("L" + at(x, y))
}

func (l *trace) String() string { return l.b.String() }

// missing says why a row has no line.
func missing(r *row, test string) text {
	for _, c := range r.of(test) {
		return say("{0}: {1}", r.Setting(), or(join(colon(), term(c.Verdict), why(c)), say("not recorded")))
	}
	return say("{0}: {1}", r.Setting(), say("not measured"))
}
