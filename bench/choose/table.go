package choose

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"queuelab/bench/trial"
	"queuelab/queue"
)

// Row is a backend by the criteria that people compare queues by.
type Row struct {
	Backend  string      `json:"backend"`
	Settings []string    `json:"settings"`
	Criteria []Criterion `json:"criteria"`
}

// Criterion is what holds of a backend. Where its settings differ there are
// several values, each with the settings of which it is true.
type Criterion struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Value is one of them.
type Value struct {
	Value    string   `json:"value"`
	Settings []string `json:"settings"` // empty: all of the backend's
	Source   string   `json:"source"`   // what kind of proof it rests on, or the document
}

// criteria are the columns, in their order. Each tells a value of one setting and
// where that is from.
func criteria() []struct {
	name string
	of   func(*candidate) (value, source string)
} {
	const claims = "claimed by the open queue"
	type column = struct {
		name string
		of   func(*candidate) (value, source string)
	}
	claimed := func(name string, of func(q queue.Capabilities) string) column {
		return column{name, func(c *candidate) (string, string) {
			if !c.known {
				return "unknown", "no claims are kept of it"
			}
			return of(c.claims), claims
		}}
	}
	return []column{
		claimed("routing", func(q queue.Capabilities) string {
			to := "one consumer"
			switch {
			case q.Broadcast:
				to = "every consumer"
			case q.Groups:
				to = "one consumer of each group"
			}
			return to + also(q.Routing, ", by key")
		}),
		{"reliability", (*candidate).reliability},
		claimed("replay", func(q queue.Capabilities) string { return either(q.Replay, "yes, as long as it is kept", "no") }),
		{"backlog", func(c *candidate) (string, string) {
			f := factsOf(c.Backend).Backlog
			q := c.claims
			switch limit, name := c.limit(); {
			case q.Skips:
				return "what comes while nobody receives is skipped", claims
			case !q.Stored:
				return "none: what nobody hears is gone", claims
			case q.DropsOldest:
				return f.What + "; drops the oldest when full", claims + "; " + f.Source
			case limit > 0 && q.Bounded:
				return f.What + "; refuses or blocks beyond " + name, claims + "; " + f.Source
			}
			return f.What, f.Source
		}},
		{"cluster", func(c *candidate) (string, string) {
			f := factsOf(c.Backend).Cluster
			if f.What == "" {
				return "not in this lab: one node", "queuelab list"
			}
			return f.What + "; leader killed: " + c.lossWord(leaderKill), f.Source
		}},
		{"ack and order", func(c *candidate) (string, string) {
			q := c.claims
			ack := either(q.Guarantee == queue.AtLeastOnce, either(q.AckConfirmed, "ack answered", "ack written to a socket"), "no ack")
			order := either(q.OrderedPerKey, "order per key for one consumer", "no order per key")
			source := claims
			if f := factsOf(c.Backend).Order; q.OrderedPerKey && f.What != "" {
				order, source = "order per key for all consumers", claims+"; "+f.Source
			}
			return ack + also(q.Nack, ", nack") + ", attempts " + q.Attempts.String() + also(q.LeaseFenced, ", late ack refused") + "; " + order, source
		}},
		{"speed", func(c *candidate) (string, string) {
			s := c.speed()
			if s == nil {
				return "not measured", ""
			}
			r := s.P99
			if r == nil {
				r = s.Held
			}
			return s.brief() + also(s.noisy != "", ", NOISY"), r.Result
		}},
		{"protocol", func(c *candidate) (string, string) { f := factsOf(c.Backend).Protocol; return f.What, f.Source }},
		{"operations", func(c *candidate) (string, string) { f := factsOf(c.Backend).Operations; return f.What, f.Source }},
	}
}

func also(b bool, s string) string { return either(b, s, "") }

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func (c *candidate) reliability() (value, source string) {
	return fmt.Sprintf("%s, confirmed by %s; broker killed: %s; power cut: %s", c.claims.Guarantee, c.claims.Confirm,
		c.lossWord(trial.FaultBrokerKill), c.lossWord(powerLoss)), "claimed by the open queue; n= is measured, (expected) is the oracle's word, (deduced) that of its Redis"
}

