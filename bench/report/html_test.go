package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"queuelab/bench/trial"
)

func TestThePageAsksTheNetworkForNothing(t *testing.T) {
	address := regexp.MustCompile(`\s(?:src|href|action|formaction|poster|data|srcset)\s*=\s*"([^"]*)"|\burl\(([^)]*)\)|@import\s+(\S+)`)
	script := regexp.MustCompile(`(?s)<script type="application/json".*?</script>`)
	for name, result := range map[string]trial.Result{"sample": sample(), "hostile": hostile(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, result); err != nil {
				t.Fatal(err)
			}
			page := script.ReplaceAllString(b.String(), "") // data is data
			found := 0
			for _, m := range address.FindAllStringSubmatch(page, -1) {
				found++
				if to := m[1] + m[2] + m[3]; !strings.HasPrefix(to, "#") {
					t.Errorf("got an address that leaves the page: %q", m[0])
				}
			}
			if found == 0 {
				t.Error("found no address at all: the test looks at nothing")
			}
			for _, tag := range []string{"<link", "<iframe", "<object", "<embed", "<img", "<base"} {
				if strings.Contains(page, tag) {
					t.Errorf("got a %s", tag)
				}
			}
			if n := strings.Count(b.String(), "<script"); n != 2 {
				t.Errorf("got %d scripts, want the data and the page's own: something foreign came through", n)
			}
			if strings.Contains(b.String(), "ZgotmplZ") {
				t.Error("the template engine refused a value")
			}
		})
	}
}

func TestEveryLinkHasItsPlace(t *testing.T) {
	id, href := regexp.MustCompile(`\sid="([^"]*)"`), regexp.MustCompile(`\shref="#([^"]*)"`)
	for name, result := range map[string]trial.Result{"sample": sample(), "hostile": hostile(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, result); err != nil {
				t.Fatal(err)
			}
			places := map[string]bool{}
			for _, m := range id.FindAllStringSubmatch(b.String(), -1) {
				if places[m[1]] {
					t.Errorf("got the id %q twice", m[1])
				}
				places[m[1]] = true
			}
			for _, m := range href.FindAllStringSubmatch(b.String(), -1) {
				if !places[m[1]] {
					t.Errorf("got a link to %q, which is not there", m[1])
				}
			}
		})
	}
}
