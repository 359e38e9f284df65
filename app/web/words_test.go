package web

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"queuelab/app/reconcile"
	"queuelab/app/sale"
)

// factsOf is how many facts there are beside a code.
var factsOf = map[string]int{
	"oversold": 2, "unit_sold_twice": 2, "stock_sum_differs": 3, "databases_differ": 2, "gate_not_loaded": 0, "gate_unreadable": 1, "units_differ": 2, "stock_differs": 3,
	"order_without_buyer": 1, "closed_order_still_holds": 2, "buyer_without_order_or_mark": 1, "mark_without_buyer": 0, "mark_of_decided_order": 1,
	"mark_unreadable": 0, "order_waits": 2, "buyers_differ": 2,
	"asked_to_load": 0, "held": 1, "gave_back": 1, "to_be_found": 0, "republished": 0, "levelled": 1, "units_set": 2, "dropped": 1, "not_done": 1,
}

func TestTheConsoleHasWordsForEveryCodeInBothLanguages(t *testing.T) {
	b, err := consoleFiles.ReadFile("pages/console-words.js")
	if err != nil {
		t.Fatal(err)
	}
	words, said, ok := strings.Cut(string(b), "const zhSaid")
	if !ok {
		t.Fatal("got no table of what the server says")
	}
	for _, k := range reconcile.Kinds() {
		if n := strings.Count(words, " d_"+string(k)+": "); n != 2 {
			t.Errorf("kind %s has a name in %d languages, want 2", k, n)
		}
	}
	for _, c := range []sale.LetterCode{sale.Unreadable, sale.Undecided} {
		if n := strings.Count(words, " l_"+string(c)+": "); n != 2 {
			t.Errorf("a letter's code %s has words in %d languages, want 2", c, n)
		}
	}
	codes := []string{string(reconcile.Uneven)}
	for _, k := range reconcile.Kinds() {
		codes = append(codes, string(k))
	}
	for _, s := range reconcile.Steps() {
		codes = append(codes, string(s))
	}
	for _, code := range codes {
		n, known := factsOf[code]
		found := regexp.MustCompile(`[ {]` + code + `: "([^"]*)"`).FindStringSubmatch(said)
		if !known || found == nil {
			t.Errorf("code %s: got no words for what the server says, or it is not known how many facts it has", code)
			continue
		}
		for i := range n + 1 {
			if has := strings.Contains(found[1], fmt.Sprintf("{%d}", i)); has != (i < n) {
				t.Errorf("code %s: got %q, want all of its %d facts in it and no more", code, found[1], n)
			}
		}
	}
	// What is wrong with a ledger says what it says with as many facts.
	a := reconcile.Account{Ledger: sale.Ledger{Voucher: sale.Voucher{Stock: 1, Left: 1}, Confirmed: 3, Units: 2},
		Gate: &sale.Book{Loaded: true, Units: 1, Left: 1, Buyers: 1}, Quiet: true}
	faults := a.Faults()
	if len(faults) != 5 {
		t.Errorf("got %v, want five faults", faults)
	}
	for _, f := range faults {
		if len(f.Facts) != factsOf[string(f.Kind)] {
			t.Errorf("%s: got facts %q, want %d", f.Kind, f.Facts, factsOf[string(f.Kind)])
		}
	}
}

func TestBuyersReadWhyTheirOrderIsOverInBothLanguages(t *testing.T) {
	b, err := storefrontFiles.ReadFile("pages/storefront-text.js")
	if err != nil {
		t.Fatal(err)
	}
	en, zh, ok := strings.Cut(string(b), "  zh: {")
	if !ok {
		t.Fatal("got no Chinese words")
	}
	for _, reason := range sale.Reasons() {
		for language, words := range map[string]string{"English": en, "Chinese": zh} {
			if !strings.Contains(words, " why_"+reason+`: "`) {
				t.Errorf("reason %s has no words in %s", reason, language)
			}
		}
	}
}

func TestEveryReasonIsOnTheList(t *testing.T) {
	b, err := os.ReadFile("../sale/reasons.go")
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`Reason\w+ += "(\w+)"`).FindAllStringSubmatch(string(b), -1)
	if len(written) != len(sale.Reasons()) {
		t.Errorf("got %d reasons on the list, want the %d that there are", len(sale.Reasons()), len(written))
	}
	for _, w := range written {
		if !slices.Contains(sale.Reasons(), w[1]) {
			t.Errorf("reason %s is not on the list", w[1])
		}
	}
}
