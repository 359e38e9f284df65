package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browse opens the sample's page in headless Chromium. A page exception fails
// the test at its end. Without Chromium it skips, or fails in CI.
func browse(t *testing.T) (ctx context.Context, shot func(name string)) {
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
	if err := Write(dir, sample(), Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, chromedp.ExecPath(path), chromedp.WindowSize(1280, 900))
	t.Cleanup(cancelAllocator)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelTab)
	thrown := make(chan string, 16)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*runtime.ExceptionThrownEvent); ok {
			select {
			case thrown <- e.ExceptionDetails.Text:
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case text := <-thrown:
			t.Errorf("the page threw an exception: %s", text)
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
		png, err := chromedp.Run(ctx, chromedp.FullScreenshot(90))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestX(t *testing.T) {
	_, shot := browse(t)
	shot("x.jpg")
}
