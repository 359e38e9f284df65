package web

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browser opens a tab of a real browser on the lab's page.
func browser(t *testing.T, l *lab) context.Context {
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
		t.Skip("no Chromium here: install Debian's chromium to run the browser test")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses root with one
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	browse(ctx, t, chromedp.Navigate(l.base+"/"))
	return ctx
}

func browse(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// shows waits until the element's text contains want.
func shows(ctx context.Context, t *testing.T, selector, want string) string {
	t.Helper()
	var got string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if got, err = chromedp.Run(ctx, chromedp.Evaluate[string](`(document.querySelector("`+selector+`") || {innerText: ""}).innerText`)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got, want) {
			return got
		}
	}
	t.Fatalf("%s: got %q, want %q in it", selector, got, want)
	return ""
}

func TestAVoucherIsBoughtInTheBrowser(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	l.voucher(1, -time.Hour, time.Hour)
	ctx := browser(t, l)
	shows(ctx, t, "#vouchers li", "1 of 1 left")
	if off, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector("li button").disabled`)); err != nil || !off {
		t.Errorf("got a button that is off: %v, %v, want it off before the login", off, err)
	}
	browse(ctx, t, chromedp.SendKeys("#user", "alice"), chromedp.Click("#login button"))
	shows(ctx, t, "#who", "alice")
	browse(ctx, t, chromedp.Click("li button"))
	text := shows(ctx, t, ".answer", "queued")
	// The worker's part, in another instance.
	l.decide(strings.Fields(text)[1])
	shows(ctx, t, ".answer", "confirmed")
	shows(ctx, t, "#vouchers li", "Sold out")
}
