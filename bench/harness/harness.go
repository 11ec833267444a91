// Package harness compares this project with a peer, side by side, and prints
// one line for each figure:
//
//	BENCH <name> <ours> <peer> <unit> ratio=<r> n=<runs>
//
// A higher ratio is always better for us: figures are rates, and r is
// ours/peer; for costs such as memory and CPU, r is peer/ours. Figures are
// medians of runs in which both sides take turns, and who goes first takes
// turns too. Without a peer, peer and ratio are "-".
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Bench is one named comparison.
type Bench struct {
	// Name is printed and selects the bench; without spaces. Another peer or
	// size is another name.
	Name string
	// Unit of the figures, without spaces: "MB/s", "files/s", "MB".
	Unit string
	// Better says which way the figures go.
	Better Direction
	// Runs is how often each side runs; 0 is DefaultRuns.
	Runs int
	// Prepare makes the inputs, from a fixed seed. Its time does not count.
	Prepare func(ctx context.Context) (*Contest, error)
}

// Direction says whether more or less of a figure is good.
type Direction uint8

const (
	// Higher: the figure is a rate or a share.
	Higher Direction = iota
	// Lower: the figure is a cost.
	Lower
)

// Side does the work once and returns its figure.
type Side func(ctx context.Context) (float64, error)

// Contest is a bench with its inputs made.
type Contest struct {
	Ours Side
	// Peer is nil when there is none.
	Peer Side
	// Close, if set, removes what Prepare made.
	Close func()
}

const (
	// DefaultRuns of each side, after one that does not count.
	DefaultRuns = 5
	// minRuns are made even when the budget is used up.
	minRuns = 3
	// Budget of one bench; once it is used up no further run is begun.
	Budget = 6 * time.Minute
)

// Result is what one bench found.
type Result struct {
	Bench      Bench
	Ours, Peer []float64
}

// Rate returns a side whose figure is amount per second of work.
func Rate(amount float64, work func(ctx context.Context) error) Side {
	return func(ctx context.Context) (float64, error) {
		runtime.GC()
		start := time.Now()
		err := work(ctx)
		return amount / time.Since(start).Seconds(), err
	}
}

// Run prepares b and runs it.
func (b Bench) Run(ctx context.Context) (r Result, err error) {
	r.Bench = b
	c, err := b.Prepare(ctx)
	if err != nil {
		return r, fmt.Errorf("prepare: %w", err)
	}
	if c.Close != nil {
		defer c.Close()
	}
	sides := []struct {
		name    string
		run     Side
		figures *[]float64
	}{{"ours", c.Ours, &r.Ours}}
	if c.Peer != nil {
		sides = append(sides, struct {
			name    string
			run     Side
			figures *[]float64
		}{"peer", c.Peer, &r.Peer})
	}
	runs := b.Runs
	if runs == 0 {
		runs = DefaultRuns
	}
	start := time.Now()
	for i := range runs + 1 {
		if i > minRuns && time.Since(start) > Budget {
			break
		}
		for _, s := range sides {
			f, err := s.run(ctx)
			if err != nil {
				return r, fmt.Errorf("%s, run %d: %w", s.name, i, err)
			}
			if f <= 0 {
				return r, fmt.Errorf("%s, run %d: a figure of %v means that nothing was measured", s.name, i, f)
			}
			if i > 0 { // the first run warms up
				*s.figures = append(*s.figures, f)
			}
		}
		slices.Reverse(sides)
	}
	return r, nil
}

// Line is the result as it is printed.
func (r Result) Line() string {
	ours := median(r.Ours)
	peer, ratio := "-", "-"
	if len(r.Peer) > 0 {
		p := median(r.Peer)
		peer = figure(p)
		if r.Bench.Better == Lower {
			ratio = figure(p / ours)
		} else {
			ratio = figure(ours / p)
		}
	}
	return fmt.Sprintf("BENCH %s %s %s %s ratio=%s n=%d", r.Bench.Name, figure(ours), peer, r.Bench.Unit, ratio, len(r.Ours))
}

// figure has three significant digits, and all digits before the point.
func figure(v float64) string {
	prec := 0
	for limit := 100.0; v < limit && prec < 6; limit /= 10 {
		prec++
	}
	return fmt.Sprintf("%.*f", prec, v)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Select returns the benches named in list, in its order; an empty list is all
// of them.
func Select(all []Bench, list string) ([]Bench, error) {
	if list == "" {
		return all, nil
	}
	var out []Bench
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(b Bench) bool { return b.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no bench %q; -list shows them", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// RunAll runs the benches and prints a line each to out as soon as it is
// known. A bench that fails is reported in the error and the rest still run.
func RunAll(ctx context.Context, out io.Writer, benches []Bench) error {
	var failed []error
	for _, b := range benches {
		r, err := b.Run(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("bench %s: %w", b.Name, err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if _, err := fmt.Fprintln(out, r.Line()); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}
