package live

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"queuelab/bench/broker/brokertest"
	"queuelab/bench/live/page"
)

func TestTheLabInABrowser(t *testing.T) {
	brokertest.Need(t, "redis")
	browser := chromium(t)
	l := serveLab(t, Options{})
	ctx := tab(t, browser, l.base, l.URL)
	until(ctx, t, "the scenarios are there", `document.querySelectorAll("#scenarios input").length > 3`)

	t.Run("the form is right on every screen and in both languages", func(t *testing.T) { everywhere(ctx, t, "the form") })

	if !t.Run("by the keyboard alone a show begins, and a consumer is killed", func(t *testing.T) {
		tabTo(ctx, t, `[name="scenario"]`)
		for range 12 {
			if ask[string](ctx, t, `document.activeElement.value`) == "at-most-once" {
				break
			}
			keys(ctx, t, kb.ArrowDown)
		}
		if got := ask[string](ctx, t, `document.getElementById("chosen").textContent`); got != "1 chosen: redis-list/aof-everysec" {
			t.Fatalf("got %q, want the list to be chosen for the scenario at most once", got)
		}
		tabTo(ctx, t, "#start")
		keys(ctx, t, kb.Enter)
		until(ctx, t, "effects are counted", count("effects")+" > 4")
		everywhere(ctx, t, "a show")
		// Who dies after the commit and before it could say so has lost nothing.
		for try := 1; ask[float64](ctx, t, count("lost")) < 1; try++ {
			if try > 6 {
				t.Fatal("six consumers were killed while they held a message, and none is lost")
			}
			keys(ctx, t, "j")
			until(ctx, t, "another consumer is there", `/start/i.test(document.querySelector(".lane .deed").textContent)`)
			keys(ctx, t, "k")
			until(ctx, t, "the lane says what was done", `/kill -9/.test(document.querySelector(".lane .deed").textContent)`)
			held := ask[bool](ctx, t, `/held 1 message/.test(document.querySelector(".lane .deed").textContent)`)
			for wait := time.Now().Add(4 * time.Second); held && time.Now().Before(wait) && ask[float64](ctx, t, count("lost")) < 1; {
				<-time.After(50 * time.Millisecond)
			}
		}
		ask[any](ctx, t, `document.querySelector(".lane .facts summary").click()`)
		until(ctx, t, "the process is told as dead in words", `/killed/.test(document.querySelector(".lane .facts").innerText)`)
		tabTo(ctx, t, "#pause")
		keys(ctx, t, kb.Enter)
		sent := ask[float64](ctx, t, count("sent"))
		until(ctx, t, "the run goes on and is kept", fmt.Sprintf(`document.getElementById("clock").textContent && %s === %g && Number(document.getElementById("scrub").value) < 990`, count("sent"), sent))
		keys(ctx, t, kb.End)
		until(ctx, t, "the picture is at now", count("sent")+fmt.Sprintf(" > %g", sent))
		tabTo(ctx, t, "#stop")
		keys(ctx, t, kb.Enter)
		until(ctx, t, "the ledger has the last word", `/last word/.test(document.getElementById("where").textContent) && document.getElementById("pause").textContent === "Replay"`)
	}) {
		return
	}

	var recording struct {
		Ticks []struct {
			Lanes []struct {
				Records [][]any `json:"records"`
				Ended   *struct {
					Counts map[string]*int64 `json:"counts"`
					Lost   [][2]string       `json:"lost"`
				} `json:"ended"`
			} `json:"lanes"`
		} `json:"ticks"`
	}
	file := filepath.Join(t.TempDir(), "show.html")
	if err := json.Unmarshal(fetch(t, l, "/api/shows/current/recording?format=json"), &recording); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fetch(t, l, "/api/shows/current/recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	counted := countsShown(ctx, t)

	t.Run("what is counted as lost is what the ledger has", func(t *testing.T) {
		accepted, effects := map[string]bool{}, map[string]bool{}
		var lost [][2]string
		for _, tick := range recording.Ticks {
			for _, lane := range tick.Lanes {
				for _, r := range lane.Records {
					switch id := fmt.Sprint(r[3]); r[1] {
					case "accepted":
						accepted[id] = true
					case "effect":
						effects[id] = true
					}
				}
				if lane.Ended == nil {
					continue
				}
				lost = lane.Ended.Lost
				for name, text := range counted {
					if v := lane.Ended.Counts[name]; v != nil && text != strconv.FormatInt(*v, 10) {
						t.Errorf("%s: got %s on the page, the ledger has %d", name, text, *v)
					}
				}
			}
		}
		for _, l := range lost {
			if id := l[0]; !accepted[id] || effects[id] {
				t.Errorf("message %s is told as lost: got accepted %v, effect %v, want it accepted and without effect", id, accepted[id], effects[id])
			}
		}
		if len(lost) == 0 || counted["lost"] != strconv.Itoa(len(lost)) {
			t.Errorf("got %s lost on the page, and %d listed, want the same and more than none", counted["lost"], len(lost))
		}
	})

	t.Run("a lost message tells its story, by the keyboard", func(t *testing.T) {
		keys(ctx, t, "m", kb.Tab)
		until(ctx, t, "the lost one is first", `/lost/.test(document.activeElement.textContent)`)
		keys(ctx, t, kb.Enter)
		until(ctx, t, "its story is there", `document.getElementById("story").open && document.querySelectorAll("#story svg .sent").length >= 3`)
		if got := ask[string](ctx, t, `document.querySelector("#story .verdict").textContent`); !strings.HasPrefix(got, "Lost: ") {
			t.Errorf("got the verdict %q, want where it was lost", got)
		}
		if got := ask[int](ctx, t, `document.querySelectorAll("#story svg .death").length`); got != 1 {
			t.Errorf("got %d crosses in the diagram, want 1", got)
		}
		keys(ctx, t, kb.Escape)
		until(ctx, t, "the story is closed", `!document.getElementById("story").open`)
		until(ctx, t, "its dot is in the picture", clickDot)
		until(ctx, t, "a click on its dot opens it, too", `document.getElementById("story").open && /^Lost: /.test(document.querySelector("#story .verdict").textContent)`)
		keys(ctx, t, kb.Escape)
	})

	t.Run("slides go from what it is to the point, by the keyboard", func(t *testing.T) {
		keys(ctx, t, "l")
		var slides []string
		for range 6 {
			slides = append(slides, ask[string](ctx, t, `document.body.dataset.slide`))
			keys(ctx, t, kb.PageDown)
		}
		if diff := cmp.Diff([]string{"what", "start", "fault", "see", "counts", "point"}, slides); diff != "" {
			t.Errorf("the slides differ (-want +got):\n%s", diff)
		}
		if got, want := ask[string](ctx, t, `document.getElementById("slide-text").textContent`), counted["lost"]+" lost"; !strings.Contains(got, want) {
			t.Errorf("got %q, want the count %q in it", got, want)
		}
		everywhere(ctx, t, "slides")
		keys(ctx, t, kb.Escape)
		until(ctx, t, "the slides are over", `!document.body.classList.contains("slides")`)
	})

	t.Run("a recording replays from disk without a network", func(t *testing.T) {
		ctx := offline(t, browser, file)
		keys(ctx, t, kb.End)
		until(ctx, t, "it is at its end", count("sent")+" > 0")
		if diff := cmp.Diff(counted, countsShown(ctx, t)); diff != "" {
			t.Errorf("the counts differ (-live +replayed):\n%s", diff)
		}
		everywhere(ctx, t, "a recording")
		keys(ctx, t, kb.Home, " ", kb.ArrowRight, kb.ArrowRight)
		if got := ask[string](ctx, t, `document.getElementById("pause").textContent`); got != "Resume" {
			t.Errorf("after a step: got the button %q, want Resume", got)
		}
		media(ctx, t, "prefers-reduced-motion", "reduce")
		keys(ctx, t, kb.Home)
		still, err := chromedp.Run(ctx, chromedp.Evaluate[int](drawn, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		if still == 0 || still > 6 {
			t.Errorf("with reduced motion: got %d pictures in a second, want one to six", still)
		}
	})

	t.Run("what a ledger holds stays text", func(t *testing.T) { hostile(t, browser) })
}

// offline opens a file in a tab that has no network.
func offline(t *testing.T, browser context.Context, file string) context.Context {
	t.Helper()
	ctx := tab(t, browser, "file://"+file, "about:blank")
	if _, err := chromedp.Call(ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}}}); err != nil {
		t.Fatal(err)
	}
	browse(ctx, t, chromedp.Navigate("file://"+file))
	return ctx
}

