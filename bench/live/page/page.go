// Package page is the page of the live lab: one self-contained file, which
// either watches a lab that runs, or replays a recording without one.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

//go:embed assets
var assets embed.FS

// scripts names the page's modules, each after those whose values it uses as it
// is loaded.
func scripts() []string {
	return []string{
		"words", "parts", "scenarios", "model", "timeline", "places", "shapes", "queues", "scene", "story", "ledger", "setup", "lane", "slides", "source", "lab",
	}
}

// HTML returns the page. With nil it is that of a lab that runs, and asks the
// server it came from; with a recording, the JSON object that the
// lab's export makes, it replays that, and its own policy forbids it every
// request.
func HTML(recording []byte) ([]byte, error) {
	frame, err := asset("lab.html")
	if err != nil {
		return nil, err
	}
	style, err := asset("lab.css")
	if err != nil {
		return nil, err
	}
	script, err := joined()
	if err != nil {
		return nil, err
	}
	connect, data := "'self'", []byte("null")
	if recording != nil {
		if !json.Valid(recording) {
			return nil, errors.New("make the page: the recording is no JSON")
		}
		connect, data = "'none'", recording
	}
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, data)
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; connect-src %s; base-uri 'none'; form-action 'none'",
		digest(script), digest(style), connect)
	return []byte(strings.NewReplacer("{{policy}}", policy, "{{style}}", style, "{{script}}", script, "{{recording}}", escaped.String()).Replace(frame)), nil
}

// joined is all modules as one: a file from disk has nothing to import, as
// browsers refuse modules from there.
func joined() (string, error) {
	imports, exports := regexp.MustCompile(`(?m)^import [^;]*;\n`), regexp.MustCompile(`(?m)^export `)
	var all strings.Builder
	for _, name := range scripts() {
		text, err := asset(name + ".js")
		if err != nil {
			return "", err
		}
		all.WriteString(exports.ReplaceAllString(imports.ReplaceAllString(text, ""), ""))
	}
	return all.String(), nil
}

func asset(name string) (string, error) {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return "", fmt.Errorf("make the page: %w", err)
	}
	return string(text), nil
}

// digest names a text in a content security policy.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
