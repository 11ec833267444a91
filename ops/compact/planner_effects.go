package compact

import (
	"fmt"
	"math"
	"strconv"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// totals are the numbers of the table and what of its files stays.
type totals struct {
	before ops.Totals
	// partial: some manifests were not read, because the condition excludes them.
	partial bool
	// least is the least data sequence number of the files that stay.
	least seqMin
	// old are files of other specs than the table's own.
	old int64
	// retired are the deletes that leave the table, and the manifests they are in.
	retired, retiredBytes int64
	touched               map[string]bool
}

// retire counts a delete that leaves the table.
func (t *totals) retire(manifest string, bytes int64) {
	if t.touched == nil {
		t.touched = map[string]bool{}
	}
	t.retired, t.retiredBytes, t.touched[manifest] = t.retired+1, add(t.retiredBytes, bytes), true
}

// unseen counts a manifest that is not read by what the list says of it.
func (t *totals) unseen(m *manifests.ManifestFile) {
	t.partial = true
	files, _ := m.LiveFiles()
	rows, _ := m.LiveRows()
	if m.Content == manifests.DeleteManifest {
		t.before.DeleteFiles = add(t.before.DeleteFiles, files)
		return
	}
	t.before.DataFiles, t.before.Rows = add(t.before.DataFiles, files), add(t.before.Rows, rows)
}

// effects predicts what the plan does.
func (w *work) effects() {
	e := &w.p.header.Effects
	e.RowsExact = true
	e.Before = w.totals.before
	e.Before.Manifests, e.Before.Snapshots = int64(len(w.data)+len(w.deletes)), int64(len(w.in.View.Metadata.Snapshots))
	if w.totals.partial {
		e.Before.Bytes = w.summaryBytes(e.Before.Bytes)
	}
	e.After = e.Before
	if len(w.p.units) == 0 {
		w.mention()
		return
	}
	specs := map[iceberg.SpecID]bool{}
	for i := range w.p.units {
		u := &w.p.units[i]
		in := u.Bytes()
		e.After.DataFiles += u.Expect.Files - int64(len(u.Inputs))
		e.After.Rows -= u.Records() - u.Expect.Rows
		e.After.Bytes -= in - u.Expect.Bytes
		e.RowsExact = e.RowsExact && u.Expect.RowsExact
		e.BytesRead, e.BytesWritten = add(e.BytesRead, in), add(e.BytesWritten, u.Expect.Bytes)
		e.FreedLaterBytes = add(e.FreedLaterBytes, in)
		for _, a := range u.Deletes {
			e.BytesRead = add(e.BytesRead, weightOf(&w.p.deletes[a.Delete]))
		}
		if u.Expect.Files > 0 {
			specs[u.Partition.Spec] = true
		}
	}
	if w.set.Verify == config.VerifyRows {
		e.BytesRead = add(e.BytesRead, e.BytesWritten)
	}
	e.After.DeleteFiles -= w.totals.retired
	e.After.Bytes -= w.totals.retiredBytes
	e.FreedLaterBytes = add(e.FreedLaterBytes, w.totals.retiredBytes)
	w.manifestEffects(e)
	e.After.Manifests += int64(len(specs))
	e.After.Snapshots++
	e.PeakMemoryBytes = w.set.MemoryBudgetBytes
	w.mention()
}

// manifestEffects counts the manifests that are rewritten: those with inputs, and
// those with deletes that go.
func (w *work) manifestEffects(e *ops.Effects) {
	touched := map[string]bool{}
	for path := range w.totals.touched {
		touched[path] = true
	}
	for i := range w.p.units {
		for k := range w.p.units[i].Inputs {
			touched[w.p.manifests[w.p.units[i].Inputs[k].Manifest]] = true
		}
	}
	for _, all := range [][]*manifests.ManifestFile{w.data, w.deletes} {
		for _, m := range all {
			if touched[m.Path] {
				e.BytesRead, e.BytesWritten = add(e.BytesRead, m.Length), add(e.BytesWritten, m.Length)
				e.FreedLaterBytes = add(e.FreedLaterBytes, m.Length)
			}
		}
	}
}

// weightOf is what a delete takes: of a Puffin file only the vector.
func weightOf(d *Delete) int64 {
	if d.IsVector() && d.Size >= 0 {
		return d.Size
	}
	return d.Bytes
}

// summaryBytes is the size of the table's files by the snapshot's summary, for a
// plan that did not look at all of them.
func (w *work) summaryBytes(seen int64) int64 {
	head, ok := w.in.View.Branch(w.set.Branch)
	if !ok {
		return seen
	}
	n, err := strconv.ParseInt(head.Summary()["total-files-size"], 10, 64)
	if err != nil || n < seen || n == math.MaxInt64 {
		return seen
	}
	return n
}

// mention gives reasons for settings that this version cannot follow.
func (w *work) mention() {
	if w.set.RewriteOldSpecs {
		w.left.add(left{
			code: "old-spec", subject: "data files", setting: "rewrite_old_specs",
			text: "of an old partition spec; they are compacted within it, and not moved to the current one in this version",
		}, w.totals.old)
	}
	if w.set.Recompress {
		w.left.add(left{
			code: "level-unknown", subject: "data files", setting: "recompress",
			text: "manifests do not tell the level a file is compressed with, so only files that are rewritten for another reason are recompressed",
		}, w.totals.before.DataFiles)
	}
	if w.set.RewriteStrategy == config.Auto && w.in.View.Metadata.DefaultSortOrderID != 0 {
		w.left.add(left{
			code: "not-sorted", subject: "data files", setting: "rewrite_strategy",
			text: "the table declares an order; files are put in its order, but rows are not sorted in this version",
		}, w.totals.before.DataFiles)
	}
}

// Summary implements ops.Plan.
func (p *Plan) Summary() string {
	if p.Empty() {
		return "nothing to do"
	}
	var files, outputs, in, out int64
	for i := range p.units {
		u := &p.units[i]
		files, outputs = files+int64(len(u.Inputs)), outputs+u.Expect.Files
		in, out = add(in, u.Bytes()), add(out, u.Expect.Bytes)
	}
	text := fmt.Sprintf("%d -> %s, %s -> about %s", files, ops.Count(outputs, "file"), ops.Size(in), ops.Size(out))
	if outputs == 0 {
		text = fmt.Sprintf("%s of %s go, all rows are deleted", ops.Count(files, "file"), ops.Size(in))
	}
	if gone := p.header.Effects.Before.DeleteFiles - p.header.Effects.After.DeleteFiles; gone > 0 {
		text += fmt.Sprintf(", %s go", ops.Count(gone, "delete"))
	}
	if len(p.units) > 1 {
		text += fmt.Sprintf(", in %d units", len(p.units))
	}
	return text
}

// Report implements ops.Reporter.
func (p *Plan) Report(_ ops.Effects, n map[string]int64, reasons []ops.Reason) string {
	text := fmt.Sprintf("%d -> %s, %s -> %s", n["data-files-removed"], ops.Count(n["data-files-added"], "file"),
		ops.Size(n["data-bytes-removed"]), ops.Size(n["data-bytes-added"]))
	if rows := n["rows-deleted"]; rows > 0 {
		text += fmt.Sprintf(", %s applied", ops.Count(rows, "deleted row"))
	}
	if gone := n["delete-files-removed"]; gone > 0 {
		text += fmt.Sprintf(", %s removed", ops.Count(gone, "delete"))
	}
	if added := n["delete-files-added"]; added > 0 {
		text += fmt.Sprintf(", %s of others carried over", ops.Count(added, "delete"))
	}
	done, planned := n["units"], int64(len(p.units))
	switch {
	case done < planned:
		text += fmt.Sprintf(", in %d of %s", done, ops.Count(planned, "unit"))
	case done > 1:
		text += fmt.Sprintf(", in %d units", done)
	}
	if dropped := n["units-dropped"]; dropped > 0 && len(reasons) > 0 {
		text += fmt.Sprintf("; %d left out: %s: %s", dropped, reasons[0].Subject, reasons[0].Text)
		if dropped > 1 {
			text += ", and more"
		}
	}
	return text
}