// hostile opens a recording whose every string is markup.
func hostile(t *testing.T, browser context.Context) {
	t.Helper()
	const evil = `"><img src=x onerror="owned=1"></script><script>owned=1</script>`
	lane := map[string]any{"lane": 0, "setting": evil, "kind": "list", "promise": evil, "strikes": []any{map[string]any{"name": evil, "available": false, "why": evil}}}
	recording, err := json.Marshal(map[string]any{
		"show":  map[string]any{"id": evil, "scenario": evil, "lanes": []any{lane}, "startedAt": evil},
		"about": map[string]any{"scenarios": []any{map[string]any{"name": evil, "title": evil, "summary": evil}}}, "recordedAt": evil,
		"ticks": []any{map[string]any{"n": 1, "at": 10, "lanes": []any{map[string]any{
			"lane": 0, "error": evil, "guarantee": evil, "records": []any{[]any{1, "intent", 1, evil, 0, evil, nil}, []any{2, "accepted", 1, evil, 0, "", nil}},
			"processes": []any{map[string]any{"n": 50, "role": "consumer", "name": evil, "alive": true}}, "structure": map[string]any{"kind": "list", "key": evil, "length": 1},
			"strikes": []any{map[string]any{"name": evil, "state": "confirmed", "at": 1, "text": evil}}, "counts": map[string]any{"sent": 1}, "lost": []any{[]any{evil, evil}},
			"ended": map[string]any{"counts": map[string]any{}, "findings": []any{evil}},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := page.HTML(recording)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "evil.html")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := offline(t, browser, file)
	keys(ctx, t, kb.End, "m", kb.Tab, kb.Enter)
	until(ctx, t, "the story is there", `document.getElementById("story").open`)
	if got := ask[string](ctx, t, `document.querySelector("#story h2").textContent`); !strings.Contains(got, evil) {
		t.Errorf("got the head %q, want the id as it is", got)
	}
	if got := ask[string](ctx, t, `[document.scripts.length, document.images.length, typeof owned].join()`); got != "2,0,undefined" {
		t.Errorf("got %s, want two scripts, no image, and nothing owned", got)
	}
}
