package report

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"queuelab/bench/trial"
)

// browse opens a result's page in headless Chromium. A page exception fails
// the test at its end. Without Chromium it skips, or fails in CI.
func browse(t *testing.T, result trial.Result) (ctx context.Context, shot func(name string)) {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Chromium here: install Debian's chromium")
		}
		t.Skip("no Chromium here: install Debian's chromium to run the browser tests")
	}
	dir := t.TempDir()
	if err := Write(dir, result, Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.WindowSize(1280, 900))...)
	t.Cleanup(cancelAllocator)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelTab)
	thrown := make(chan string, 16)
	report := func(text string) {
		select {
		case thrown <- text:
		default:
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			report("it threw " + e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				report("it complained on the console")
			}
		case *log.EventEntryAdded:
			report("the browser complained: " + e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "file://") && !strings.HasPrefix(e.Request.URL, "data:") && !strings.HasPrefix(e.Request.URL, "blob:") {
				report("it asked the network for " + e.Request.URL)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case text := <-thrown:
			t.Errorf("the page did what it must not: %s", text)
		default:
		}
	})
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+filepath.Join(dir, HTMLFile))); err != nil {
		t.Fatal(err)
	}
	return ctx, func(name string) {
		folder := os.Getenv("QUEUELAB_SCREENSHOTS")
		if folder == "" {
			return
		}
		// In slices: the whole page is taller than a picture can be. The list of
		// cells at its end is more of the same.
		end := ask[float64](ctx, t, `Math.min(document.documentElement.scrollHeight, document.getElementById("cells").offsetTop + 2500)`)
		for i, top := 0, 0.0; top < end; i, top = i+1, top+slice {
			taken, err := chromedp.Call(ctx, protocol.CaptureScreenshot, protocol.CaptureScreenshotParams{Format: "jpeg", CaptureBeyondViewport: new(true),
				Clip: &protocol.Viewport{Y: top, Width: ask[float64](ctx, t, `innerWidth`), Height: min(slice, end-top), Scale: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d.jpg", name, i)), taken.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// slice is the height of one file of a screenshot.
const slice = 2200.0

// ask evaluates a script and fails on an error.
func ask[T any](ctx context.Context, t *testing.T, js string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return v
}

func do(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func TestPage(t *testing.T) {
	ctx, shot := browse(t, sample())

	t.Run("the charts hold a mark for every setting", func(t *testing.T) {
		for chart, want := range map[string]int{"latency": 14, "throughput": 14, "sale": 28} {
			if got := ask[int](ctx, t, `document.querySelectorAll("#`+chart+` .bands g.band").length`); got != want {
				t.Errorf("%s: got %d bands, want %d", chart, got, want)
			}
		}
		if got := ask[int](ctx, t, `document.querySelectorAll("#latency .span.e2e circle").length`); got != 13 {
			t.Errorf("got %d end-to-end medians, want 13: one setting is skipped", got)
		}
	})

	t.Run("a click on a head sorts by number within its profile, and what is not ranked stays below", func(t *testing.T) {
		const column = `[...document.querySelectorAll("#table-throughput-at-most-once tbody tr")].map(r => r.cells[0].innerText.trim()).join(",")`
		const head = `document.querySelectorAll("#table-throughput-at-most-once th button")[3].click()`
		ask[any](ctx, t, head)
		up := ask[string](ctx, t, column)
		ask[any](ctx, t, head)
		down := ask[string](ctx, t, column)
		if want := "redis-list/aof-always,rabbitmq/transient,redis-list/aof-everysec,redis-pubsub/default,kafka/acks-0,redis-list/no-persistence (emulated)"; up != want {
			t.Errorf("ascending: got %s, want %s", up, want)
		}
		if want := "kafka/acks-0,redis-pubsub/default,redis-list/aof-everysec,rabbitmq/transient,redis-list/aof-always,redis-list/no-persistence (emulated)"; down != want {
			t.Errorf("descending: got %s, want %s", down, want)
		}
		if got := ask[string](ctx, t, `document.querySelectorAll("#table-throughput-at-most-once th")[3].getAttribute("aria-sort")`); got != "descending" {
			t.Errorf("got aria-sort %q, want descending", got)
		}
	})

	const visible = `[...document.querySelectorAll("[data-cell]")].filter(c => c.offsetParent !== null).length`
	t.Run("words, backends and verdicts filter together", func(t *testing.T) {
		if got := ask[int](ctx, t, visible); got != 98 {
			t.Errorf("got %d cells, want 98", got)
		}
		do(ctx, t, chromedp.SendKeys("#find", "broker-kill"))
		if got := ask[int](ctx, t, visible); got != 14 {
			t.Errorf("one word: got %d cells, want 14", got)
		}
		do(ctx, t, chromedp.Click(`[data-pick="backend"][data-value="redis-streams"]`))
		if got := ask[int](ctx, t, visible); got != 3 {
			t.Errorf("a word and a backend: got %d cells, want 3", got)
		}
		do(ctx, t, chromedp.Click(`[data-pick="verdict"][data-value="contradiction"]`))
		if got := ask[int](ctx, t, visible); got != 1 {
			t.Errorf("a word, a backend and a verdict: got %d cells, want 1", got)
		}
		if got := ask[string](ctx, t, `document.getElementById("shown").textContent`); got != "1 of 98 cells shown" {
			t.Errorf("got %q, want 1 of 98 cells shown", got)
		}
		do(ctx, t, chromedp.Click("#clear"))
		if got := ask[int](ctx, t, visible); got != 98 {
			t.Errorf("after clearing: got %d cells, want 98", got)
		}
	})

	t.Run("a link opens its cell, with all its facts as JSON", func(t *testing.T) {
		do(ctx, t, chromedp.Click(`#table-crash-disk-sync td.v-bad a`), chromedp.Click(`details[open] .json summary`), chromedp.WaitVisible(`details[open] pre`))
		got := ask[string](ctx, t, `JSON.parse(document.querySelector("details[open] pre").textContent).verdict`)
		if got != "contradiction" {
			t.Errorf("got a cell with verdict %q, want contradiction", got)
		}
		if hash := ask[string](ctx, t, `location.hash`); !strings.Contains(hash, "aof-always-crash-broker-kill") {
			t.Errorf("got the address %q, want the cell's", hash)
		}
	})

	t.Run("dark and light differ, by the system and by the button", func(t *testing.T) {
		const colour = `getComputedStyle(document.body).backgroundColor`
		scheme := func(value string) {
			t.Helper()
			if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}}); err != nil {
				t.Fatal(err)
			}
		}
		ask[any](ctx, t, `document.querySelectorAll("details[open]").forEach(d => d.open = false)`)
		scheme("light")
		light := ask[string](ctx, t, colour)
		shot("light")
		do(ctx, t, chromedp.SetAttributeValue(`details.cell`, "open", ""))
		shot("open")
		scheme("dark")
		dark := ask[string](ctx, t, colour)
		shot("dark")
		if light == dark {
			t.Errorf("got %s in both", light)
		}
		do(ctx, t, chromedp.Click("#theme"))
		if got := ask[string](ctx, t, colour); got != light {
			t.Errorf("after the button: got %s, want the light %s", got, light)
		}
	})

	t.Run("what is downloaded is the result", func(t *testing.T) {
		ask[any](ctx, t, `window.saved = []; URL.createObjectURL = b => (saved.push(b), "data:,"); HTMLAnchorElement.prototype.click = () => {}`)
		do(ctx, t, chromedp.Click(`[data-download="json"]`), chromedp.Click(`[data-download="csv"]`))
		text, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`Promise.all(saved.map(b => b.text()))`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) != 2 {
			t.Fatalf("got %d files, want 2", len(text))
		}
		got, err := Decode([]byte(text[0]))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(sample()), got); diff != "" {
			t.Errorf("the JSON differs (-want +got):\n%s", diff)
		}
		var want bytes.Buffer
		if err := CSV(&want, sample()); err != nil {
			t.Fatal(err)
		}
		if text[1] != want.String() {
			t.Error("got another CSV than report.CSV writes")
		}
	})
}

func TestHostileStringsStayTextInTheBrowser(t *testing.T) {
	ctx, shot := browse(t, hostile())
	if got := ask[int](ctx, t, `document.scripts.length`); got != 2 {
		t.Errorf("got %d scripts, want 2", got)
	}
	if got := ask[int](ctx, t, `document.querySelectorAll("details[data-cell]").length`); got != 7 {
		t.Errorf("got %d cells, want 7", got)
	}
	ask[any](ctx, t, `document.querySelector("details.cell").open = true, document.querySelector("details.json").open = true`)
	do(ctx, t, chromedp.WaitVisible(`details[open] pre`))
	if got := ask[string](ctx, t, `document.querySelector("details pre").textContent`); !strings.Contains(got, `"backend"`) {
		t.Errorf("got %q, want a cell's JSON", got)
	}
	if got := ask[string](ctx, t, `JSON.parse(document.querySelector("details pre").textContent).backend`); got != evil {
		t.Errorf("got %q, want %q", got, evil)
	}
	if over := ask[int](ctx, t, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("got a page %d px wider than its window", over)
	}
	shot("hostile")
}
