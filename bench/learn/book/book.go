// Package book writes the lessons of one run as a site of plain files, in English
// and Chinese: it opens from the disk, needs no network, can be searched, and
// prints.
package book

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/museum"
)

//go:embed assets
var assets embed.FS

// Edition is what a book is made of.
type Edition struct {
	Lessons []learn.Result
	Museum  []learn.Result // in the order of Exhibits
	// Exhibits are those of Museum.
	Exhibits   []museum.Exhibit
	At         time.Time
	Conditions []Condition // of the machine
}

// Condition is one under which the figures came about.
type Condition struct {
	Name, Value learn.Text
}

// Write writes the book into a directory, which it makes. What else is in it
// stays.
func Write(dir string, e Edition) error {
	t, err := template.New("").Funcs(template.FuncMap{"say": func(l learn.Lang, en, zh string) string { return learn.Text{EN: en, ZH: zh}.In(l) }}).ParseFS(assets, "assets/*.tmpl")
	if err != nil {
		return fmt.Errorf("write the book: %w", err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"book.css", "search.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return fmt.Errorf("write the book: %w", err)
		}
		files[name] = b
	}
	put := func(name, tmpl string, page any) error {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, tmpl, page); err != nil {
			return fmt.Errorf("write %s of the book: %w", name, err)
		}
		files[name] = b.Bytes()
		return nil
	}
	if err := put("index.html", "cover.tmpl", e); err != nil {
		return err
	}
	for _, lang := range []learn.Lang{learn.EN, learn.ZH} {
		v := newVolume(e, lang)
		if files["words-"+string(lang)+".js"], err = v.words(); err != nil {
			return err
		}
		if err := put(string(lang)+"/index.html", "contents.tmpl", v); err != nil {
			return err
		}
		if err := put(string(lang)+"/all.html", "all.tmpl", v); err != nil {
			return err
		}
		for _, p := range v.pages() {
			if err := put(string(lang)+"/"+p.File, "page.tmpl", p); err != nil {
				return err
			}
		}
	}
	for name, b := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the book: %w", err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return fmt.Errorf("write the book: %w", err)
		}
	}
	return nil
}

// words are what search.js looks through: the pages with their text. They are a
// script, since a page that is opened from the disk may load no data.
func (v *volume) words() ([]byte, error) {
	type entry struct {
		File, Title, Text string
	}
	var es []entry
	for _, p := range v.pages() {
		es = append(es, entry{p.File, p.Title, p.text()})
	}
	b, err := json.Marshal(es) // escapes <, > and &
	if err != nil {
		return nil, fmt.Errorf("write the words of the book: %w", err)
	}
	return append(append([]byte("const words = "), b...), ";\n"...), nil
}
