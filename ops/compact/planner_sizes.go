package compact

import (
	"math"

	"github.com/seaice/seaice/config"
)

const (
	// unitTargets is the size of a unit in outputs. Smaller units commit earlier
	// and lose less when they fail; larger ones divide more evenly.
	unitTargets = 8
	// maxUnitInputs bounds the files of a unit: each is open while the unit is
	// rewritten, with its footer in memory.
	maxUnitInputs = 5_000
	// maxPlanInputs and maxPlanDeletes bound the inputs of a plan, and the pairs
	// of a unit and a delete; the rest is for the next run.
	maxPlanInputs  = 50_000
	maxPlanDeletes = 1_000_000
	// leastSplit is the size up to which a file is never too large, whatever the
	// target: of what is smaller, footers and indexes may be the most part, and
	// dividing it would not make it fit.
	leastSplit = 1 << 20
	// lookBack is how many units of a partition are open at a time while files
	// are packed. With a sort column it is one: ranges must not mix.
	lookBack = 4
)

// sizes are the settings about sizes, resolved to bytes.
type sizes struct {
	target, least, most int64
	maxRows             int64
	// unit bounds a unit's input as far as files can be divided.
	unit int64
	// cap is the most input of a run, and so of a unit; 0 for none.
	cap    int64
	inputs int64
}

func newSizes(s *config.Settings) sizes {
	z := sizes{
		target: s.TargetFileBytes, least: percent(s.TargetFileBytes, s.MinFileSizePercent), most: percent(s.TargetFileBytes, s.MaxFileSizePercent),
		maxRows: s.MaxRowsPerFile, cap: s.MaxRewriteBytes, inputs: maxUnitInputs,
	}
	z.unit = math.MaxInt64
	if z.target <= math.MaxInt64/unitTargets {
		z.unit = z.target * unitTargets
	}
	if s.MaxFiles > 0 {
		z.inputs = min(z.inputs, s.MaxFiles)
	}
	return z
}

func percent(n int64, p int) int64 { return n/100*int64(p) + n%100*int64(p)/100 }

// outputs is the number of files that bytes and rows become, and the size at
// which each of them is to be ended.
func (z sizes) outputs(bytes, rows int64) (n, target int64) {
	if rows == 0 {
		return 0, z.target
	}
	return z.divide(bytes, rows, z.count(bytes, rows))
}

// count is the number of files which brings their mean nearest to the target
// without leaving what is neither small nor large, so that outputs are no
// candidates.
func (z sizes) count(bytes, rows int64) int64 {
	n := int64(1)
	switch {
	case rows == 0:
		return 0
	case bytes > z.target:
		n = z.pick(bytes, bytes/z.target)
	}
	return z.byRows(n, rows)
}

// byRows is n, or what a bound on rows asks for, and not more than there are rows.
func (z sizes) byRows(n, rows int64) int64 {
	n = min(n, rows)
	if z.maxRows > 0 {
		n = max(n, (rows-1)/z.maxRows+1)
	}
	return n
}

// divide makes n files, or more if the rows ask for them. The size at which one is
// ended has room for what was estimated too low, but little: n-1 files that take
// more than their share leave a last one of four fifths of it. Where the bound on rows
// makes more files than bytes would, none is ended for its bytes: if those were
// estimated too low there would be still more files, which the next run would merge.
func (z sizes) divide(bytes, rows, n int64) (files, target int64) {
	n = z.byRows(n, rows)
	share := (max(bytes, 1)-1)/n + 1
	if z.maxRows > 0 && n == (rows-1)/z.maxRows+1 && n > max(1, bytes/z.target) {
		return n, max(z.target, share)
	}
	if n == 1 {
		return 1, max(z.target, z.most, share)
	}
	return n, max(1, share+min(share/10, share/(5*(n-1))))
}

// pick chooses between lo outputs and one more.
func (z sizes) pick(bytes, lo int64) int64 {
	hi := lo + 1
	if bytes%z.target == 0 {
		return lo
	}
	large, small := float64(bytes)/float64(lo), float64(bytes)/float64(hi)
	switch fitsHi := small >= float64(z.least); {
	case large > float64(z.most), fitsHi && large*small >= float64(z.target)*float64(z.target):
		return hi
	}
	return lo
}
