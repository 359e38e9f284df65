package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"queuelab/app/console"
	"queuelab/app/fleet"
	"queuelab/app/reconcile"
	"queuelab/app/sale"
	"queuelab/app/worker"
	"queuelab/queue"
)

// picture is of a lab's own parts.
func picture(l *lab) *console.Reader {
	backlog, _ := l.queue.(queue.Backlogger)
	return &console.Reader{Store: l.store, Gate: l.gate.(reconcile.Gate), Backlog: backlog, Queue: "memory://orders", QueueUsed: true,
		Instance: 3, Log: slog.New(slog.DiscardHandler)}
}

// run runs a part of the service until the test ends.
func (l *lab) run(part func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { part(ctx) })
	l.t.Cleanup(func() { cancel(); wg.Wait() })
}

// work decides what is queued.
func (l *lab) work() {
	l.t.Helper()
	c, err := l.queue.Consumer(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	w := &worker.Worker{Store: l.store, Gate: l.gate, Results: l.srv.o.Service.Results, Observer: sale.Unobserved{}, Log: slog.New(slog.DiscardHandler),
		Lanes: 1, Batch: 8, MaxAttempts: 3, Drain: time.Second}
	l.t.Cleanup(func() { _ = c.Close() })
	l.run(func(ctx context.Context) {
		if err := w.Run(ctx, c, l.queue.Capabilities()); err != nil {
			l.t.Error(err)
		}
	})
}

// lives has an instance say how it is until the test ends.
func (l *lab) lives(i fleet.Instance, failing ...string) {
	l.t.Helper()
	now := time.Now()
	if _, err := l.store.AcquireWorker(l.t.Context(), i.Number, i.Holder, now, now.Add(time.Hour)); err != nil {
		l.t.Fatal(err)
	}
	p := &fleet.Pulse{Store: l.store, Self: i, Ready: map[string]func(context.Context) error{}, Log: slog.New(slog.DiscardHandler)}
	for _, part := range failing {
		p.Ready[part] = func(context.Context) error { return errors.New("it is down") }
	}
	l.run(p.Run)
}

func TestOnlyAnOperatorSeesTheConsoleAndKills(t *testing.T) {
	l := newLab(t, "memory://orders", false)
	for _, auth := range []string{l.login("alice"), asOperator + "x", "X: y"} {
		for _, r := range [][2]string{{"GET", "/api/operator/state"}, {"POST", "/api/operator/kill"}} {
			if status, _, body := l.call(r[0], r[1], "", auth); status != http.StatusUnauthorized && status != http.StatusForbidden {
				t.Errorf("%s with %s: got %d %s, want a refusal", r[1], auth, status, body)
			}
		}
	}
	l.want("POST", "/api/operator/kill", "", asOperator, http.StatusForbidden, "forbidden")
	var state console.State
	status, h, body := l.call("GET", "/api/operator/state", "", asOperator)
	if err := json.Unmarshal([]byte(body), &state); err != nil || status != 200 || state.Instance != 3 || h.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %s, %v", status, body, err)
	}
	for _, list := range []string{`"failed":[]`, `"vouchers":[]`, `"instances":[]`} {
		if !strings.Contains(body, list) {
			t.Errorf("got %s, want %s: nothing is not unknown", body, list)
		}
	}

	l.srv.o.Kill = func() (int, error) { return 0, errors.New("no worker runs") }
	l.want("POST", "/api/operator/kill", "", asOperator, http.StatusConflict, "wrong_state")
	l.srv.o.Kill = func() (int, error) { return 42, nil }
	if status, _, body := l.call("POST", "/api/operator/kill", "", asOperator); status != 200 || body != `{"pid":42}` {
		t.Errorf("got %d %s, want the process", status, body)
	}
}

func TestTheConsoleComesFromHereAndOnlyWhenItChanged(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for path, kind := range map[string]string{"/operator": "text/html", "/operator/console.js": "text/javascript", "/operator/console-words.js": "text/javascript",
		"/operator/console.css": "text/css"} {
		status, h, body := l.call("GET", path, "")
		if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) || strings.Contains(body, "http://") || strings.Contains(body, "https://") {
			t.Errorf("%s: got %d %s, want %s without addresses of others", path, status, h.Get("Content-Type"), kind)
		}
		if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: got policy %q", path, p)
		}
		if status, _, body := l.call("GET", path, "", "If-None-Match: "+h.Get("ETag")); status != http.StatusNotModified || body != "" {
			t.Errorf("%s: got %d %q with its own ETag, want 304", path, status, body)
		}
	}
}

