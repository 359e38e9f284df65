package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium starts a real browser. Without one it skips, or fails in CI.
func chromium(t *testing.T) context.Context {
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.Flag("lang", "en"), chromedp.WindowSize(1440, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses root with one
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	browse(ctx, t, chromedp.Navigate("about:blank"))
	return ctx
}

// tab opens another tab. What the page throws or complains of, and what it asks
// of others than home, fails the test at its end.
func tab(t *testing.T, browser context.Context, home, address string) context.Context {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	browse(ctx, t, chromedp.Navigate("about:blank"))
	complaints := make(chan string, 16)
	complain := func(text string) {
		select {
		case complaints <- text:
		default:
		}
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain("it threw " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.Exception.Description)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				complain("it complained on the console")
			}
		case *log.EventEntryAdded:
			complain("the browser complained: " + e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if url := e.Request.URL; !strings.HasPrefix(url, home) && !strings.HasPrefix(url, "data:") {
				complain("it asked for " + url)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for {
			select {
			case text := <-complaints:
				t.Errorf("%s did what it must not: %s", home, text)
			default:
				return
			}
		}
	})
	browse(ctx, t, chromedp.Navigate(address))
	return ctx
}

func browse(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// ask evaluates a script and fails on an error.
func ask[T any](ctx context.Context, t *testing.T, js string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return v
}

// soon waits for a script to say true, for at most 30 s.
func soon(ctx context.Context, t *testing.T, js string) bool {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		v, err := chromedp.Run(ctx, chromedp.Evaluate[bool](js, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		if v {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(25 * time.Millisecond):
		}
	}
	return false
}

// until waits until a script says true, and fails where it does not.
func until(ctx context.Context, t *testing.T, fact, js string) {
	t.Helper()
	if soon(ctx, t, js) {
		return
	}
	t.Fatalf("not so after 30 s: %s; the page says: %s", fact, ask[string](ctx, t, `document.body.innerText.slice(0, 1500)`))
}

// keys presses keys one after the other, as a person without a mouse does.
func keys(ctx context.Context, t *testing.T, all ...string) {
	t.Helper()
	for _, key := range all {
		browse(ctx, t, chromedp.KeyEvent(key))
	}
}

// tabTo goes to an element by the Tab key alone.
func tabTo(ctx context.Context, t *testing.T, selector string) {
	t.Helper()
	for range 120 {
		if ask[bool](ctx, t, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			if !ask[bool](ctx, t, `document.activeElement.matches(":focus-visible")`) {
				t.Errorf("%s: its focus cannot be seen", selector)
			}
			return
		}
		keys(ctx, t, kb.Tab)
	}
	t.Fatalf("no way to %s by the Tab key", selector)
}

func media(ctx context.Context, t *testing.T, features ...string) {
	t.Helper()
	params := emulation.SetEmulatedMediaParams{}
	for i := 0; i < len(features); i += 2 {
		params.Features = append(params.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params); err != nil {
		t.Fatal(err)
	}
}

// tooWide lists what sticks out of the window to the right.
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")).slice(0, 5).map(e => e.tagName + "." + e.className).join(", ") || "the page"`

// everywhere looks at the page as it is at 360 px and on a projector, in both
// languages, dark and light.
func everywhere(ctx context.Context, t *testing.T, what string) {
	t.Helper()
	for _, width := range []int64{360, 1920} {
		browse(ctx, t, chromedp.EmulateViewport(width, 900))
		for range 2 {
			ask[any](ctx, t, `document.getElementById("lang").click()`)
			lang := ask[string](ctx, t, `document.documentElement.lang`)
			if wide := ask[string](ctx, t, tooWide); wide != "" {
				t.Errorf("%s, %d px, %s: got a page too wide: %s", what, width, lang, wide)
			}
			if got := ask[string](ctx, t, `[...document.querySelectorAll("button, input, select, canvas, summary")].filter(e => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map(e => e.outerHTML.slice(0, 80)).join("; ")`); got != "" {
				t.Errorf("%s, %s: got controls without a name: %s", what, lang, got)
			}
			han := ask[bool](ctx, t, `/\p{Script=Han}/u.test(document.querySelector("main").innerText)`)
			if want := lang != "en"; han != want {
				t.Errorf("%s, %s: got Chinese words: %v, want %v", what, lang, han, want)
			}
		}
	}
	browse(ctx, t, chromedp.EmulateViewport(1440, 900))
}

// countsShown is the table of a lane's counts: what it shows, by the ledger's names.
func countsShown(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	return ask[map[string]string](ctx, t, `Object.fromEntries([...document.querySelectorAll(".lane .counts tr")].filter(r => !r.hidden).map(r => [r.dataset.count, r.cells[1].textContent.replaceAll(",", "")]))`)
}

// count is one count of the first lane, or -1 where it is not shown as a number.
func count(name string) string {
	return fmt.Sprintf(`Number(document.querySelector('.lane [data-count="%s"] td')?.textContent.replaceAll(",", "") || -1)`, name)
}

// clickDot finds the dot of the first message of the list in the picture, and
// clicks it.
const clickDot = `(() => {
	const canvas = document.querySelector(".lane canvas"), box = canvas.getBoundingClientRect(), id = document.querySelector(".ids [data-id]").dataset.id;
	for (let y = 5; y < box.height; y += 8) for (let x = 5; x < box.width; x += 8) {
		const at = { bubbles: true, clientX: box.left + x, clientY: box.top + y };
		canvas.dispatchEvent(new MouseEvent("mousemove", at));
		if (canvas.title === id) return canvas.dispatchEvent(new MouseEvent("click", at));
	}
	return false;
})()`

// drawn is how often pictures were drawn within a second.
const drawn = `(async () => {
	const clear = CanvasRenderingContext2D.prototype.clearRect;
	let n = 0;
	CanvasRenderingContext2D.prototype.clearRect = function (...a) { n++; return clear.apply(this, a); };
	await new Promise(done => setTimeout(done, 1000));
	CanvasRenderingContext2D.prototype.clearRect = clear;
	return n;
})()`

// fetch gets what the lab answers to one who has been let in.
func fetch(t *testing.T, l *lab, path string) []byte {
	t.Helper()
	r, err := l.client.Get(l.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: got status %d, %v", path, r.StatusCode, err)
	}
	return body
}
