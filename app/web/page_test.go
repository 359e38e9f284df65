package web

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"queuelab/app/door"
)

// browser opens a tab of a real browser on the lab's page.
func browser(t *testing.T, l *lab) context.Context {
	t.Helper()
	return tab(t, chromium(t), l)
}

// chromium starts a real browser.
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
		t.Skip("no Chromium here: install Debian's chromium to run the browser test")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.Flag("lang", "en"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses root with one
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeBrowser := chromedp.NewContext(ctx)
	t.Cleanup(closeBrowser)
	browse(ctx, t)
	return ctx
}

// tab opens another tab on the lab's page. Whatever the page throws, or wants of
// the network beyond the lab, fails the test.
func tab(t *testing.T, browser context.Context, l *lab) context.Context {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	browse(ctx, t)
	complaints(ctx, t)
	browse(ctx, t, chromedp.Navigate(l.base+"/"))
	t.Cleanup(func() {
		if t.Failed() || ctx.Err() != nil {
			return
		}
		elsewhere, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`performance.getEntriesByType("resource").map(e => e.name).filter(u => !u.startsWith(location.origin) && !u.startsWith("data:"))`))
		if err != nil || len(elsewhere) > 0 {
			t.Errorf("the page asked elsewhere: %v, %v", elsewhere, err)
		}
	})
	return ctx
}

// refused is what the browser says of an answer that is no success: the page
// says that to its reader.
var refused = regexp.MustCompile(`the server responded with a status of (4\d\d|503)`)

// complaints fails the test with what the page throws, and what the browser says
// of it, such as a breach of its policy.
func complaints(ctx context.Context, t *testing.T) {
	t.Helper()
	listening, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	messages := chromedp.Console(listening)
	wg.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if (m.Type == chromedp.ConsoleException || m.Type == chromedp.ConsoleError) && !refused.MatchString(m.Text) {
				t.Errorf("the page complains: %s: %s", m.Type, m.Text)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
}

func browse(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// ask evaluates an expression in the page.
func ask[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// becomes waits until an expression is true in the page.
func becomes(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ask[bool](ctx, t, "Boolean("+expression+")") {
			return
		}
	}
	t.Fatalf("not within 30 s: %s; the page says %q", expression, ask[string](ctx, t, "document.body.innerText"))
}

// shows waits until the element's text contains want.
func shows(ctx context.Context, t *testing.T, selector, want string) string {
	t.Helper()
	text := `(document.querySelector("` + selector + `") || {innerText: ""}).innerText`
	becomes(ctx, t, fmt.Sprintf("%s.includes(%q)", text, want))
	return ask[string](ctx, t, text)
}

// shot keeps a picture of the page where SECKILL_SHOTS names a directory.
func shot(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SECKILL_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// logIn comes in through the page's dialog, which is open.
func logIn(ctx context.Context, t *testing.T, user string) {
	t.Helper()
	becomes(ctx, t, `document.querySelector("#door").open`)
	browse(ctx, t, chromedp.SendKeys("#user", user), chromedp.Click("#door-go"))
	shows(ctx, t, "#who", user)
}

func TestTheStorefront(t *testing.T) {
	b := chromium(t)
	for _, tc := range []struct {
		name string
		test func(t *testing.T, browser context.Context)
	}{
		{"a buyer buys, pays and cancels", buysPaysAndCancels},
		{"the page says why nothing was bought", saysWhyNothingWasBought},
		{"one buys with the keyboard alone", keyboardAlone},
		{"the page speaks Chinese", speaksChinese},
		{"a hundred buyers race while one watches", hundredRace},
		{"a newcomer registers, and answers a riddle in words", newcomer},
		{"the page is for everybody", forEverybody},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, b) })
	}
}

