package door

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
)

// The picture's size in pixels: large enough to read on a phone.
const (
	pictureWidth  = 200
	pictureHeight = 72
)

// font is the digits, each of seven rows of five dots.
const font = `
.###. ..#.. .###. ####. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# ....# ..##. #.... #.... ....# #...# #...#
#...# ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#...# ..#.. ...#. .###. #..#. ....# ####. ...#. .###. .####
#...# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... ....# ...#. #...# #...# ..#.. #...# ...#.
.###. .###. ##### ####. ...#. .###. .###. ..#.. .###. .##..
`

// ink reports whether a point of a digit is black; the digit is 5 wide and 7
// high.
func ink(rows []string, digit byte, x, y float64) bool {
	col, row := int(math.Floor(x)), int(math.Floor(y))
	return col >= 0 && col < 5 && row >= 0 && row < 7 && rows[row][int(digit-'0')*6+col] == '#'
}

// draw makes a PNG of digits: each turned, shifted and of its own size, all on a
// wave, with lines across and dots. The colours are far enough apart for people.
func draw(text string) ([]byte, error) {
	rows := strings.Split(strings.TrimSpace(font), "\n")
	hue := uint8(rand.IntN(60))
	img := image.NewPaletted(image.Rect(0, 0, pictureWidth, pictureHeight), color.Palette{
		color.RGBA{250, 250, 247, 255}, color.RGBA{20 + hue, 30, 90 - hue, 255}, color.RGBA{150, 140 + hue, 170, 255}})
	cell := float64(pictureWidth-16) / float64(len(text))
	phase, depth, length := rand.Float64()*2*math.Pi, 3+2*rand.Float64(), 35+30*rand.Float64()
	wave := make([]float64, pictureWidth) // at each row and each column
	for i := range wave {
		wave[i] = depth * math.Sin(phase+float64(i)/length*2)
	}
	for i := range len(text) {
		sin, cos := math.Sincos((rand.Float64() - 0.5) * 0.6)
		scale := 5.6 + rand.Float64()*1.2
		midX, midY := 8+cell*(float64(i)+0.5)+rand.Float64()*4-2, pictureHeight/2+rand.Float64()*8-4
		for y := range pictureHeight {
			for x := max(0, int(midX-cell)); x <= min(pictureWidth-1, int(midX+cell)); x++ {
				// From the picture back to the digit: the wave, the turn, the size.
				dx, dy := float64(x)-midX+wave[y], float64(y)-midY+wave[x]
				if ink(rows, text[i], (dx*cos+dy*sin)/scale+2.5, (dy*cos-dx*sin)/scale+3.5) {
					img.SetColorIndex(x, y, 1)
				}
			}
		}
	}
	for range 4 {
		y, slope, bend := rand.Float64()*pictureHeight, (rand.Float64()-0.5)*0.6, rand.Float64()*6
		for x := range pictureWidth {
			at := int(y + slope*float64(x) + bend*math.Sin(float64(x)/17))
			img.SetColorIndex(x, at, 2)
			img.SetColorIndex(x, at+1, 2)
		}
	}
	for range 240 {
		img.SetColorIndex(rand.IntN(pictureWidth), rand.IntN(pictureHeight), uint8(1+rand.IntN(2)))
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