// consoleTab opens the operator's page, and fails the test if that throws.
func consoleTab(t *testing.T, l *lab) context.Context {
	t.Helper()
	ctx := browser(t, l)
	thrown := make(chan string, 8)
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			select {
			case thrown <- fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception):
			default:
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case text := <-thrown:
			t.Errorf("the page threw: %s", text)
		default:
		}
	})
	browse(ctx, t, chromedp.Navigate(l.base+"/operator"))
	return ctx
}

// says waits until a script has this value.
func says(ctx context.Context, t *testing.T, js, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		if got, err = chromedp.Run(ctx, chromedp.Evaluate[string]("String("+js+")")); err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		if got == want {
			return
		}
	}
	t.Fatalf("%s: got %q, want %q", js, got, want)
}

// signIn signs in as the operator, by the keyboard alone: the page begins in the
// field for the token.
func signIn(ctx context.Context, t *testing.T) {
	t.Helper()
	browse(ctx, t, chromedp.KeyEvent(operator+"\r"))
	says(ctx, t, `document.body.className`, "in")
	shows(ctx, t, "#live", "Live")
}

const ns = `[...document.querySelectorAll("#total .n")].map(e => e.innerText).join(" ")`

func TestTheOperatorSellsAVoucherAndSeesItSell(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	l.srv.o.Service.Tallies = &sale.Tallies{}
	l.run(func(ctx context.Context) {
		l.srv.o.Service.Tallies.Run(ctx, l.store, "h", slog.New(slog.DiscardHandler))
	})
	l.work()
	l.lives(fleet.Instance{Number: 3, Holder: "a", Name: "shop-1", Role: "web"})
	l.lives(fleet.Instance{Number: 4, Holder: "b", Name: "shop-2", Role: "worker"}, "admission")
	ctx := consoleTab(t, l)

	token := strings.TrimPrefix(l.login("alice"), "Authorization: Bearer ")
	browse(ctx, t, chromedp.SendKeys("#secret", token), chromedp.Click("#signin-form .primary"))
	shows(ctx, t, "#signin-error", "no operator's token")
	browse(ctx, t, chromedp.Navigate(l.base+"/operator"))
	signIn(ctx, t)
	shows(ctx, t, "#no-vouchers", "There are no vouchers yet")
	says(ctx, t, ns, "0 0 0 0 0")
	says(ctx, t, `[...document.querySelectorAll("#instance-list tr")].map(r => r.cells[0].innerText.split("\n")[0] + ": " + r.cells[1].innerText).join("; ")`,
		"shop-1: Ready; shop-2: Not ready: no answer from the gate")

	browse(ctx, t, chromedp.Click("#new"), chromedp.SetValue("#f-stock", "0"), chromedp.SetValue("#f-payValue", "1.234"), chromedp.Click("#create-form .primary"))
	says(ctx, t, `[...document.querySelectorAll("#create-form [aria-invalid]")].map(e => e.id + " " + document.getElementById(e.getAttribute("aria-describedby")).innerText).join("; ")`,
		"f-title Give it a title of at most 200 characters.; f-stock Want a whole number from 1 to 10000000.; f-payValue Want an amount such as 9.90, at most 1000000000.")
	browse(ctx, t, chromedp.SendKeys("#f-title", "Moon <b>cakes</b>"), chromedp.SetValue("#f-stock", "3"), chromedp.SetValue("#f-payValue", "9.90"), chromedp.Click("#create-form .primary"))
	shows(ctx, t, "#voucher-list h3", "Moon <b>cakes</b>")
	shows(ctx, t, "#voucher-list .chip", "Open")

	vs, err := l.store.Vouchers(t.Context(), time.Time{}, 1)
	if err != nil || len(vs) != 1 || vs[0].PayValue != 990 {
		t.Fatalf("got %+v, %v", vs, err)
	}
	var order string
	for i := range 5 {
		if status, _, body := l.buy(vs[0].ID.String(), fmt.Sprintf("X-User-ID: u%d", i)); status == 202 && i == 0 {
			order = field(t, body, "orderId")
		}
	}
	l.buy(vs[0].ID.String(), "X-User-ID: u0")
	says(ctx, t, ns, "6 3 3 3 0")
	shows(ctx, t, "#refused", "2 sold out · 1 bought already · 0 busy")
	shows(ctx, t, "#voucher-list .chip", "Sold out")
	shows(ctx, t, "#voucher-list .verdict", "Balanced")
	shows(ctx, t, "#voucher-list .ledger", "stock 3 = 0 left + 3 held")
	// What half of is unknown is not shown as good.
	says(ctx, t, `(showVoucher([...cards.values()][0], {...state.vouchers[0], gate: null}), document.querySelector("#voucher-list .verdict .chip").className + " " + document.querySelector("#voucher-list .verdict").textContent)`,
		"chip  Unknown whether balanced")
	says(ctx, t, `(drift = {...drift, at: new Date().toISOString(), drift: [], failed: true}, showDrift(), document.querySelector("#drift-count .chip").className + " " + document.getElementById("drift-count").textContent)`,
		"chip  at least 0")
	shows(ctx, t, "#inflight", "0")
	if status, _, body := l.call("POST", "/api/orders/"+order+"/pay", `{"paymentId":"p1","cents":990}`, asOperator); status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	says(ctx, t, ns, "6 3 3 3 1")

	browse(ctx, t, chromedp.Click("#signout"))
	says(ctx, t, `sessionStorage.length + " " + document.getElementById("vouchers").checkVisibility()`, "0 false")
}

