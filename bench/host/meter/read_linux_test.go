package meter

import (
	"testing"
	"time"
)

func TestThePressureFile(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want pressure
		ok   bool
	}{
		"as the kernel writes it": {"some avg10=2.49 avg60=2.00 avg300=5.49 total=5430714857\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=12\n",
			pressure{2.49, 5430714857 * time.Microsecond}, true},
		"an old kernel has no line full": {"some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", pressure{0, time.Microsecond}, true},
		"full alone":                     {"full avg10=1.00 avg60=0.00 avg300=0.00 total=12\n", pressure{}, false},
		"an empty file":                  {"", pressure{}, false},
		"no number":                      {"some avg10=x avg60=2.00 avg300=5.49 total=1\n", pressure{0, time.Microsecond}, false},
	} {
		if got, ok := parsePressure(c.file); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestStealIsAPartOfAllTicksAndGuestsAreCountedOnce(t *testing.T) {
	stolen, all := parseStat("cpu  100 20 30 800 40 0 5 5 50 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if stolen != 5 || all != 1000 {
		t.Errorf("got %d of %d, want 5 of 1000", stolen, all)
	}
	if stolen, all := parseStat(""); stolen != 0 || all != 0 {
		t.Errorf("no file: got %d of %d, want nothing", stolen, all)
	}
}

func TestSwapIsBothWays(t *testing.T) {
	if got := parseVMStat("nr_free_pages 9\npswpin 3\npswpout 4\npswpinx 50\n"); got != 7 {
		t.Errorf("got %d pages, want 7", got)
	}
}
