package report

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"queuelab/bench/trial"
)

// cutOff lists the words of pictures that reach beyond their picture, or lie
// upon others.
const cutOff = `[...document.querySelectorAll("svg")].flatMap(svg => {
	const box = svg.getBoundingClientRect();
	return [...svg.querySelectorAll("text")].filter(text => {
		const b = text.getBoundingClientRect();
		return b.width > 0 && (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1);
	}).map(text => svg.id + ": " + text.textContent);
}).join("; ")`

// upon lists pairs of words in one picture that overlap.
const upon = `[...document.querySelectorAll("svg")].flatMap(svg => {
	const texts = [...svg.querySelectorAll("text")].map(t => [t, t.getBoundingClientRect()]).filter(([, b]) => b.width > 0);
	return texts.flatMap(([t, a], i) => texts.slice(i + 1).filter(([, b]) =>
		Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5).map(([o]) => svg.id + ": " + t.textContent + " | " + o.textContent));
}).join("; ")`

// wide lists elements outside of scrolling ones that stick out to the right.
const wide = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll") && !e.closest("pre") && e.offsetParent !== null).slice(0, 5).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60)).join("; ")`

func scheme(ctx context.Context, t *testing.T, value string) {
	t.Helper()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}}); err != nil {
		t.Fatal(err)
	}
}

func TestThePageIsRightOnEveryScreenInBothLanguagesLightAndDark(t *testing.T) {
	for name, result := range map[string]trial.Result{"full": sampleFull(), "old": sample(), "hostile": hostile()} {
		t.Run(name, func(t *testing.T) {
			ctx, shot := browse(t, result)
			for _, width := range []int64{360, 1440} {
				do(ctx, t, chromedp.EmulateViewport(width, 900))
				for _, lang := range []string{"en", "zh-Hans"} {
					if ask[string](ctx, t, `document.documentElement.lang`) != lang {
						do(ctx, t, chromedp.Click("#lang"))
					}
					if got := ask[string](ctx, t, `document.documentElement.lang`); got != lang {
						t.Fatalf("got the language %s, want %s", got, lang)
					}
					for _, look := range []string{"light", "dark"} {
						scheme(ctx, t, look)
						at := fmt.Sprintf("%d %s %s", width, lang, look)
						if over := ask[int](ctx, t, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
							t.Errorf("%s: got a page %d px too wide: %s", at, over, ask[string](ctx, t, wide))
						}
						if cut := ask[string](ctx, t, cutOff); cut != "" {
							t.Errorf("%s: got words cut off: %s", at, cut)
						}
						if name != "hostile" {
							if both := ask[string](ctx, t, upon); both != "" {
								t.Errorf("%s: got words upon each other: %s", at, both)
							}
							shot(fmt.Sprintf("%s-%d-%s-%s", name, width, lang, look))
						}
					}
				}
			}
		})
	}
}

