package report

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"queuelab/bench/truth"
)

// truthPage is what the template of the truths sees.
type truthPage struct {
	Title     text
	Counts    text
	Libraries []truthLibrary
	CSS       template.CSS
	JS        template.JS
}

// truthLibrary is one client library, with the broker that it was tried on.
type truthLibrary struct {
	Name, ID string
	With     text
	Facts    []truthFact
}

// truthFact is an experiment as the page shows it.
type truthFact struct {
	truth.Fact
	Mark    mark
	Numbers []meaning
}

// TruthHTML writes what the client libraries were seen to do as one page, in
// English and Chinese, that asks the network for nothing.
func TruthHTML(w io.Writer, facts []truth.Fact) error {
	t, err := template.New("truth.tmpl").Funcs(template.FuncMap{
		"say": say, "t": text.html, "attr": attr, "swap": swap, "colon": colon, "harness": harness, "switchName": switchName,
	}).ParseFS(assets, "assets/truth.tmpl")
	if err != nil {
		return fmt.Errorf("write the page of truths: %w", err)
	}
	p := truthPage{Title: say("What the client libraries do"), Libraries: truthLibraries(facts)}
	if p.CSS, p.JS, err = look("assets/look.js"); err != nil {
		return fmt.Errorf("write the page of truths: %w", err)
	}
	held, open := 0, 0
	for _, f := range facts {
		switch {
		case f.Skipped != "" || f.Error != "":
			open++
		case f.Holds:
			held++
		}
	}
	p.Counts = say("{0} experiments: {1} as claimed, {2} not, {3} without an answer.", len(facts), held, len(facts)-held-open, open)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("write the page of truths: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func truthLibraries(facts []truth.Fact) []truthLibrary {
	var out []truthLibrary
	for _, f := range facts {
		at := slices.IndexFunc(out, func(l truthLibrary) bool { return l.Name == f.Library })
		if at < 0 {
			at = len(out)
			out = append(out, truthLibrary{Name: f.Library, ID: "library-" + strconv.Itoa(at+1),
				With: say("version {0}, with {1} {2}", orDash(f.LibraryVersion), f.Broker, orDash(f.BrokerVersion))})
		}
		one := truthFact{Fact: f, Mark: truthMark(f)}
		for _, n := range f.Numbers {
			one.Numbers = append(one.Numbers, meaning{harness(n.Name), quote(brief(n.Value) + unit(n.Unit))})
		}
		out[at].Facts = append(out[at].Facts, one)
	}
	return out
}

func unit(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

func truthMark(f truth.Fact) mark {
	switch {
	case f.Skipped != "":
		return mark{Symbol: "-", Class: "none", Meaning: say("skipped")}
	case f.Error != "":
		return mark{Symbol: "?", Class: "warn", Meaning: say("no answer")}
	case f.Holds:
		return mark{Symbol: "✓", Class: "good", Meaning: say("as claimed")}
	}
	return mark{Symbol: "✗", Class: "bad", Meaning: say("not as claimed")}
}
