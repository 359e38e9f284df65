package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestPicturesForPeople takes pictures of lanes in the middle of a fault, into
// the directory QUEUELAB_SHOTS. What they look like is for people to judge.
func TestPicturesForPeople(t *testing.T) {
	dir := os.Getenv("QUEUELAB_SHOTS")
	if dir == "" {
		t.Skip("QUEUELAB_SHOTS names no directory for pictures")
	}
	browser := chromium(t)
	l := serveLab(t, Options{})
	ctx := tab(t, browser, l.base, l.URL)
	shot := func(t *testing.T, name string, width int64) {
		t.Helper()
		browse(ctx, t, chromedp.EmulateViewport(width, 900))
		until(ctx, t, "it is drawn", `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
		params := page.CaptureScreenshotParams{Format: "png", CaptureBeyondViewport: new(true), Clip: &page.Viewport{
			Width: float64(width), Height: ask[float64](ctx, t, `Math.min(4000, document.documentElement.scrollHeight)`), Scale: 1}}
		taken, err := chromedp.Call(ctx, page.CaptureScreenshot, params)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, width)), taken.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct{ name, scenario, settings, strike string }{
		{"list", "at-most-once", "redis-list/aof-everysec", "kill-consumer"},
		{"stream", "at-least-once", "redis-streams/aof-everysec", "kill-consumer"},
		{"rabbitmq", "at-least-once", "rabbitmq/classic", "kill-consumer"},
		{"kafka", "rebalance", "kafka/acks-all", "kill-consumer"},
		{"broker", "at-least-once", "rabbitmq/classic", "kill-broker"},
		{"pubsub", "at-most-once", "redis-pubsub/default", "kill-consumer"},
		{"race", "spike", "redis-list/aof-everysec,redis-streams/aof-everysec,rabbitmq/classic,kafka/acks-all,redis-pubsub/default,memory/bounded", "kill-consumer"},
	} {
		t.Run(one.name, func(t *testing.T) {
			until(ctx, t, "the form is there", `document.querySelector("#scenarios input") !== null`)
			ask[any](ctx, t, fmt.Sprintf(`document.querySelector('[name="scenario"][value="%s"]').click()`, one.scenario))
			ask[any](ctx, t, fmt.Sprintf(`for (const on of [false, true]) for (const s of document.querySelectorAll('[name="setting"]')) if (on !== s.checked && on === %q.split(",").includes(s.value)) s.click()`, one.settings))
			ask[any](ctx, t, fmt.Sprintf(`document.getElementById("speed").value = %d; document.getElementById("start").click()`, map[bool]int{true: 4, false: 2}[one.name == "race"]))
			until(ctx, t, "it begins", `/start|Live/.test(document.getElementById("where").textContent) && !/[1-9]/.test(document.querySelector('.lane [data-count="effects"] td')?.textContent ?? "0")`)
			lanes := strings.Count(one.settings, ",") + 1
			for range 3 { // brokers take their time
				if soon(ctx, t, fmt.Sprintf(`document.querySelectorAll(".lane").length === %d && [...document.querySelectorAll('.lane [data-count="effects"] td')].every(e => Number(e.textContent) > 8)`, lanes)) {
					break
				}
			}
			ask[any](ctx, t, fmt.Sprintf(`document.querySelectorAll('[data-strike="%s"]').forEach(b => b.click())`, one.strike))
			soon(ctx, t, `[...document.querySelectorAll(".lane .deed")].every(e => /kill/.test(e.textContent))`)
			shot(t, one.name+"-at-once", 1440)
			soon(ctx, t, `/^[1-9]/.test(document.querySelector('[data-count="lost"] td').textContent) || /^[1-9]/.test(document.querySelector('[data-count="redelivered"] td').textContent)`)
			shot(t, one.name, 1440)
			shot(t, one.name, 360)
			ask[any](ctx, t, `document.getElementById("stop").click()`)
			if over := `document.getElementById("pause").textContent === "Replay"`; !soon(ctx, t, over) { // a broker that was killed is started again first
				until(ctx, t, "the show is over", over)
			}
			shot(t, one.name+"-ended", 1440)
			ask[any](ctx, t, `document.getElementById("again").click()`)
		})
	}
}
