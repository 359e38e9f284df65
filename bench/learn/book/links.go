package book

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
)

// CheckLinks is an error that names every link and every loaded file of a book
// which is not there. Links that lead out of the book are not followed.
func CheckLinks(dir string) error {
	ids := map[string]map[string]bool{} // of each page
	links := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		ids[path] = map[string]bool{}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		doc, err := html.Parse(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for n := range doc.Descendants() {
			for _, a := range n.Attr {
				switch a.Key {
				case "id":
					ids[path][a.Val] = true
				case "href", "src":
					links[path] = append(links[path], a.Val)
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("check the links: %w", err)
	}
	var dead []error
	for page, all := range links {
		for _, link := range all {
			if err := check(dir, page, link, ids); err != nil {
				dead = append(dead, fmt.Errorf("%s: the link %s: %w", page, link, err))
			}
		}
	}
	return errors.Join(dead...)
}

func check(dir, page, link string, ids map[string]map[string]bool) error {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() {
		return err
	}
	target := page
	if u.Path != "" {
		target = filepath.Join(filepath.Dir(page), filepath.FromSlash(u.Path))
	}
	if inside, err := filepath.Rel(dir, target); err != nil || strings.HasPrefix(inside, "..") {
		return errors.New("leads out of the book")
	}
	if _, err := os.Stat(target); err != nil {
		return err
	}
	if u.Fragment != "" && !ids[target][u.Fragment] {
		return fmt.Errorf("there is no %s", u.Fragment)
	}
	return nil
}
