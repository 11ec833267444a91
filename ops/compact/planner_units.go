package compact

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// draft is a unit by the numbers of its candidates.
type draft struct {
	files []uint32
	part  uint32
	// in and rowsIn are the inputs' sizes, bytes and rows what should be left of
	// them.
	in, rowsIn, bytes, rows int64
	outputs, target         int64
	exact                   bool
	// deletes estimates how many deletes apply.
	deletes int64
}

// choose packs the candidates of each partition into units and keeps those that
// help and fit into this run.
func (w *work) choose() error {
	order := make([]uint32, w.found.n)
	for i := range order {
		order[i] = uint32(i)
	}
	rank := w.ranks()
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := w.found.at(a), w.found.at(b)
		if c := cmp.Compare(rank[x.part], rank[y.part]); c != 0 {
			return c
		}
		if w.order.known() {
			if c := w.order.compare(w.found.key(a), w.found.key(b)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(x.seq, y.seq), cmp.Compare(x.manifest, y.manifest), cmp.Compare(x.entry, y.entry))
	})
	w.found.keys = nil
	for start := 0; start < len(order); {
		end := start + 1
		for end < len(order) && w.found.at(order[end]).part == w.found.at(order[start]).part {
			end++
		}
		bins, limit := w.pack(order[start:end])
		drafts := w.join(bins)
		if limit == nil {
			w.apportion(drafts)
		}
		for _, d := range drafts {
			w.propose(d, limit)
		}
		start = end
	}
	w.limit()
	return nil
}

// ranks orders partitions by spec and tuple.
func (w *work) ranks() []uint32 {
	byRank := make([]uint32, len(w.parts.all))
	for i := range byRank {
		byRank[i] = uint32(i)
	}
	slices.SortFunc(byRank, func(a, b uint32) int {
		x, y := w.parts.all[a], w.parts.all[b]
		return cmp.Or(cmp.Compare(x.key.Spec, y.key.Spec), manifests.CompareTuples(x.tuple, y.tuple), cmp.Compare(x.key.Tuple, y.key.Tuple))
	})
	rank := make([]uint32, len(byRank))
	for r, i := range byRank {
		rank[i] = uint32(r)
	}
	return rank
}

// left over of a file's bytes when its deleted rows are gone.
func (f *candidate) remaining() int64 {
	if f.records == 0 {
		return 0
	}
	return int64(float64(f.bytes) * (float64(f.records-f.gone) / float64(f.records)))
}

// bin is a unit being packed.
type bin struct {
	files []uint32
	bytes int64 // as will be left
	in    int64
}

// pack divides the candidates of a partition, in order, into bins. If a limit of
// the run divides the partition, it says which.
func (w *work) pack(files []uint32) ([][]uint32, *left) {
	var in, sum int64
	for _, i := range files {
		f := w.found.at(i)
		in, sum = add(in, f.bytes), add(sum, f.remaining())
	}
	if limit := w.divided(int64(len(files)), in); limit != nil {
		return w.fit(files), limit
	}
	bins := w.cut(files, sum)
	for _, b := range bins {
		if int64(len(b)) > w.sizes.inputs {
			return w.fit(files), nextRun("unit-full", "", fmt.Sprintf("of %d files in a unit", w.sizes.inputs))
		}
	}
	return bins, nil
}

// cut divides files into bins of like size: a file is in the bin that its middle
// is in. Bins are whole ranges of the order, and none is a small rest.
func (w *work) cut(files []uint32, sum int64) [][]uint32 {
	bins := (sum-1)/w.sizes.unit + 1
	share := (max(sum, 1)-1)/bins + 1
	var out [][]uint32
	var behind int64
	last := int64(-1)
	for _, i := range files {
		size := w.found.at(i).remaining()
		if at := min(add(behind, size/2)/share, bins-1); at != last {
			out, last = append(out, nil), at
		}
		behind = add(behind, size)
		out[len(out)-1] = append(out[len(out)-1], i)
	}
	return out
}

// fit fills bins up to the limits of a run. Without a sort column several bins are
// open at a time, and a file goes to the first that it fits.
func (w *work) fit(files []uint32) [][]uint32 {
	open := lookBack
	if w.order.known() {
		open = 1
	}
	var out [][]uint32
	var now []*bin
	for _, i := range files {
		f := w.found.at(i)
		at := slices.IndexFunc(now, func(b *bin) bool {
			return add(b.bytes, f.remaining()) <= w.sizes.unit && int64(len(b.files)) < w.sizes.inputs &&
				(w.sizes.cap == 0 || add(b.in, f.bytes) <= w.sizes.cap)
		})
		if at < 0 {
			if len(now) == open {
				out, now = append(out, now[0].files), now[1:]
			}
			at, now = len(now), append(now, &bin{})
		}
		b := now[at]
		b.files, b.bytes, b.in = append(b.files, i), add(b.bytes, f.remaining()), add(b.in, f.bytes)
	}
	for _, b := range now {
		out = append(out, b.files)
	}
	return out
}

