package book

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"queuelab/bench/learn"
	"queuelab/bench/museum"
	"queuelab/bench/wire"
)

// edition has a lesson of each outcome, with words that want to be markup.
func edition() Edition {
	said := []learn.Said{
		{Step: &learn.Text{EN: "Send <one>.", ZH: "发送 <一条>。"}},
		{Broker: "redis", Line: &wire.Line{Conn: 1, Client: true, Command: "LPUSH", Text: "LPUSH k </script><script>alert(1)</script>"}},
		{Broker: "redis", Line: &wire.Line{Conn: 1, Text: ":1"}},
		{Left: 3},
	}
	result := func(n int, name string) learn.Result {
		return learn.Result{
			Number: n, Name: name, Topic: learn.Redis, Question: learn.Text{EN: "What of " + name + "?", ZH: "怎么样 " + name + "？"},
			Choices: []learn.Text{{EN: "{kept} kept", ZH: "留下 {kept}"}, {EN: "gone", ZH: "没了"}}, Figures: []learn.Figure{{Name: "kept", Means: learn.Text{EN: "kept", ZH: "留下"}, Value: 3}},
			Why: learn.Text{EN: "Since <b>.", ZH: "因为。"}, Say: learn.Text{EN: "Say.", ZH: "说。"}, Said: said, ID: "abc", At: time.Unix(0, 0).UTC(),
			Further: []learn.Link{{Text: learn.Text{EN: "doc", ZH: "文档"}, URL: "https://example.org/doc"}, {Cell: "redis-list/aof-always none"}},
		}
	}
	skipped, failed, shown := result(2, "skipped"), result(3, "failed"), result(1, "shown")
	skipped.Skipped, skipped.Measured = "no broker", -1
	failed.Error, failed.Measured = "kept is 3, expected 4", -1
	shown.Figures = []learn.Figure{{Name: "damage-lost", Value: 5}, {Name: "repair-lost", Value: 0}}
	return Edition{
		Lessons: []learn.Result{result(1, "one"), skipped, failed}, Museum: []learn.Result{shown},
		Exhibits: []museum.Exhibit{{Number: 1, Name: "shown", Found: []string{"001", "003"}}},
		At:       time.Unix(0, 0).UTC(), Conditions: []Condition{{Name: learn.Text{EN: "processor", ZH: "处理器"}, Value: learn.Text{EN: "2 cores", ZH: "2 核"}}},
	}
}

func TestTheBookHasNoDeadLinkAndNeedsNoNetwork(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, edition()); err != nil {
		t.Fatal(err)
	}
	if err := CheckLinks(dir); err != nil {
		t.Error(err)
	}
	pages := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		pages++
		raw, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?:src|<link[^>]*href)="([^"]*)"`).FindAllStringSubmatch(string(raw), -1) {
			if u, err := url.Parse(m[1]); err != nil || u.IsAbs() {
				t.Errorf("%s loads %s", path, m[1])
			}
		}
		if strings.Contains(string(raw), "alert(1)</script>") {
			t.Errorf("%s lets words of a transcript be markup", path)
		}
		return err
	})
	if want := 1 + 2*(2+4); err != nil || pages != want {
		t.Errorf("got %d pages, %v, want %d", pages, err, want)
	}
}

func TestADeadLinkIsFound(t *testing.T) {
	for name, link := range map[string]string{"file": "nothere.html", "anchor": "index.html#nothere", "outside": "../../etc.html"} {
		dir := t.TempDir()
		if err := Write(dir, edition()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "en", "extra.html")
		if err := os.WriteFile(path, []byte(`<a href="`+link+`">x</a>`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := CheckLinks(dir); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("%s: got %v, want the dead link %s named", name, err, link)
		}
	}
}

func TestPagesSayWhatWasMeasuredUnderWhichConditions(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, edition()); err != nil {
		t.Fatal(err)
	}
	for file, wants := range map[string][]string{
		"en/01-one.html":          {"3 kept", "Send &lt;one&gt;.", "2 cores", "1970-01-01", "3 more lines", "redis-list/aof-always none"},
		"zh/01-one.html":          {"留下 3", "处理器", "2 核", `lang="zh-CN"`},
		"en/02-skipped.html":      {"Not tried in this run: no broker"},
		"en/03-failed.html":       {"kept is 3, expected 4"},
		"en/museum-01-shown.html": {"001, 003", "Damage", "Repaired"},
		"en/all.html":             {"What of one?", "What of shown?"},
		"en/index.html":           {`href="museum-01-shown.html"`, "failed"},
	} {
		raw, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%s: got no %q", file, want)
			}
		}
	}
}

func TestDamageAndRepairStandUnderTheirHeadings(t *testing.T) {
	dir := t.TempDir()
	e := edition()
	e.Museum[0].Figures = []learn.Figure{
		{Name: "damage-lost", Means: learn.Text{EN: "lost before", ZH: "之前"}, Value: 5}, {Name: "repair-lost", Means: learn.Text{EN: "lost after", ZH: "之后"}, Value: 0},
	}
	if err := Write(dir, e); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "en", "museum-01-shown.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)>Damage<.*lost before.*>5<.*>Repaired<.*lost after.*>0<`).Match(raw) {
		t.Errorf("got\n%s\nwant the damage's figure below Damage, and the repair's below Repaired", raw)
	}
}
