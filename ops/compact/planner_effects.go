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
	// shadowed are deletes that name inputs and do not apply to them: they go
	// with them.
	shadowed, shadowedBytes int64
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
	for i := range w.p.deletes {
		if d := &w.p.deletes[i]; w.leaves(d) {
			e.After.DeleteFiles--
			e.After.Bytes -= weightOf(d)
			e.FreedLaterBytes = add(e.FreedLaterBytes, weightOf(d))
		}
	}
	e.After.DeleteFiles -= w.totals.shadowed
	e.After.Bytes -= w.totals.shadowedBytes
	e.FreedLaterBytes = add(e.FreedLaterBytes, w.totals.shadowedBytes)
	w.manifestEffects(e)
	e.After.Manifests += int64(len(specs))
	e.After.Snapshots++
	e.PeakMemoryBytes = w.set.MemoryBudgetBytes
	w.mention()
}

// manifestEffects counts the manifests that are rewritten: those with inputs, and
// those with deletes that go.
func (w *work) manifestEffects(e *ops.Effects) {
	touched := map[int]bool{}
	for i := range w.p.units {
		for k := range w.p.units[i].Inputs {
			touched[w.p.units[i].Inputs[k].Manifest] = true
		}
	}
	for i := range w.p.deletes {
		if w.leaves(&w.p.deletes[i]) {
			touched[w.p.deletes[i].Manifest] = true
		}
	}
	length := map[string]int64{}
	for _, all := range [][]*manifests.ManifestFile{w.data, w.deletes} {
		for _, m := range all {
			length[m.Path] = m.Length
		}
	}
	for i, path := range w.p.manifests {
		if touched[i] {
			e.BytesRead, e.BytesWritten = add(e.BytesRead, length[path]), add(e.BytesWritten, length[path])
			e.FreedLaterBytes = add(e.FreedLaterBytes, length[path])
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

// leaves predicts whether a delete goes with the inputs, by the rule that decides
// at the commit: when no file that stays, nor an output, may have a row it
// deletes. Outputs have the sequence number the plan was made at.
func (w *work) leaves(d *Delete) bool {
	if d.Referenced != "" {
		return true // its only file is an input
	}
	stays, outputs := w.totals.least, w.p.header.Base.Sequence
	if d.Content == manifests.EqualityDeletes {
		if !w.rules.GlobalSpecs[d.Partition.Spec] {
			stays = w.leastOf(d.Partition)
		}
		return (!stays.known || stays.seq >= d.DataSeq) && outputs >= d.DataSeq
	}
	stays = w.leastOf(d.Partition)
	return (!stays.known || stays.seq > d.DataSeq) && (outputs > d.DataSeq || !w.writes(d.Partition))
}

func (w *work) leastOf(k iceberg.PartitionKey) seqMin {
	if n, ok := w.parts.by[k]; ok {
		return w.parts.all[n].least
	}
	return seqMin{}
}

// writes reports whether a unit of the partition has outputs.
func (w *work) writes(k iceberg.PartitionKey) bool {
	for i := range w.p.units {
		if u := &w.p.units[i]; u.Partition == k && u.Expect.Files > 0 {
			return true
		}
	}
	return false
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
	text := fmt.Sprintf("%d -> %d files, %s -> %s", files, outputs, size(in), size(out))
	if gone := p.header.Effects.Before.DeleteFiles - p.header.Effects.After.DeleteFiles; gone > 0 {
		text += fmt.Sprintf(", %d delete files gone", gone)
	}
	if len(p.units) > 1 {
		text += fmt.Sprintf(", in %d units", len(p.units))
	}
	return text
}
