package compact

import (
	"fmt"
	"slices"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// candidate is a data file worth a rewrite. What else is known about it is read
// again once it is chosen.
type candidate struct {
	bytes, records int64
	gone           int64 // rows that are certainly deleted
	seq            iceberg.SeqNum
	part           uint32
	manifest       uint32 // in work.data
	entry          uint32 // in the manifest
	deletes        uint32 // that apply
	why            reasonCode
	// triggered: its deletes alone are worth the rewrite.
	triggered bool
	// exact: no row is deleted but those in gone.
	exact bool
}

// reasonCode is a Why in one byte.
type reasonCode uint8

var whys = [...]Why{WhyDeleteFiles, WhyDeleteRatio, WhySmall, WhyLarge, WhyAll}

const (
	becauseDeleteFiles reasonCode = iota
	becauseDeleteRatio
	becauseSmall
	becauseLarge
	becauseAll
)

// candidates is a list that grows without being copied.
type candidates struct {
	chunks [][]candidate
	// keys are the bounds of the sort column, if there is one.
	keys [][]iceberg.Value
	n    int
}

const candidateChunk = 1 << 13

func (c *candidates) add(f candidate, key iceberg.Value, keyed bool) {
	if c.n%candidateChunk == 0 {
		c.chunks = append(c.chunks, make([]candidate, 0, candidateChunk))
		if keyed {
			c.keys = append(c.keys, make([]iceberg.Value, 0, candidateChunk))
		}
	}
	i := c.n / candidateChunk
	c.chunks[i] = append(c.chunks[i], f)
	if keyed {
		c.keys[i] = append(c.keys[i], key)
	}
	c.n++
}

func (c *candidates) at(i uint32) *candidate {
	return &c.chunks[i/candidateChunk][i%candidateChunk]
}

func (c *candidates) key(i uint32) iceberg.Value {
	return c.keys[i/candidateChunk][i%candidateChunk]
}

// sortColumn is the column whose bounds say where a file's rows belong.
type sortColumn struct {
	id         iceberg.FieldID
	typ        icego.Type
	descending bool
}

// sortColumnOf is the first column of the table's declared order, if its
// transform keeps the order of values.
func sortColumnOf(m *iceberg.Metadata) sortColumn {
	o, ok := m.SortOrder(m.DefaultSortOrderID)
	if !ok || len(o.Fields) == 0 || len(o.Fields[0].SourceIDs) != 1 {
		return sortColumn{}
	}
	switch o.Fields[0].Transform.(type) {
	case icego.IdentityTransform, icego.TruncateTransform, *icego.TruncateTransform,
		icego.YearTransform, icego.MonthTransform, icego.DayTransform, icego.HourTransform:
	default:
		return sortColumn{}
	}
	c, ok := m.History().Column(o.Fields[0].SourceIDs[0])
	if !ok {
		return sortColumn{}
	}
	return sortColumn{id: o.Fields[0].SourceIDs[0], typ: c.Field.Type, descending: o.Fields[0].Descending}
}

func (s sortColumn) known() bool { return s.typ != nil }

// maxKey is how much of a bound decides the order of files.
const maxKey = 64

// key is the bound by which a file is ordered, or null.
func (s sortColumn) key(e *manifests.Entry) iceberg.Value {
	bounds := e.Lower
	if s.descending {
		bounds = e.Upper
	}
	b, ok := bounds.Of(s.id)
	if !ok {
		return iceberg.Null(s.typ)
	}
	switch s.typ.(type) {
	case icego.StringType, icego.BinaryType:
		b = b[:min(len(b), maxKey)]
	}
	v, err := iceberg.DecodeBound(s.typ, b)
	if err != nil {
		return iceberg.Null(s.typ) // it only orders
	}
	return v
}

// compare orders keys; files without one come last.
func (s sortColumn) compare(a, b iceberg.Value) int {
	switch {
	case a.IsNull() && b.IsNull():
		return 0
	case a.IsNull():
		return 1
	case b.IsNull():
		return -1
	}
	c, err := a.Compare(b)
	if err != nil {
		return 0
	}
	if s.descending {
		return -c
	}
	return c
}

// readData finds the candidates and makes the totals of data.
func (w *work) readData() error {
	want := manifests.ProjectPath | manifests.ProjectPartition | manifests.ProjectLists
	if w.order.known() {
		want |= manifests.ProjectBounds
	}
	paths := &pathSet{}
	for i, m := range w.data {
		if !m.MayHaveLive() {
			continue
		}
		if !w.admitted(m) {
			w.totals.unseen(m)
			w.totals.least.see(m.MinSeq.Or(0))
			if n, known := m.LiveFiles(); known {
				w.left.add(notSelected(), n)
			}
			continue
		}
		err := w.entries(m, want, func(n uint32, e *manifests.Entry) error {
			w.totals.before.DataFiles++
			w.totals.before.Rows = add(w.totals.before.Rows, e.Records)
			w.totals.before.Bytes = add(w.totals.before.Bytes, e.Bytes)
			if e.SpecID != w.in.View.Metadata.DefaultSpecID {
				w.totals.old++
			}
			paths.add(hash(e.Path))
			return w.look(uint32(i), n, e)
		})
		if err != nil {
			return err
		}
	}
	return w.samePath(paths)
}

func notSelected() left {
	return left{code: "not-selected", subject: "data files", text: "the condition does not select their partition", setting: "where"}
}

// look decides whether a live data file is a candidate.
func (w *work) look(manifest, n uint32, e *manifests.Entry) error {
	if err := encrypted(e); err != nil {
		return err
	}
	part := w.parts.of(w, e)
	p := w.parts.all[part]
	f, verdict := w.judge(e, part, p)
	if verdict != nil {
		w.left.add(*verdict, 1)
		p.least.see(e.DataSeq.Or(0))
		w.totals.least.see(e.DataSeq.Or(0))
		return nil
	}
	f.manifest, f.entry = manifest, n
	var key iceberg.Value
	if w.order.known() {
		key = w.order.key(e)
	}
	w.found.add(f, key, w.order.known())
	return nil
}

// judge makes a candidate of a file, or says why it is left.
func (w *work) judge(e *manifests.Entry, part uint32, p *partition) (candidate, *left) {
	switch p.chose {
	case Excluded:
		l := notSelected()
		return candidate{}, &l
	case Undecided:
		return candidate{}, &left{
			code: "where-undecided", subject: "data files of " + w.spec(p), setting: "where", text: "the spec cannot decide the condition",
		}
	}
	b := w.index.burdenOf(e, part, p.deletes)
	if e.Format != manifests.Parquet {
		return candidate{}, &left{code: "not-parquet", subject: fmt.Sprintf("data files in %.20s", e.Format), text: "only Parquet is rewritten"}
	}
	f := candidate{
		bytes: e.Bytes, records: e.Records, gone: b.gone, seq: e.DataSeq.Or(0), part: part, deletes: uint32(min(b.applies, maxPlanDeletes)), exact: b.exact,
	}
	why, wanted := w.wanted(e, b)
	if wanted == nil {
		f.why, f.triggered = why, why == becauseDeleteFiles || why == becauseDeleteRatio
		wanted = w.able(e, b, p)
	}
	return f, wanted
}

// wanted says for which reason a file should be rewritten, or why it need not.
func (w *work) wanted(e *manifests.Entry, b burden) (reasonCode, *left) {
	large := e.Bytes > max(w.sizes.most, leastSplit)
	switch {
	case b.counts >= w.set.DeleteFileThreshold:
		return becauseDeleteFiles, nil
	case b.named > 0 && float64(b.named) >= w.set.DeleteRatioThreshold*float64(e.Records):
		return becauseDeleteRatio, nil
	case e.Bytes < w.sizes.least:
		return becauseSmall, nil
	case large && rowGroups(e) > 1:
		return becauseLarge, nil
	case large && !w.set.RewriteAll:
		return 0, &left{
			code: "cannot-split", subject: "data files", setting: "max_file_size_percent",
			text: fmt.Sprintf("larger than %s, but of one row group as far as the manifests say", ops.Size(w.sizes.most)),
		}
	case w.set.RewriteAll:
		return becauseAll, nil
	}
	return 0, &left{
		code: "healthy", subject: "data files",
		text: fmt.Sprintf("of %s to %s, with fewer than %d deletes and less than %g of their rows deleted",
			ops.Size(w.sizes.least), ops.Size(w.sizes.most), w.set.DeleteFileThreshold, w.set.DeleteRatioThreshold),
	}
}

// rowGroups is how many row groups the split offsets tell of. Offsets that are
// not inside the file, or not in order, tell of none (F016), and there are not
// more groups than rows.
func rowGroups(e *manifests.Entry) int64 {
	n, last := int64(0), int64(0)
	for _, at := range e.SplitOffsets {
		if at > last && at < e.Bytes {
			n, last = n+1, at
		}
	}
	return min(n, e.Records)
}

// able says why a file cannot be rewritten, if it cannot.
func (w *work) able(e *manifests.Entry, b burden, p *partition) *left {
	switch {
	case b.applies > 0 && !w.set.ApplyDeletes:
		return &left{code: "deletes-not-applied", subject: "data files", text: "deletes apply to them, which must not be applied", setting: "apply_deletes"}
	case b.bad != 0:
		return &left{code: "unreadable-delete", subject: "data files", text: b.bad.String()}
	case w.unwritable[p.key.Spec] != "":
		return &left{code: "unwritable-spec", subject: "data files of " + w.spec(p), text: w.unwritable[p.key.Spec]}
	}
	if why := w.readable(e.Path); why != "" {
		return &left{code: "not-readable", subject: "data files", text: "they are in " + why}
	}
	if w.sizes.cap > 0 && e.Bytes > w.sizes.cap {
		return &left{code: "max-rewrite", subject: "data files", text: fmt.Sprintf("larger than the %s of one run", ops.Size(w.sizes.cap)), setting: "max_rewrite_mb"}
	}
	return nil
}

// pathSet are hashes of paths.
type pathSet struct {
	chunks [][]uint64
	n      int
}

// pathDoublings is how often a chunk is four times as large as the one before.
const pathDoublings = 5

func (s *pathSet) add(h uint64) {
	if n := len(s.chunks); n == 0 || len(s.chunks[n-1]) == cap(s.chunks[n-1]) {
		s.chunks = append(s.chunks, make([]uint64, 0, 64<<(2*min(n, pathDoublings))))
	}
	s.n++
	last := &s.chunks[len(s.chunks)-1]
	*last = append(*last, h)
}

// twice are the hashes that occur more than once.
func (s *pathSet) twice() map[uint64]bool {
	all := make([]uint64, 0, s.n)
	for _, c := range s.chunks {
		all = append(all, c...)
	}
	s.chunks = nil
	slices.Sort(all)
	out := map[uint64]bool{}
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			out[all[i]] = true
		}
	}
	return out
}

// samePath refuses a table in which one path is live twice: what of it should be
// rewritten, and what should stay, nobody could say.
func (w *work) samePath(paths *pathSet) error {
	suspect := paths.twice()
	if len(suspect) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, m := range w.data {
		if !m.MayHaveLive() || !w.admitted(m) {
			continue
		}
		err := w.entries(m, manifests.ProjectPath, func(_ uint32, e *manifests.Entry) error {
			if !suspect[hash(e.Path)] {
				return nil
			}
			if seen[e.Path] {
				return fault.New(fault.Corrupt, "data file "+e.Path+" is live twice")
			}
			seen[e.Path] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