func TestTheOperatorReplaysADeadLetterAndSeesItDecided(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	l.work()
	id, err := sale.ParseID(l.voucher(3, -time.Hour, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	// What no attempt could decide, when the last worker was another version.
	for n, user := range []string{"alice", "bob"} {
		r := sale.Reservation{OrderID: sale.ID(n + 1), VoucherID: id, UserID: user, AtMillis: time.Now().UnixMilli()}
		if v, _, err := l.gate.Admit(t.Context(), r); err != nil || v != sale.Admitted {
			t.Fatalf("got %v, %v", v, err)
		}
		if err := l.store.DeadLetter(t.Context(), r.OrderID.String(), r.Encode(), "<i>panic</i> while deciding"); err != nil {
			t.Fatal(err)
		}
	}
	ctx := consoleTab(t, l)
	signIn(ctx, t)
	shows(ctx, t, "#open-letters", "2")
	shows(ctx, t, "#inflight", "2")
	shows(ctx, t, "#letter-list", "<i>panic</i> while deciding")
	// By the keyboard.
	browse(ctx, t, chromedp.Focus(`[data-act="replay 1"]`), chromedp.KeyEvent("\r"))
	shows(ctx, t, "#notice", "Message 1 was published again.")
	shows(ctx, t, "#open-letters", "1")
	shows(ctx, t, "#inflight", "1")
	browse(ctx, t, chromedp.SetValue("#letter-state", "replayed"))
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](`document.getElementById("letter-state").dispatchEvent(new Event("change", {bubbles: true}))`)); err != nil {
		t.Fatal(err)
	}
	shows(ctx, t, "#letter-list", "order 1: confirmed")
	shows(ctx, t, "#voucher-list .ledger", "stock 3 = 2 left + 1 held")

	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](`(e => { e.value = "open"; e.dispatchEvent(new Event("change", {bubbles: true})) })(document.getElementById("letter-state"))`)); err != nil {
		t.Fatal(err)
	}
	says(ctx, t, `document.querySelector("#letter-list code").innerText`, "2")
	browse(ctx, t, chromedp.Focus(`[data-act="discard 2"]`), chromedp.KeyEvent("\r"))
	shows(ctx, t, "#ask", "Discard message 2?")
	browse(ctx, t, chromedp.Click("#ask-yes"))
	shows(ctx, t, "#notice", "Message 2 was discarded.")
	shows(ctx, t, "#open-letters", "0")
	if os, err := l.store.Orders(t.Context(), 1, 2); err != nil || len(os) != 2 {
		t.Errorf("got %+v, %v, want both decided", os, err)
	}
}

// nameless lists what a screen reader could not name.
const nameless = `[...document.querySelectorAll("button, input, select, a, section, nav, dialog, article")].filter(e => e.checkVisibility() &&
	!(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby") && !e.textContent.trim()).map(e => e.outerHTML.slice(0, 60)).join("; ")`

// untranslated lists words of one language that the other lacks.
const untranslated = `Object.keys(en).filter(k => !zh[k]).concat(Object.keys(zh).filter(k => !en[k])).join(" ")`

