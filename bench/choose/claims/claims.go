// Package claims keeps what the open queue of each setting said of itself on its
// real broker, so that it is known where no broker runs. The file is written by a
// test, QUEUELAB_UPDATE=1 go test -run Claims ./bench, and tests that have a
// setting open anyway hold it to what the queue says now.
package claims

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"queuelab/queue"
)

// File is where the claims are kept, from this package's folder.
const File = "capabilities.json"

//go:embed capabilities.json
var kept []byte

// claim is one setting's line of the file. Can are the names of the fields of
// queue.Capabilities that are true.
type claim struct {
	Setting   string   `json:"setting"`
	Guarantee string   `json:"guarantee"`
	Confirm   string   `json:"confirm"`
	Attempts  string   `json:"attempts"`
	Can       []string `json:"can"`
}

// All returns the claims that are kept, by backend/setting.
func All() (map[string]queue.Capabilities, error) { return Decode(kept) }

// Decode reads the form of the file. A word that this program does not know is an
// error: a claim that is not understood must not be taken for its absence.
func Decode(data []byte) (map[string]queue.Capabilities, error) {
	var lines []claim
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&lines); err != nil {
		return nil, fmt.Errorf("read the claims: %w", err)
	}
	all := map[string]queue.Capabilities{}
	for _, l := range lines {
		c, err := l.capabilities()
		if err != nil {
			return nil, fmt.Errorf("read the claims of %q: %w", l.Setting, err)
		}
		if _, twice := all[l.Setting]; twice || l.Setting == "" {
			return nil, fmt.Errorf("read the claims: %q is there twice, or has no name", l.Setting)
		}
		all[l.Setting] = c
	}
	return all, nil
}

func (l claim) capabilities() (c queue.Capabilities, err error) {
	if c.Guarantee, err = named(l.Guarantee, queue.AtMostOnce, queue.AtLeastOnce); err != nil {
		return c, err
	}
	if c.Confirm, err = named(l.Confirm, queue.ConfirmNone, queue.ConfirmMemory, queue.ConfirmOS, queue.ConfirmDisk, queue.ConfirmReplicas); err != nil {
		return c, err
	}
	if c.Attempts, err = named(l.Attempts, queue.NotCounted, queue.CountedByBroker, queue.FlaggedByBroker); err != nil {
		return c, err
	}
	v := reflect.ValueOf(&c).Elem()
	for _, name := range l.Can {
		f := v.FieldByName(name)
		if !f.IsValid() || f.Kind() != reflect.Bool {
			return c, fmt.Errorf("queue.Capabilities has no %q", name)
		}
		f.SetBool(true)
	}
	return c, nil
}

func named[T fmt.Stringer](word string, all ...T) (T, error) {
	i := slices.IndexFunc(all, func(t T) bool { return t.String() == word })
	if i < 0 {
		return all[0], fmt.Errorf("unknown word %q", word)
	}
	return all[i], nil
}

// Encode writes the form of the file, a line for each setting in the order of names.
func Encode(all map[string]queue.Capabilities, names []string) ([]byte, error) {
	var lines []string
	for _, name := range names {
		c, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("write the claims: there are none of %s", name)
		}
		l := claim{Setting: name, Guarantee: c.Guarantee.String(), Confirm: c.Confirm.String(), Attempts: c.Attempts.String(), Can: []string{}}
		v := reflect.ValueOf(c)
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Bool && f.Bool() {
				l.Can = append(l.Can, v.Type().Field(i).Name)
			}
		}
		raw, err := json.Marshal(l)
		if err != nil {
			return nil, fmt.Errorf("write the claims of %s: %w", name, err)
		}
		lines = append(lines, "  "+string(raw))
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n"), nil
}