func buysPaysAndCancels(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders", false)
	tea, pot := l.voucher(1, -time.Hour, time.Hour), l.voucher(1, -time.Hour, time.Hour)
	ctx := tab(t, browser, l)
	shows(ctx, t, "#v"+tea, "1 of 1 left")
	browse(ctx, t, chromedp.Click("#v"+tea+" .buy"))
	logIn(ctx, t, "alice") // and goes on buying
	shows(ctx, t, "#v"+tea+" .answer", "You are in")
	shows(ctx, t, "#orders", "In line")
	order := ask[string](ctx, t, `document.querySelector(".order-id").textContent.split(" ")[1]`)
	// The worker's part, in another instance.
	l.decide(order)
	shows(ctx, t, "#v"+tea+" .answer", "Yours! Order "+order)
	shows(ctx, t, "#v"+tea+" .badge", "Sold out")
	shows(ctx, t, "#v"+tea+" .buy", "You have it")
	shows(ctx, t, "#orders .status", "To be paid")
	browse(ctx, t, chromedp.Click(".order .main"))
	shows(ctx, t, "#orders .status", "Paid")
	if status, _, body := l.call("GET", "/api/orders/"+order, "", asOperator); field(t, body, "status") != "paid" {
		t.Errorf("got %d %s, want it paid", status, body)
	}

	// A second one, of another voucher, is cancelled; only the browser remembers it.
	browse(ctx, t, chromedp.WaitVisible("#v"+pot), chromedp.Click("#v"+pot+" .buy"))
	becomes(ctx, t, `document.querySelectorAll(".order").length === 2`)
	second := ask[string](ctx, t, `document.querySelector(".order-id").textContent.split(" ")[1]`)
	l.decide(second)
	browse(ctx, t, chromedp.WaitVisible(".order:first-child .actions .quiet"), chromedp.Click(".order:first-child .actions .quiet"), chromedp.WaitVisible("#sure .danger"), chromedp.Click("#sure .danger"))
	shows(ctx, t, "#orders .status", "Cancelled")
	browse(ctx, t, chromedp.Reload())
	shows(ctx, t, "#orders", "Cancelled")
	shows(ctx, t, "#orders", "Paid")
	shows(ctx, t, "#who", "alice")
	if got := ask[string](ctx, t, `[...document.querySelectorAll(".order-id")].map(e => e.textContent.split(" ")[1]).join()`); got != second+","+order {
		t.Errorf("got the orders %s, want %s before %s", got, second, order)
	}

	// What was bought already leads to that order.
	browse(ctx, t, chromedp.Click("#leave"))
	becomes(ctx, t, `document.querySelector("#mine").hidden && document.querySelectorAll(".order").length === 0`)
	status, _, body := l.buy(tea, l.login("alice"))
	if status != 409 {
		t.Errorf("got %d %s, want 409", status, body)
	}
}

func saysWhyNothingWasBought(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders?capacity=1&full=reject", false)
	gone := l.voucher(1, -time.Hour, time.Hour)
	full, mine := l.voucher(5, -time.Hour, time.Hour), l.voucher(5, -time.Hour, time.Hour)
	turns, soon := l.voucher(1, 2*time.Second, time.Hour), l.voucher(1, time.Hour, 2*time.Hour)
	past := l.voucher(1, -2*time.Hour, -time.Hour)
	ctx := tab(t, browser, l)
	browse(ctx, t, chromedp.Click("#enter"))
	logIn(ctx, t, "bob")
	click := func(v string) { ask[bool](ctx, t, `document.querySelector("#v`+v+` .buy").click() || true`) }
	card := func(v, want string) { t.Helper(); shows(ctx, t, "#v"+v, want) }

	card(past, "The sale is over")
	card(soon, "Starts in 00:5")
	if got := ask[string](ctx, t, `document.querySelector("#v`+soon+` .buy").getAttribute("aria-disabled")`); got != "true" {
		t.Errorf("got a button before the sale with aria-disabled=%s", got)
	}
	click(mine)
	card(mine, "You are in")
	// The queue has room for one order.
	click(full)
	card(full, "Very busy just now")
	card(full, "Again in 1 s")
	card(full, "You can try again now")
	if status, _, body := l.buy(mine, l.login("bob")); status != 409 {
		t.Fatalf("got %d %s", status, body)
	}
	card(turns, "Ends in")
	// Somebody is faster than the page.
	l.drain()
	if status, _, body := l.buy(gone, l.login("eve")); status != 202 {
		t.Fatalf("got %d %s", status, body)
	}
	click(gone)
	card(gone, "Sold out")

	ask[bool](ctx, t, `window.fetch = () => Promise.reject(new TypeError("no network")), true`)
	click(full)
	card(full, "you will not buy twice")
	becomes(ctx, t, `!document.querySelector("#offline").hidden`)
}

