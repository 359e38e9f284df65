// Package params reads the settings of a queue from the query of its URL. A
// parameter that nobody asked for is an error that names the known ones.
package params

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Params collects what was asked for and what went wrong; Err reports it.
// Each getter takes the default that holds without the parameter.
type Params struct {
	query  url.Values
	preset map[string]string
	known  []string
	errs   []error
}

// New reads the query of u.
func New(u *url.URL) *Params {
	q, err := url.ParseQuery(u.RawQuery)
	p := &Params{query: q}
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("malformed query: %w", err))
	}
	for name, vs := range q {
		if len(vs) > 1 {
			p.errs = append(p.errs, fmt.Errorf("parameter %q is given %d times", name, len(vs)))
		}
	}
	return p
}

// Preset reads the parameter "preset" and takes the values of the named set
// wherever the URL does not say otherwise.
func (p *Params) Preset(sets map[string]map[string]string) {
	names := make([]string, 0, len(sets)+1)
	for n := range sets {
		names = append(names, n)
	}
	slices.Sort(names)
	name := p.OneOf("preset", append([]string{""}, names...)...)
	p.preset = sets[name]
}

func (p *Params) get(name string) (string, bool) {
	p.known = append(p.known, name)
	if p.query.Has(name) {
		return p.query.Get(name), true
	}
	v, ok := p.preset[name]
	return v, ok
}

func (p *Params) bad(name, value, want string) {
	p.errs = append(p.errs, fmt.Errorf("parameter %s=%q: want %s", name, value, want))
}

// String reads a text that must not be empty when given.
func (p *Params) String(name, def string) string {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	if v == "" {
		p.bad(name, v, "a value")
	}
	return v
}

// Name reads the name of a queue or group: 1 to 200 letters, digits, '.', '_'
// or '-', which every broker accepts.
func (p *Params) Name(name, def string) string {
	v := p.String(name, def)
	if v == def {
		return v
	}
	if err := CheckName(v); err != nil {
		p.bad(name, v, err.Error())
	}
	return v
}

// CheckName says what is wrong with a name, if anything.
func CheckName(v string) error {
	ok := len(v) >= 1 && len(v) <= 200 && strings.IndexFunc(v, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}) < 0
	if !ok {
		return errors.New("1 to 200 letters, digits, '.', '_' or '-'")
	}
	return nil
}

// OneOf reads one of the choices; the first is the default.
func (p *Params) OneOf(name string, choices ...string) string {
	v, ok := p.get(name)
	if !ok {
		return choices[0]
	}
	if !slices.Contains(choices, v) || v == "" {
		p.bad(name, v, "one of "+strings.Join(slices.DeleteFunc(slices.Clone(choices), func(c string) bool { return c == "" }), ", "))
	}
	return v
}

// Int reads a whole number in [lo, hi].
func (p *Params) Int(name string, def, lo, hi int) int {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		p.bad(name, v, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return def
	}
	return n
}

// Bool reads true or false.
func (p *Params) Bool(name string, def bool) bool {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	if v != "true" && v != "false" {
		p.bad(name, v, "true or false")
		return def
	}
	return v == "true"
}

// Duration reads a Go duration in [lo, hi].
func (p *Params) Duration(name string, def, lo, hi time.Duration) time.Duration {
	v, ok := p.get(name)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < lo || d > hi {
		p.bad(name, v, fmt.Sprintf("a duration from %v to %v, such as 500ms or 30s", lo, hi))
		return def
	}
	return d
}

// Err reports every wrong and every unknown parameter. Call it after the last
// getter.
func (p *Params) Err() error {
	errs := slices.Clone(p.errs)
	var unknown []string
	for name := range p.query {
		if !slices.Contains(p.known, name) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		known := slices.Clone(p.known)
		slices.Sort(known)
		errs = append(errs, fmt.Errorf("unknown parameter %s: the known ones are %s",
			strings.Join(unknown, ", "), strings.Join(slices.Compact(known), ", ")))
	}
	return errors.Join(errs...)
}