// divided names the limit that keeps the candidates of a partition from being one
// unit, apart from their size.
func (w *work) divided(files, bytes int64) *left {
	switch {
	case w.set.MaxFiles > 0 && w.set.MaxFiles < int64(w.set.MinInputFiles) && files > w.set.MaxFiles:
		return &left{
			code: "max-files", subject: "data files", setting: "max_files",
			text: fmt.Sprintf("no run has room for the %d files that a rewrite takes", w.set.MinInputFiles),
		}
	case w.set.MaxFiles > 0 && files > w.set.MaxFiles:
		return nextRun("max-files", "max_files", fmt.Sprintf("of %d files", w.set.MaxFiles))
	case w.sizes.cap > 0 && bytes > w.sizes.cap:
		return nextRun("max-rewrite", "max_rewrite_mb", "of "+ops.Size(w.sizes.cap))
	}
	return nil
}

// nextRun is the reason of what a limit keeps out.
func nextRun(code, setting, limit string) *left {
	return &left{code: code, subject: "data files", setting: setting, text: "left to the next run; they are beyond the limit " + limit}
}

// draft sums up what a unit would do.
func (w *work) draft(files []uint32) draft {
	d := draft{files: files, part: w.found.at(files[0]).part, exact: true}
	for _, i := range files {
		f := w.found.at(i)
		d.in, d.rowsIn = add(d.in, f.bytes), add(d.rowsIn, f.records)
		d.bytes, d.rows = add(d.bytes, f.remaining()), add(d.rows, f.records-f.gone)
		d.exact = d.exact && f.exact
		d.deletes = max(d.deletes, int64(f.deletes))
		if f.deletes > 0 {
			d.deletes++ // at least one that is the file's own
		}
	}
	d.outputs, d.target = w.sizes.outputs(d.bytes, d.rows)
	return d
}

// join makes drafts of the bins of a partition. One that would be left alone, or
// become one small file, is joined to the one before it, or else behind it.
func (w *work) join(bins [][]uint32) []draft {
	var out []draft
	var stray []uint32
	for _, files := range bins {
		if len(stray) > 0 && w.fits(stray, files) {
			files, stray = slices.Concat(stray, files), nil
		}
		d := w.draft(files)
		if w.worth(&d) && d.bytes >= w.sizes.least {
			out = append(out, d)
			continue
		}
		if n := len(out); n > 0 && w.fits(out[n-1].files, files) {
			out[n-1] = w.draft(slices.Concat(out[n-1].files, files))
			continue
		}
		if len(stray) > 0 {
			out = append(out, w.draft(stray))
		}
		stray = files
	}
	if len(stray) > 0 {
		out = append(out, w.draft(stray))
	}
	return out
}

// apportion gives the units of a partition their shares of the files that its
// candidates would become if they were one. That number follows from their size
// alone, so that outputs, divided anew, are as many again.
func (w *work) apportion(drafts []draft) {
	if len(drafts) < 2 {
		return
	}
	var bytes, rows int64
	for i := range drafts {
		bytes, rows = add(bytes, drafts[i].bytes), add(rows, drafts[i].rows)
	}
	all := float64(w.sizes.count(bytes, rows))
	var behind float64
	given := int64(0)
	for i := range drafts {
		d := &drafts[i]
		behind += float64(d.bytes)
		share := int64(math.Round(all*behind/float64(max(bytes, 1)))) - given
		given += share
		if d.rows > 0 {
			// None of them may be too large.
			least := (max(d.bytes, 1)-1)/max(w.sizes.most, 1) + 1
			d.outputs, d.target = w.sizes.divide(d.bytes, d.rows, max(share, least))
		}
	}
}

// fits reports whether two bins can be one unit.
func (w *work) fits(a, b []uint32) bool {
	if int64(len(a)+len(b)) > w.sizes.inputs {
		return false
	}
	var in int64
	for _, files := range [][]uint32{a, b} {
		for _, i := range files {
			in = add(in, w.found.at(i).bytes)
		}
	}
	return w.sizes.cap == 0 || in <= w.sizes.cap
}

