// Benchchart draws the ratios of BENCH lines, read from standard input, as an
// SVG on standard output: one bar for each figure on a logarithmic scale, with a
// line where both sides are equal.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// figure is one BENCH line that has a ratio.
type figure struct {
	name, ours, peer, unit string
	ratio                  float64
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchchart:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	all, err := read(in)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no BENCH line with a ratio")
	}
	return draw(out, all)
}

// read finds the lines "BENCH name ours peer unit ratio=r n=n" in any text.
func read(in io.Reader) ([]figure, error) {
	var all []figure
	sc := bufio.NewScanner(in)
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 7 || f[0] != "BENCH" || strings.HasPrefix(f[1], "<") { // the page also shows the form of a line
			continue
		}
		text, ok := strings.CutPrefix(f[len(f)-2], "ratio=")
		if !ok || text == "-" {
			continue
		}
		r, err := strconv.ParseFloat(text, 64)
		if err != nil || r <= 0 || math.IsInf(r, 0) {
			return nil, fmt.Errorf("line %q: the ratio is not a positive number", sc.Text())
		}
		all = append(all, figure{f[1], f[2], f[3], strings.Join(f[4:len(f)-2], " "), r})
	}
	return all, sc.Err()
}

const (
	width, left, right = 860, 220, 200
	row, top, bottom   = 22, 34, 26
)

// draw writes the picture.
func draw(out io.Writer, all []figure) error {
	low, high := 1.0, 1.0
	for _, f := range all {
		low, high = min(low, f.ratio), max(high, f.ratio)
	}
	// Whole powers of ten on the right, half ones on the left, so that a bar
	// below 1 is seen.
	from := math.Floor(math.Log10(low)*2) / 2
	to := math.Max(1, math.Ceil(math.Log10(high)))
	at := func(r float64) float64 {
		return left + (math.Log10(r)-from)/(to-from)*(width-left-right)
	}
	height := top + row*len(all) + bottom
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(w, `<text x="%d" y="18" font-weight="bold">Seaice against each peer (ratio, logarithmic; right of the line is better)</text>`+"\n", 10)
	for e := int(math.Ceil(from)); e <= int(to); e++ {
		x := at(math.Pow10(e))
		colour := "#dddddd"
		if e == 0 {
			colour = "#444444"
		}
		fmt.Fprintf(w, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", x, top-6, x, height-bottom, colour)
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%gx</text>`+"\n", x, height-8, math.Pow10(e))
	}
	for i, f := range all {
		y := top + i*row
		x, l := at(1), at(f.ratio)
		colour := "#2b7bba"
		if f.ratio < 1 {
			x, l, colour = l, x, "#c0562b"
		}
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y+14, html.EscapeString(f.name))
		fmt.Fprintf(w, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y+3, math.Max(l-x, 1), row-8, colour)
		fmt.Fprintf(w, `<text x="%d" y="%d" fill="#333333">%.3gx  (%s against %s %s)</text>`+"\n", width-right+8, y+14, f.ratio,
			html.EscapeString(f.ours), html.EscapeString(f.peer), html.EscapeString(f.unit))
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}
