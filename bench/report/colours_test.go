package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// linear is a colour with its parts as light.
type linear [3]float64

func parseColour(t *testing.T, hex string) linear {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 6 {
		t.Fatalf("%q is no colour", hex)
	}
	var c linear
	for i := range c {
		v := float64(n>>(16-8*i)&0xff) / 255
		if c[i] = v / 12.92; v > 0.04045 {
			c[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return c
}

func (c linear) seenBy(m [3]linear) linear {
	var out linear
	for i, r := range m {
		out[i] = r[0]*c[0] + r[1]*c[1] + r[2]*c[2]
	}
	return out
}

// oklab is where a colour lies in a space in which distance is what people see.
func (c linear) oklab() linear {
	x := c.seenBy([3]linear{{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005}})
	for i := range x {
		x[i] = math.Cbrt(max(0, x[i]))
	}
	return x.seenBy([3]linear{{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660}})
}

func (c linear) luminance() float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// eyes are how colours reach people: all cones, without the red ones, without
// the green ones (Machado, Oliveira and Fernandes 2009, at full strength).
func eyes() map[string][3]linear {
	return map[string][3]linear{
		"full":         {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	}
}

func TestLinesAreToldApartByEveryEyeInLightAndDark(t *testing.T) {
	css, err := assets.ReadFile("assets/report.css")
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) []string {
		m := regexp.MustCompile(`--` + name + `: light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`).FindSubmatch(css)
		if m == nil {
			t.Fatalf("the style has no colour --%s", name)
		}
		return []string{string(m[1]), string(m[2])}
	}
	for i, look := range []string{"light", "dark"} {
		card := parseColour(t, find("card")[i]).luminance()
		var colours []linear
		for n := 1; n <= lineColours; n++ {
			c := parseColour(t, find(fmt.Sprintf("s%d", n))[i])
			if ratio := (max(c.luminance(), card) + 0.05) / (min(c.luminance(), card) + 0.05); ratio < 3 {
				t.Errorf("%s: s%d has a contrast of %.2f to the card, want 3", look, n, ratio)
			}
			for m, other := range colours {
				for eye, matrix := range eyes() {
					a, b := c.seenBy(matrix).oklab(), other.seenBy(matrix).oklab()
					if d := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2])); d < 0.12 {
						t.Errorf("%s, %s: s%d and s%d are %.3f apart, want 0.12", look, eye, m+1, n, d)
					}
				}
			}
			colours = append(colours, c)
		}
	}
}

func TestNoTwoLinesOfAPlotLookAlike(t *testing.T) {
	seen, shapes := map[string]int{}, map[string]bool{}
	for i := range lineColours * lineShapes {
		class := lineClass(i, &row{Backend: "kafka"})
		if j, twice := seen[class]; twice {
			t.Errorf("lines %d and %d are both %q", j, i, class)
		}
		seen[class] = i
		shapes[shape(class, 0, 0)] = true
	}
	if len(shapes) != lineShapes {
		t.Errorf("got %d shapes, want %d", len(shapes), lineShapes)
	}
	for i := range lineColours {
		for j := range i {
			a, b := lineClass(i, &row{Backend: "kafka"}), lineClass(j, &row{Backend: "kafka"})
			if a[:2] == b[:2] || shape(a, 0, 0) == shape(b, 0, 0) {
				t.Errorf("%q and %q share a colour or a shape", a, b)
			}
		}
	}
}