// worth reports whether a draft helps and has as many files as it takes.
func (w *work) worth(d *draft) bool {
	n := int64(len(d.files))
	var triggered, large bool
	for _, i := range d.files {
		f := w.found.at(i)
		triggered = triggered || f.triggered
		large = large || f.why == becauseLarge
	}
	helps := d.outputs < n || triggered || large && d.outputs > 1
	return helps && (n >= int64(w.set.MinInputFiles) || triggered || large || w.set.RewriteAll)
}

// propose keeps a draft that helps: fewer files, fewer deletes, or an oversized
// file split. The others' files stay, with a reason: the limit, if one divided the
// partition.
func (w *work) propose(d draft, limit *left) {
	n := int64(len(d.files))
	switch {
	case w.worth(&d):
		w.drafts = append(w.drafts, d)
	case limit != nil:
		w.leave(d, *limit)
	case n < int64(w.set.MinInputFiles) && !w.set.RewriteAll:
		w.leave(d, left{
			code: "below-min-input-files", subject: "data files", setting: "min_input_files",
			text: fmt.Sprintf("worth a rewrite, but fewer than %d in their partition", w.set.MinInputFiles),
		})
	default:
		l := left{code: "no-gain", subject: "data files", setting: "target_file_size_mb", text: "a rewrite would make as many files of them"}
		if w.sizes.maxRows > 0 {
			if unbound, _ := (sizes{target: w.sizes.target, least: w.sizes.least, most: w.sizes.most}).outputs(d.bytes, d.rows); unbound < d.outputs {
				l.setting = "max_rows_per_file"
			}
		}
		w.leave(d, l)
	}
}

// leave notes that the candidates of a draft stay.
func (w *work) leave(d draft, l left) {
	w.left.add(l, int64(len(d.files)))
	w.stay(d)
}

func (w *work) stay(d draft) {
	for _, i := range d.files {
		f := w.found.at(i)
		w.parts.all[f.part].least.see(f.seq)
		w.totals.least.see(f.seq)
	}
}

// gain is what a draft saves for each byte it reads: the order in which drafts
// are taken when not all fit.
func (w *work) gain(d *draft) float64 {
	saved := int64(len(d.files)) - d.outputs + d.deletes
	return float64(saved) / (float64(d.in) + 1<<20)
}

// limit takes drafts, the most useful first, as long as they fit into one run.
func (w *work) limit() {
	byGain := make([]int, len(w.drafts))
	for i := range byGain {
		byGain[i] = i
	}
	slices.SortStableFunc(byGain, func(a, b int) int { return cmp.Compare(w.gain(&w.drafts[b]), w.gain(&w.drafts[a])) })
	var r run
	r.partitions = map[uint32]bool{}
	taken := make([]bool, len(w.drafts))
	for _, i := range byGain {
		d := &w.drafts[i]
		if l := r.take(w, d); l != nil {
			w.leave(*d, *l)
			continue
		}
		taken[i] = true
	}
	kept := w.drafts[:0]
	for i := range w.drafts {
		if taken[i] {
			kept = append(kept, w.drafts[i])
		}
	}
	w.drafts = kept
}

// run is what one run has taken on.
type run struct {
	bytes, files, deletes int64
	partitions            map[uint32]bool
}

// take adds a draft, or says which limit keeps it out.
func (r *run) take(w *work, d *draft) *left {
	files := add(r.files, int64(len(d.files)))
	switch s := w.set; {
	case s.MaxRewriteBytes > 0 && add(r.bytes, d.in) > s.MaxRewriteBytes:
		return nextRun("max-rewrite", "max_rewrite_mb", "of "+ops.Size(s.MaxRewriteBytes))
	case s.MaxFiles > 0 && files > s.MaxFiles:
		return nextRun("max-files", "max_files", fmt.Sprintf("of %d files", s.MaxFiles))
	case s.MaxPartitions > 0 && !r.partitions[d.part] && int64(len(r.partitions)) >= s.MaxPartitions:
		return nextRun("max-partitions", "max_partitions", fmt.Sprintf("of %d partitions", s.MaxPartitions))
	case files > maxPlanInputs || add(r.deletes, d.deletes) > maxPlanDeletes && r.files > 0:
		return nextRun("plan-full", "", fmt.Sprintf("of %d files, or %d deletes of units", maxPlanInputs, maxPlanDeletes))
	}
	r.bytes, r.files, r.deletes = add(r.bytes, d.in), files, add(r.deletes, d.deletes)
	r.partitions[d.part] = true
	return nil
}