// lossWord is what a fault does to the setting, and how that is known.
func (c *candidate) lossWord(f string) string {
	row, err := c.e.expects(c.String(), f)
	m := c.e.worst(c.String(), f)
	switch {
	case err == nil && row.NotApplicable():
		return "means nothing"
	case m != nil && m.Lost > 0:
		return fmt.Sprintf("loses (n=%d)", m.Valid)
	case m != nil && err == nil && row.Lost != "0" && row.Lost != "any":
		return fmt.Sprintf("lost nothing (n=%d), and can lose %s", m.Valid, lostWords(row.Lost))
	case m != nil:
		return fmt.Sprintf("lost nothing (n=%d)", m.Valid)
	}
	switch r, _ := c.survives(f); {
	case r.Verdict == Unknown:
		return "unknown"
	case r.Verdict == Yes:
		return "keeps all (expected)"
	case err == nil && row.Lost == "any":
		return "loses (deduced)"
	}
	return "loses " + lostWords(row.Lost) + " (expected)"
}

// Table tells each backend by the criteria, from the claims of its settings, from
// what was measured of them, and from documents for what is neither.
func (e *Evidence) Table() []Row {
	rows := []Row{}
	for _, s := range e.Settings {
		if i := slices.IndexFunc(rows, func(r Row) bool { return r.Backend == s.Backend }); i >= 0 {
			rows[i].Settings = append(rows[i].Settings, s.Name)
		} else {
			rows = append(rows, Row{Backend: s.Backend, Settings: []string{s.Name}})
		}
	}
	for i := range rows {
		for _, col := range criteria() {
			c := Criterion{Name: col.name, Values: []Value{}}
			for _, s := range e.Settings {
				if s.Backend != rows[i].Backend {
					continue
				}
				v, source := col.of(e.candidate(s, Needs{}))
				j := slices.IndexFunc(c.Values, func(o Value) bool { return o.Value == v && o.Source == source })
				if j < 0 {
					j = len(c.Values)
					c.Values = append(c.Values, Value{Value: v, Source: source})
				}
				c.Values[j].Settings = append(c.Values[j].Settings, s.Name)
			}
			if len(c.Values) == 1 {
				c.Values[0].Settings = []string{}
			}
			rows[i].Criteria = append(rows[i].Criteria, c)
		}
	}
	return rows
}

func (v Value) String() string {
	if len(v.Settings) == 0 {
		return v.Value
	}
	return strings.Join(v.Settings, ", ") + ": " + v.Value
}

// origins say below a table where its columns are from.
func (e *Evidence) origins() []string {
	all := []string{"Routing, replay, ack and order, guarantee and confirm: claimed by the open queues, and held to it by the conformance suite. n= is measured, that many trials; (expected) is the oracle's word, bench/trial/oracle.csv; (deduced) is what another queue on the same Redis does. Protocol, operations, and where a backlog is kept: from documents, named by --json."}
	for _, s := range e.Results {
		all = append(all, "Measured: "+s.Line())
	}
	if len(e.Results) == 0 {
		all = append(all, "Nothing was measured here: queuelab run --suite quick")
	}
	return all
}

// TableText writes the table for a terminal, a block for each backend.
func (e *Evidence) TableText(w io.Writer) error {
	p := &page{w: w}
	for _, r := range e.Table() {
		p.line("%s", r.Backend)
		for _, c := range r.Criteria {
			name := c.Name
			for _, v := range c.Values {
				p.line("  %-14s %s", name, v)
				name = ""
			}
		}
		p.line("")
	}
	for _, o := range e.origins() {
		p.line("%s", o)
	}
	return p.err
}

// TableMarkdown writes it as a table of Markdown, a row for each backend.
func (e *Evidence) TableMarkdown(w io.Writer) error {
	p := &page{w: w}
	head, rule := []string{"backend"}, []string{"---"}
	for _, c := range criteria() {
		head, rule = append(head, c.name), append(rule, "---")
	}
	p.line("| %s |", strings.Join(head, " | "))
	p.line("| %s |", strings.Join(rule, " | "))
	for _, r := range e.Table() {
		cells := []string{"`" + r.Backend + "`"}
		for _, c := range r.Criteria {
			var values []string
			for _, v := range c.Values {
				values = append(values, escape(v.String()))
			}
			cells = append(cells, strings.Join(values, "<br>"))
		}
		p.line("| %s |", strings.Join(cells, " | "))
	}
	for _, o := range e.origins() {
		p.line("\n%s", escape(o))
	}
	return p.err
}

func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