// pale lists pairs of colours that one cannot read.
const pale = `(() => {
	const style = getComputedStyle(document.documentElement), ctx = document.createElement("canvas").getContext("2d");
	const light = name => {
		ctx.fillStyle = style.getPropertyValue("--" + name).trim();
		const n = parseInt(ctx.fillStyle.slice(1), 16);
		const [r, g, b] = [n >> 16, n >> 8 & 255, n & 255].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	return ["ink page", "ink card", "ink track", "soft page", "soft card", "soft track", "accent page", "accent card", "on-accent accent", "good good-bg", "warn warn-bg", "bad bad-bg", "bad card", "on-bad bad"]
		.filter(pair => { const [a, b] = pair.split(" ").map(light); return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5; }).join("; ")
})()`

func TestTheConsoleIsRightOnEveryScreenInBothLanguagesLightAndDark(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	l.srv.o.Service.Tallies = &sale.Tallies{}
	l.run(func(ctx context.Context) {
		l.srv.o.Service.Tallies.Run(ctx, l.store, "h", slog.New(slog.DiscardHandler))
	})
	l.srv.o.Console.Lab = true
	v := l.voucher(100, -time.Hour, time.Hour)
	l.voucher(5, time.Hour, 2*time.Hour)
	for i := range 7 {
		l.buy(v, fmt.Sprintf("X-User-ID: u%d", i))
	}
	if err := l.store.DeadLetter(t.Context(), strings.Repeat("9", 200), []byte(strings.Repeat("x", 300)), strings.Repeat("cause ", 30)); err != nil {
		t.Fatal(err)
	}
	l.lives(fleet.Instance{Number: 3, Holder: "a", Name: "shop-7f9c6d5b8-x2x4z-1", Role: "web", Version: "v1.2.3 0123456789ab", Queue: "redis+streams://127.0.0.1:6379/0?claim=30s&queue=orders"})
	l.lives(fleet.Instance{Number: 4, Holder: "b", Name: "shop-2", Role: "worker"}, "admission", "database", "queue")
	// The database is changed behind everybody's back.
	id, err := sale.ParseID(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.store.CreateVoucher(t.Context(), sale.Voucher{ID: id + 1<<40, Title: "茶 " + strings.Repeat("长", 100), Stock: 9, Left: 4,
		PerUser: 1, Begin: time.Now(), End: time.Now().Add(time.Hour), Created: time.Now(), Signal: true}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.reconcile.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx := consoleTab(t, l)
	says(ctx, t, untranslated, "")
	signIn(ctx, t)
	shows(ctx, t, "#drift-list", "Left and held are not the stock")
	shows(ctx, t, "#total", "7")
	for _, width := range []int64{360, 1440} {
		browse(ctx, t, chromedp.EmulateViewport(width, 900))
		for _, lang := range []string{"en", "zh-CN"} {
			if got, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.documentElement.lang`)); err != nil || got != lang {
				browse(ctx, t, chromedp.Click("#lang"))
			}
			says(ctx, t, `document.documentElement.lang`, lang)
			says(ctx, t, nameless, "")
			if lang == "en" {
				shows(ctx, t, "#drift-list", "4 left and 0 held are not the stock of 9")
			} else {
				shows(ctx, t, "#drift-list", "剩余 4 加已占 0 不等于库存 9")
				shows(ctx, t, "#voucher-list", "剩余 4 加已占 0 不等于库存 9")
				shows(ctx, t, "#letter-list", "消息无法读取")
				says(ctx, t, `document.querySelectorAll("#drift-list [lang=en], #voucher-list [lang=en]").length`, "0")
			}
			for _, look := range []string{"light", "dark"} {
				if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look}}}); err != nil {
					t.Fatal(err)
				}
				says(ctx, t, pale, "")
				says(ctx, t, `document.documentElement.scrollWidth <= innerWidth`, "true")
				picturePage(ctx, t, fmt.Sprintf("console-%d-%s-%s", width, lang, look))
			}
			browse(ctx, t, chromedp.Click("#new"))
			says(ctx, t, `[...document.querySelectorAll("#create, #create *")].every(e => e.getBoundingClientRect().right <= innerWidth)`, "true")
			picturePage(ctx, t, fmt.Sprintf("create-%d-%s", width, lang))
			browse(ctx, t, chromedp.Click("#create-cancel"))
		}
	}
}

// picturePage writes a picture of the page for people, where they asked for it.
func picturePage(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("QUEUELAB_SCREENSHOTS")
	if folder == "" {
		return
	}
	taken, err := chromedp.Call(ctx, protocol.CaptureScreenshot, protocol.CaptureScreenshotParams{Format: "png", CaptureBeyondViewport: new(!strings.HasPrefix(name, "create"))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), taken.Data, 0o644); err != nil {
		t.Fatal(err)
	}
}