// drain empties the queue, as workers would.
func (l *lab) drain() {
	l.t.Helper()
	c, err := l.queue.Consumer(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	ds, err := c.Receive(l.t.Context(), 100)
	if err == nil {
		err = c.Ack(l.t.Context(), ds...)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func keyboardAlone(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders", false)
	l.voucher(1, -time.Hour, time.Hour)
	ctx := tab(t, browser, l)
	shows(ctx, t, ".card", "1 of 1 left")
	focused := func() string {
		return ask[string](ctx, t, `document.activeElement.id || document.activeElement.className`)
	}
	tabTo := func(want string) {
		t.Helper()
		for range 12 {
			browse(ctx, t, chromedp.KeyEvent("\t"))
			if strings.Contains(focused(), want) {
				return
			}
		}
		t.Fatalf("twelve tabs do not lead to %s, but to %s", want, focused())
	}
	browse(ctx, t, chromedp.KeyEvent("\t"))
	if got := focused(); got != "skip" {
		t.Errorf("got %s first, want the way past the header", got)
	}
	tabTo("buy")
	outline := ask[string](ctx, t, `getComputedStyle(document.activeElement).outlineStyle`)
	if outline == "none" {
		t.Error("the focus cannot be seen")
	}
	browse(ctx, t, chromedp.KeyEvent("\r"))
	becomes(ctx, t, `document.activeElement.id === "user"`)
	browse(ctx, t, chromedp.KeyEvent("a b\r"))
	shows(ctx, t, "#door-answer", "letters, digits")
	if got := focused(); got != "user" {
		t.Errorf("got the focus on %s after a mistake, want user", got)
	}
	ask[bool](ctx, t, `document.activeElement.select() || true`)
	browse(ctx, t, chromedp.KeyEvent("carol\r"))
	text := shows(ctx, t, ".answer", "You are in")
	if !strings.Contains(focused(), "buy") {
		t.Errorf("got the focus on %s after the login, want the button that asked for it (%s)", focused(), text)
	}
	l.decide(ask[string](ctx, t, `document.querySelector(".order-id").textContent.split(" ")[1]`))
	shows(ctx, t, ".answer", "Yours!")
	if got := ask[string](ctx, t, `document.querySelector(".answer").getAttribute("role")`); got != "status" {
		t.Errorf("got role %s of the answer, want status: it is to be read out", got)
	}
	tabTo("main small")
	browse(ctx, t, chromedp.KeyEvent("\r"))
	shows(ctx, t, "#orders .status", "Paid")
}

var han = regexp.MustCompile(`\p{Han}`)

func speaksChinese(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders", false)
	l.voucher(1, -time.Hour, time.Hour)
	ctx := tab(t, browser, l)
	shows(ctx, t, ".card", "1 of 1 left")
	if lacks := ask[[]string](ctx, t, `import("/storefront-text.js").then(m => m.missing())`); len(lacks) > 0 {
		t.Errorf("one language says what the other does not: %v", lacks)
	}
	browse(ctx, t, chromedp.Click(`[data-tongue="zh"]`))
	shows(ctx, t, ".card", "剩余 1 / 1 件")
	browse(ctx, t, chromedp.Reload())
	shows(ctx, t, ".card", "剩余 1 / 1 件") // remembered
	if got := ask[string](ctx, t, `document.documentElement.lang + " " + document.title`); got != "zh-CN 限时秒杀" {
		t.Errorf("got %s", got)
	}
	browse(ctx, t, chromedp.Click(".buy"))
	logIn(ctx, t, "dora")
	shows(ctx, t, ".answer", "已抢到名额")
	l.decide(ask[string](ctx, t, `document.querySelector(".order-id").textContent.split(" ")[1]`))
	shows(ctx, t, ".answer", "抢到了")
	shows(ctx, t, "#orders .status", "待付款")
	// Nothing is left in English but names, numbers and the way to English.
	text := ask[string](ctx, t, `[...document.querySelectorAll("main, header nav > :not(.tongues)")].map(e => e.innerText).join("\n")`)
	for _, line := range strings.Split(text, "\n") {
		if regexp.MustCompile(`[A-Za-z]{3,}`).MatchString(line) && !han.MatchString(line) && line != "tea" && line != "dora" {
			t.Errorf("got %q on the Chinese page", line)
		}
	}
	// What was said is said in the other language, too.
	browse(ctx, t, chromedp.Click(`[data-tongue="en"]`))
	shows(ctx, t, ".answer", "Yours!")
}

func hundredRace(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders?capacity=1000", true)
	_, _, body := l.call("POST", "/api/vouchers", offerOf(t, 40, map[string]any{"start": "signal"}), asOperator)
	v := field(t, body, "id")
	ctx := tab(t, browser, l)
	shows(ctx, t, ".card", "Opens any moment")
	l.call("POST", "/api/vouchers/"+v+"/open", "", asOperator)
	shows(ctx, t, ".answer", "is open!")
	shows(ctx, t, ".badge", "Live")
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[int]int{}
	for i := range 100 {
		wg.Go(func() {
			status, _, _ := l.buy(v, fmt.Sprintf("X-User-ID: racer-%d", i))
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	wg.Wait()
	if got[202] != 40 || got[409] != 60 {
		t.Errorf("got answers %v, want 40 of 202 and 60 of 409", got)
	}
	// The database has all of them still: only the stream knows better.
	shows(ctx, t, ".card", "0 of 40 left")
	shows(ctx, t, ".answer", "is sold out")
	shows(ctx, t, ".buy", "Sold out")
}

func newcomer(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders", false)
	keys, err := door.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	d := l.srv.o.Door
	d.Accounts, d.Passwords = l.store, door.NewPasswords()
	d.Paths = &door.Paths{Keys: keys, TTL: time.Minute}
	d.Captcha = &door.Captcha{When: door.Always, Keys: keys, Once: &door.LocalOnce{}, TTL: time.Minute}
	l.voucher(1, -time.Hour, time.Hour)
	ctx := tab(t, browser, l)
	shows(ctx, t, ".card", "1 of 1 left")
	browse(ctx, t, chromedp.Click(".buy"), chromedp.WaitVisible("#door-other"), chromedp.Click("#door-other"))
	shows(ctx, t, "#door-title", "Make an account")
	shot(ctx, t, "register")
	browse(ctx, t, chromedp.SendKeys("#user", "erin"), chromedp.SendKeys("#password", "short"), chromedp.Click("#door-go"))
	shows(ctx, t, "#door-answer", "at least 8")
	browse(ctx, t, chromedp.SendKeys("#password", "-but longer now"), chromedp.Click("#door-go"))
	becomes(ctx, t, `document.querySelector("#riddle").open && document.querySelector("#riddle-image").naturalWidth > 0`)
	shot(ctx, t, "riddle")
	browse(ctx, t, chromedp.SendKeys("#riddle-answer", "wrong"), chromedp.Click("#riddle .main"))
	shows(ctx, t, "#riddle-trouble", "Here is another one")
	browse(ctx, t, chromedp.Click("#riddle-other"))
	shows(ctx, t, "#riddle-question", "+")
	var a, b int
	if _, err := fmt.Sscanf(ask[string](ctx, t, `document.querySelector("#riddle-question").textContent`), "%d + %d", &a, &b); err != nil {
		t.Fatal(err)
	}
	browse(ctx, t, chromedp.SendKeys("#riddle-answer", fmt.Sprint(a+b)+"\r"))
	shows(ctx, t, ".answer", "You are in")

	// The same account again, with a wrong password first.
	browse(ctx, t, chromedp.Click("#leave"), chromedp.Click("#enter"), chromedp.WaitVisible("#user"))
	browse(ctx, t, chromedp.Click("#door-other")) // registering was the last that was wanted
	ask[bool](ctx, t, `document.querySelector("#user").value = "", document.querySelector("#password").value = "", true`)
	browse(ctx, t, chromedp.SendKeys("#user", "erin"), chromedp.SendKeys("#password", "not the password"), chromedp.Click("#door-go"))
	shows(ctx, t, "#door-answer", "wrong")
	ask[bool](ctx, t, `document.querySelector("#password").value = "", true`)
	browse(ctx, t, chromedp.SendKeys("#password", "short-but longer now"), chromedp.Click("#door-go"))
	shows(ctx, t, "#who", "erin")
	shows(ctx, t, "#orders", "In line")
}

// audit is what a machine can say of a page's accessibility: names, labels, ids,
// languages, sizes, and whether words can be told from what is behind them.
const audit = `(() => {
  const wrong = [], seen = e => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push("two elements have the id " + id);
  if (!document.documentElement.lang) wrong.push("the page has no language");
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  for (const a of ["aria-labelledby", "aria-describedby"]) for (const e of document.querySelectorAll("[" + a + "]"))
    for (const id of e.getAttribute(a).split(/\s+/)) if (!document.getElementById(id)) wrong.push(a + " names " + id + ", which is not there");
  for (const e of document.querySelectorAll("button, a, dialog, [role=group], progress")) {
    const by = e.getAttribute("aria-labelledby"), name = e.getAttribute("aria-label") || (by && document.getElementById(by)?.textContent) || e.textContent;
    if (seen(e) && !name.trim()) wrong.push("no name: " + e.outerHTML.slice(0, 80));
  }
  for (const e of document.querySelectorAll("input")) if (!e.labels.length || !e.labels[0].textContent.trim()) wrong.push("no label: " + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll("img")) if (seen(e) && !e.alt) wrong.push("no text for " + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll("button, input")) {
    const r = e.getBoundingClientRect();
    if (seen(e) && (r.width < 24 || r.height < 24)) wrong.push("too small to hit: " + e.outerHTML.slice(0, 80));
  }
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (layers) => {
    paint.clearRect(0, 0, 1, 1);
    for (const c of layers) { paint.fillStyle = c; paint.fillRect(0, 0, 1, 1); }
    return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  };
  const light = ([r, g, b]) => .2126 * r + .7152 * g + .0722 * b;
  for (const e of document.querySelectorAll("body *")) {
    if (!seen(e) || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const behind = [];
    for (let p = e; p; p = p.parentElement) behind.unshift(getComputedStyle(p).backgroundColor);
    const ground = light(over(behind)), words = light(over([...behind, getComputedStyle(e).color]));
    const ratio = (Math.max(ground, words) + .05) / (Math.min(ground, words) + .05);
    if (ratio < 4.5) wrong.push("contrast " + ratio.toFixed(2) + ": " + e.outerHTML.slice(0, 100));
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("wider than the screen: " + document.documentElement.scrollWidth + " of " + innerWidth);
  return wrong;
})()`

// wantAccessible audits the page in both schemes, on a phone and on a desk.
func wantAccessible(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1440} {
			browse(ctx, t, chromedp.EmulateViewport(width, 800), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
				_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
				return err
			}))
			for _, wrong := range ask[[]string](ctx, t, audit) {
				t.Errorf("%s, %s, %d px: %s", name, scheme, width, wrong)
			}
			shot(ctx, t, fmt.Sprintf("%s-%s-%d", name, scheme, width))
		}
	}
}

func forEverybody(t *testing.T, browser context.Context) {
	l := newLab(t, "memory://orders", false)
	titles := []string{"Longjing tea, 250 g", "A pot of cast iron, for a whole family and its guests, made in a village near Yixing", "手冲咖啡壶", "Tickets", "Umbrella", "Old stock"}
	for i, more := range []map[string]any{
		{"stock": 100, "payValue": 1990, "actualValue": 4900},
		{"stock": 1, "payValue": 123456, "actualValue": 234567, "perUser": 3, "payWithinSeconds": 900},
		{"start": "signal", "payValue": 9900, "actualValue": 12900},
		{"beginTime": time.Now().Add(49 * time.Hour).Format(time.RFC3339), "endTime": time.Now().Add(50 * time.Hour).Format(time.RFC3339)},
		{"stock": 1, "payValue": 0, "actualValue": 0},
		{"endTime": time.Now().Add(-time.Minute).Format(time.RFC3339)},
	} {
		more["title"] = titles[i]
		if status, _, body := l.call("POST", "/api/vouchers", offerOf(t, 20, more), asOperator); status != 201 {
			t.Fatalf("got %d %s", status, body)
		}
	}
	ctx := tab(t, browser, l)
	becomes(ctx, t, `document.querySelectorAll(".card").length === 6`)
	wantAccessible(ctx, t, "visitor")
	browse(ctx, t, chromedp.Click("#enter"))
	becomes(ctx, t, `document.querySelector("#door").open`)
	wantAccessible(ctx, t, "dialog")
	logIn(ctx, t, "a-buyer-with-a-rather-long-name@example.org")
	for _, title := range []string{titles[0], titles[1], titles[4]} {
		ask[bool](ctx, t, fmt.Sprintf(`[...document.querySelectorAll(".card")].find(c => c.textContent.includes(%q)).querySelector(".buy").click() || true`, title))
	}
	becomes(ctx, t, `document.querySelectorAll(".order").length === 3`)
	for _, o := range ask[[]string](ctx, t, `[...document.querySelectorAll(".order-id")].map(e => e.textContent.split(" ")[1]).slice(1)`) {
		l.decide(o)
	}
	becomes(ctx, t, `document.querySelectorAll(".order [data-status=confirmed]").length === 2`)
	wantAccessible(ctx, t, "buyer")
	browse(ctx, t, chromedp.Click(`[data-tongue="zh"]`))
	wantAccessible(ctx, t, "buyer-zh")
}

func TestThePageIsServedWithoutTheNetwork(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for _, path := range []string{"/", "/storefront.css", "/storefront.js", "/storefront-net.js", "/storefront-text.js", "/storefront-ask.js", "/storefront-memory.js"} {
		status, h, body := l.call("GET", path, "")
		if status != 200 || path == "/" && (!strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(body, "<title>")) {
			t.Errorf("%s: got %d %s", path, status, h.Get("Content-Type"))
		}
		if strings.Contains(body, "http://") || strings.Contains(body, "https://") {
			t.Errorf("%s may load something from elsewhere", path)
		}
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: got the policy %q", path, csp)
		}
		if status, _, body := l.call("GET", path, "", "If-None-Match: "+h.Get("ETag")); status != http.StatusNotModified || body != "" {
			t.Errorf("%s: got %d for the same ETag, want 304", path, status)
		}
	}
}
