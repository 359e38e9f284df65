package truth

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Write tells the facts to people, by library.
func Write(w io.Writer, facts []Fact) error {
	var s strings.Builder
	library := ""
	for _, f := range facts {
		if f.Library != library {
			library = f.Library
			fmt.Fprintf(&s, "%s, with %s\n\n", named(f.Library, f.LibraryVersion), named(f.Broker, f.BrokerVersion))
		}
		fmt.Fprintf(&s, "  %s  %s\n    %s\n", f.verdict(), f.Name, f.Claim)
		switch {
		case f.Skipped != "":
			fmt.Fprintf(&s, "    Skipped: %s\n", f.Skipped)
		case f.Error != "":
			fmt.Fprintf(&s, "    No answer: %s\n", f.Error)
		default:
			fmt.Fprintf(&s, "    Seen: %s%s\n", f.What, numbers(f.Numbers))
		}
		if f.Remedy != "" {
			fmt.Fprintf(&s, "    Instead: %s\n", f.Remedy)
		}
		s.WriteString("\n")
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func named(name, version string) string { return strings.TrimSpace(name + " " + version) }

func (f Fact) verdict() string {
	switch {
	case f.Skipped != "" || f.Error != "":
		return "?"
	case f.Holds:
		return "✓"
	}
	return "✗"
}

func numbers(ns []Number) string {
	if len(ns) == 0 {
		return ""
	}
	var all []string
	for _, n := range ns {
		all = append(all, strings.TrimSpace(n.Name+" "+strconv.FormatFloat(n.Value, 'f', -1, 64)+" "+n.Unit))
	}
	return " (" + strings.Join(all, ", ") + ")"
}
