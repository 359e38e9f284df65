package choose

import (
	"fmt"
	"strconv"
)

// thousands is a count with its thousands apart.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short is a number with three digits that count.
func short(v float64) string {
	if v >= 99.95 || v <= -99.95 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func perSecond(rate float64) string {
	if rate < 10_000 {
		return short(rate) + "/s"
	}
	return short(rate/1000) + " k/s"
}

func micros(us float64) string {
	switch {
	case us >= 1e6:
		return short(us/1e6) + " s"
	case us >= 1e3:
		return short(us/1e3) + " ms"
	}
	return short(us) + " µs"
}

func percent(share float64) string { return short(100*share) + " %" }

func size(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; bytes >= 1024 && i < len(units)-1; i++ {
		bytes /= 1024
	}
	return short(bytes) + " " + units[i]
}
