package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"queuelab/app/store"
)

// maxConfig bounds the configuration file, in bytes.
const maxConfig = 1 << 20

// configFile is a YAML file of flags without their dashes. A flag on the command
// line comes before its environment variable, and that before the file.
type configFile string

// BeforeResolve is called by kong once the name of the file is known.
func (c configFile) BeforeResolve(ctx *kong.Context, at *kong.Path) error {
	path, _ := ctx.FlagValue(at.Flag).(configFile)
	if path == "" {
		return nil
	}
	f, err := os.Open(string(path))
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(b) > maxConfig {
		err = fmt.Errorf("it is larger than %d bytes", maxConfig)
	}
	var values map[string]string
	if err == nil {
		values, err = readConfig(b, inFile(ctx.Model))
	}
	if err != nil {
		return fmt.Errorf("--config=%s: %w", path, err)
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		v, ok := values[flag.Name]
		if _, set := fromEnv(flag); !ok || set {
			return nil, nil
		}
		return v, nil
	}))
	return nil
}

// inFile lists the flags that a file may set: those of the service, not those
// that ask for something else.
func inFile(app *kong.Application) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(app.Flags), func(f *kong.Flag) bool {
		return f.Name == "help" || f.Name == "version" || f.Name == "config" || f.Name == "print-config"
	})
}

func fromEnv(f *kong.Flag) (name string, set bool) {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name, true
		}
	}
	return "", false
}

// readConfig reads NAME: VALUE, and a list as its items. The values are as they
// stand there, so that each flag reads its own as from the command line.
func readConfig(b []byte, flags []*kong.Flag) (map[string]string, error) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	err := d.Decode(&doc)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err == nil {
		if err = d.Decode(&more); err == nil {
			return nil, fmt.Errorf("line %d: a second document: want all in one, without ---", more.Line)
		} else if !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	values := map[string]string{}
	if doc.Kind == 0 {
		return values, nil // an empty file
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("want lines such as \"queue: redis-streams\"")
	}
	var errs []error
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		at := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == key.Value })
		_, twice := values[key.Value]
		switch {
		case at < 0:
			errs = append(errs, fmt.Errorf("line %d: unknown key %q: did you mean %q?", key.Line, key.Value, nearest(key.Value, flags)))
			continue
		case twice:
			errs = append(errs, fmt.Errorf("line %d: %s is given twice", key.Line, key.Value))
			continue
		}
		v, err := plainValue(value, flags[at])
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err))
		}
		values[key.Value] = v
	}
	return values, errors.Join(errs...)
}

func plainValue(n *yaml.Node, f *kong.Flag) (string, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return n.Value, nil
	case n.Kind == yaml.SequenceNode && f.IsSlice():
		var items []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || strings.Contains(c.Value, ",") {
				return "", errors.New("want a list of plain values without commas")
			}
			items = append(items, c.Value)
		}
		return strings.Join(items, ","), nil
	case f.IsSlice():
		return "", errors.New("want a value, or a list of values")
	}
	return "", errors.New("want one value; leave the line out for the default")
}

// nearest is the flag that a name was most likely meant to be.
func nearest(name string, flags []*kong.Flag) string {
	best, least := "", 0
	for _, f := range flags {
		if d := distance(strings.ReplaceAll(strings.ToLower(name), "_", "-"), f.Name); best == "" || d < least {
			best, least = f.Name, d
		}
	}
	return best
}

// distance counts the letters to put in, take out or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := before
			if a[i] != b[j] {
				d++
			}
			before = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// printConfig writes what the service would run with, as a file for --config,
// and where each value is from. What has a secret in it is a comment, without it.
func printConfig(w io.Writer, ctx *kong.Context) error {
	given := map[*kong.Flag]string{}
	for _, p := range ctx.Path {
		switch {
		case p.Flag == nil:
		case p.Resolved:
			given[p.Flag] = "file"
		default:
			given[p.Flag] = "flag"
		}
	}
	for _, f := range inFile(ctx.Model) {
		from := given[f]
		if name, set := fromEnv(f); from != "flag" && set {
			from = "environment, " + name
		} else if from == "" {
			from = "default"
		}
		value, err := yaml.Marshal(shown(f))
		if err != nil {
			return fmt.Errorf("print the configuration: %s: %w", f.Name, err)
		}
		text, mark := strings.TrimSpace(string(value)), ""
		if strings.Contains(text, leftOut) {
			mark = "# "
		}
		if _, err := fmt.Fprintf(w, "%s%s: %s  # %s\n", mark, f.Name, text, from); err != nil {
			return fmt.Errorf("print the configuration: %w", err)
		}
	}
	return nil
}

// leftOut stands where a secret was.
const leftOut = "xxxxx"

// checkLeftOut refuses what --print-config shows instead of a secret: as a token it
// would let in whoever has seen that.
func checkLeftOut(flags []*kong.Flag) error {
	for _, f := range flags {
		for _, v := range texts(f) {
			if secret(f) && v == leftOut || strings.Contains(v, ":"+leftOut+"@") || strings.Contains(v, "password="+leftOut) {
				return fmt.Errorf("--%s has %s where --print-config left a secret out: give the secret", f.Name, leftOut)
			}
		}
	}
	return nil
}

// texts are a flag's values as texts.
func texts(f *kong.Flag) []string {
	if f.Target.Kind() != reflect.Slice {
		return []string{fmt.Sprint(f.Target.Interface())}
	}
	items := make([]string, f.Target.Len())
	for i := range items {
		items[i] = fmt.Sprint(f.Target.Index(i))
	}
	return items
}

// secret reports whether a flag's value is for nobody to see.
func secret(f *kong.Flag) bool {
	if f.Enum != "" {
		return false
	}
	words := strings.Split(f.Name, "-")
	return slices.ContainsFunc([]string{"token", "key", "secret", "password"}, func(w string) bool { return slices.Contains(words, w) })
}

// shown is a flag's value as it may be shown.
func shown(f *kong.Flag) any {
	if f.Target.Kind() == reflect.Slice {
		items := texts(f)
		for i, v := range items {
			items[i] = shownText(f, v)
		}
		return flow(items)
	}
	switch f.Target.Kind() {
	case reflect.Bool:
		return f.Target.Bool()
	case reflect.Int, reflect.Float64:
		return f.Target.Interface()
	}
	return shownText(f, fmt.Sprint(f.Target.Interface()))
}

func shownText(f *kong.Flag, v string) string {
	switch {
	case v == "":
		return v
	case secret(f):
		return leftOut
	case strings.Contains(v, "://"), strings.ContainsAny(v, "@="):
		return store.Redact(v)
	}
	return v
}

// flow has a list stand on one line.
type flow []string

// MarshalYAML implements yaml.Marshaler.
func (f flow) MarshalYAML() (any, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range f {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	return n, nil
}