func TestTheSwitchesAreKeptInTheAddress(t *testing.T) {
	ctx, _ := browse(t, sampleFull())
	if got := ask[string](ctx, t, `document.querySelector("#verdict h2").innerText`); got != "The verdict" {
		t.Errorf("got %q, want the English head", got)
	}
	do(ctx, t, chromedp.Click("#lang"), chromedp.Click("#theme"))
	address := ask[string](ctx, t, `location.href`)
	if !strings.Contains(address, "lang=zh") || !strings.Contains(address, "theme=dark") {
		t.Errorf("got the address %s, want the language and the theme in it", address)
	}
	ask[any](ctx, t, `localStorage.clear()`)
	do(ctx, t, chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	for js, want := range map[string]string{
		`document.querySelector("#verdict h2").innerText`:                                        "结论",
		`document.title.slice(0, 4)`:                                                             "队列报告",
		`document.documentElement.dataset.theme`:                                                 "dark",
		`document.getElementById("find").placeholder.slice(0, 5)`:                                "redis",
		`document.querySelector("nav").getAttribute("aria-label")`:                               "章节",
		`document.querySelector("svg title").textContent.slice(0, 3)`:                            "端到端",
		`String([...document.querySelectorAll(".en")].some(e => e.getClientRects().length > 0))`: "false",
	} {
		if got := ask[string](ctx, t, js); got != want {
			t.Errorf("%s: got %q, want %q", js, got, want)
		}
	}
	do(ctx, t, chromedp.Click("#lang"))
	for js, want := range map[string]string{
		`document.querySelector("nav").getAttribute("aria-label")`:                               "Sections",
		`document.querySelector("svg title").textContent.slice(0, 10)`:                           "End-to-end",
		`String([...document.querySelectorAll(".zh")].some(e => e.getClientRects().length > 0))`: "false",
	} {
		if got := ask[string](ctx, t, js); got != want {
			t.Errorf("%s: got %q, want %q", js, got, want)
		}
	}
}

func TestEachPictureCanBeSavedInTheThemeAndLanguageOfTheMoment(t *testing.T) {
	ctx, _ := browse(t, sampleFull())
	ask[any](ctx, t, `window.saved = []; URL.createObjectURL = b => (saved.push(b), "data:,"); HTMLAnchorElement.prototype.click = () => {}`)
	svg := func() string {
		t.Helper()
		ask[any](ctx, t, `saved.length = 0; document.querySelector('[data-save="svg"]').click()`)
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`saved[0].text()`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	scheme(ctx, t, "light")
	light := svg()
	scheme(ctx, t, "dark")
	dark := svg()
	do(ctx, t, chromedp.Click("#lang"))
	chinese := svg()
	if light == dark {
		t.Error("got the same picture in light and dark")
	}
	if !strings.Contains(light, "share of the messages") || strings.Contains(light, "消息比例") {
		t.Error("got no English words, or Chinese ones, in the English picture")
	}
	if !strings.Contains(chinese, "消息比例") || strings.Contains(chinese, "share of the messages") {
		t.Error("got no Chinese words, or English ones, in the Chinese picture")
	}
	for _, no := range []string{"var(", "light-dark(", "class=", "<script"} {
		if strings.Contains(light, no) {
			t.Errorf("got %s in a file that stands alone", no)
		}
	}
	const png = `(async () => {
		saved.length = 0;
		const buttons = ["curves", "latency", "rates", "throughput", "scaling", "sale"].map(kind => document.querySelector('[data-save="png"][data-of^="chart-' + kind + '"]'));
		const sizes = [];
		for (const button of buttons) {
			button.click();
			const until = Date.now() + 20000;
			while (saved.length <= sizes.length && Date.now() < until) await new Promise(done => setTimeout(done, 5));
			const bitmap = await createImageBitmap(saved[sizes.length]);
			const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
			const paper = canvas.getContext("2d");
			paper.drawImage(bitmap, 0, 0);
			const data = paper.getImageData(0, 0, bitmap.width, bitmap.height).data;
			const colours = new Set();
			for (let i = 0; i < data.length; i += 28) colours.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
			sizes.push(bitmap.width >= 1520 && bitmap.height > 100 && colours.size > 20 ? "" : button.dataset.of + " " + bitmap.width + "x" + bitmap.height + " " + colours.size);
		}
		return sizes.length + ":" + sizes.filter(Boolean).join(", ");
	})()`
	got, err := chromedp.Run(ctx, chromedp.Evaluate[string](png, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if n, bad, _ := strings.Cut(got, ":"); n != "6" || bad != "" {
		t.Errorf("got %s pictures, want 6; empty or too small: %s", n, bad)
	}
}

func TestInPrintEverythingIsOpenAndNoSwitchIsLeft(t *testing.T) {
	ctx, shot := browse(t, sampleFull())
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	for js, want := range map[string]bool{
		`[...document.querySelectorAll("details.cell dl")].every(e => e.getClientRects().length > 0 && e.checkVisibility({ contentVisibilityAuto: true }))`: true,
		`[...document.querySelectorAll(".switches, .tools, nav, .save, details.json")].some(e => e.getClientRects().length > 0)`:                            false,
		`matchMedia("print").matches`: true,
	} {
		if got := ask[bool](ctx, t, js); got != want {
			t.Errorf("%s: got %v, want %v", js, got, want)
		}
	}
	shot("print")
}
