package compact

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// deleteIndex knows the deletes of the table by what they may apply to. A delete
// that names one file takes 40 bytes, any other one 8; names are kept as hashes,
// so what the index says is enough to choose by, and what is planned is then
// looked up anew (fill).
type deleteIndex struct {
	named []named
	// global are the equality deletes of the whole table.
	global scope
	// manifests are the numbers of those that were read.
	manifests []int
}

// named is a delete of one data file.
type named struct {
	path uint64 // hash
	seq  iceberg.SeqNum
	rows int64
	part uint32
	// vector tells a deletion vector from a position delete file.
	vector bool
	// alive: a live file is hit.
	alive bool
	bad   unread
}

// scope are the deletes of a partition, or of the table, that name no file: data
// sequence numbers in ascending order.
type scope struct {
	equality, position []iceberg.SeqNum
	// The newest deletes that cannot be read.
	badEquality, badPosition badDelete
}

// badDelete is a delete of a scope that cannot be read, if why says so.
type badDelete struct {
	seq iceberg.SeqNum
	why unread
}

func (d *badDelete) see(seq iceberg.SeqNum, why unread) {
	if why != 0 && (d.why == 0 || seq > d.seq) {
		d.seq, d.why = seq, why
	}
}

// unread says why a delete cannot be applied; 0 is that it can.
type unread uint8

const (
	unreadFormat unread = iota + 1
	unreadBucket
	unreadKeys
	unreadPlace
)

func (u unread) String() string {
	switch u {
	case unreadFormat:
		return "a delete file applies that is not Parquet but Avro or ORC, which cannot be read"
	case unreadBucket:
		return "a delete file applies that is in another bucket"
	case unreadKeys:
		return "an equality delete applies whose columns are in no schema of the table"
	case unreadPlace:
		return "a delete names the file from another partition or spec: the specification leaves it out, some readers apply it"
	}
	return ""
}

// readDeletes makes the index and the totals of deletes.
func (w *work) readDeletes() error {
	const want = manifests.ProjectPath | manifests.ProjectPartition | manifests.ProjectBounds | manifests.ProjectLists
	for i, m := range w.deletes {
		if !w.rules.GlobalSpecs[m.SpecID] && !w.admitted(m) {
			w.totals.unseen(m)
			continue
		}
		if !m.MayHaveLive() {
			continue
		}
		w.index.manifests = append(w.index.manifests, i)
		err := w.entries(m, want, func(_ uint32, e *manifests.Entry) error {
			w.totals.before.DeleteFiles++
			w.totals.before.Bytes = add(w.totals.before.Bytes, weight(e))
			return w.indexDelete(e)
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(w.index.named, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.part, b.part), cmp.Compare(a.seq, b.seq), cmp.Compare(a.rows, b.rows))
	})
	w.index.global.sort()
	for _, p := range w.parts.all {
		if p.deletes != nil {
			p.deletes.sort()
		}
	}
	return w.twoVectors()
}

// weight is what a delete takes: of a Puffin file only the vector.
func weight(e *manifests.Entry) int64 {
	if n, ok := e.ContentSize.Get(); ok && e.IsVector() && n >= 0 {
		return n
	}
	return e.Bytes
}

func (w *work) indexDelete(e *manifests.Entry) error {
	if err := encrypted(e); err != nil {
		return err
	}
	bad := w.unread(e)
	part := w.parts.of(w, e)
	seq := e.DataSeq.Or(0)
	path, isNamed := e.Target()
	switch {
	case e.IsVector() && !e.ReferencedDataFile.Known():
		return fault.New(fault.Corrupt, "deletion vector in "+e.Path+" names no data file")
	case e.IsVector() && !(e.ContentOffset.Known() && e.ContentSize.Known()):
		return fault.New(fault.Corrupt, "deletion vector in "+e.Path+" has no offset or no size")
	case isNamed:
		w.index.named = append(w.index.named, named{path: hash(path), seq: seq, rows: e.Records, part: part, vector: e.IsVector(), bad: bad})
	case e.Content == manifests.EqualityDeletes && w.rules.GlobalSpecs[e.SpecID]:
		w.index.global.add(seq, true, bad)
	default:
		p := w.parts.all[part]
		if p.deletes == nil {
			p.deletes = &scope{}
		}
		p.deletes.add(seq, e.Content == manifests.EqualityDeletes, bad)
	}
	return nil
}

// unread says why the delete cannot be applied, if it cannot.
func (w *work) unread(e *manifests.Entry) unread {
	switch {
	case e.Format != manifests.Parquet && !e.IsVector():
		return unreadFormat
	case w.readable(e.Path) != "":
		return unreadBucket
	case e.Content != manifests.EqualityDeletes:
		return 0
	case len(e.EqualityIDs) == 0:
		return unreadKeys
	}
	for _, id := range e.EqualityIDs {
		if _, ok := w.in.View.Metadata.History().Column(id); !ok {
			return unreadKeys
		}
	}
	return 0
}

func (s *scope) add(seq iceberg.SeqNum, equality bool, bad unread) {
	if equality {
		s.equality = append(s.equality, seq)
		s.badEquality.see(seq, bad)
	} else {
		s.position = append(s.position, seq)
		s.badPosition.see(seq, bad)
	}
}

func (s *scope) sort() {
	slices.Sort(s.equality)
	slices.Sort(s.position)
}

// from is how many of the ascending numbers are at least seq.
func from(all []iceberg.SeqNum, seq iceberg.SeqNum) int {
	i, _ := slices.BinarySearch(all, seq)
	return len(all) - i
}

// burden is what deletes do to a data file.
type burden struct {
	// applies is how many deletes apply, counts how many of them may hit a row.
	applies, counts int
	// named are the rows that deletes of this file say are deleted, taken
	// together; gone those that certainly are.
	named, gone int64
	// exact reports that gone is all that is deleted.
	exact bool
	bad   unread
}

// burdenOf says which deletes apply to a live data file.
func (x *deleteIndex) burdenOf(e *manifests.Entry, part uint32, own *scope) burden {
	b, vector := x.byName(e, part)
	for _, s := range [...]*scope{own, &x.global} {
		if s != nil {
			s.apply(e, vector, &b)
		}
	}
	if x.astray(e, part) {
		b.bad = unreadPlace
	}
	b.gone, b.named = min(b.gone, e.Records), min(b.named, e.Records)
	return b
}

// byName applies the deletes that name the file, and reports whether one is a
// vector, which stands for all other position deletes of the file.
func (x *deleteIndex) byName(e *manifests.Entry, part uint32) (b burden, vector bool) {
	b.exact = true
	path, seq := hash(e.Path), e.DataSeq.Or(0)
	for i := x.first(path); i < len(x.named) && x.named[i].path == path; i++ {
		n := &x.named[i]
		if n.part != part || n.seq < seq {
			continue
		}
		n.alive = true
		if n.vector {
			x.revive(path, part, seq)
			return burden{applies: 1, counts: 1, named: n.rows, gone: n.rows, exact: true, bad: n.bad}, true
		}
		b.applies++
		b.counts++
		// Two deletes may name the same row.
		b.named, b.gone, b.exact = add(b.named, n.rows), max(b.gone, n.rows), b.counts == 1
		if n.bad != 0 {
			b.bad = n.bad
		}
	}
	return b, false
}

// astray reports whether a delete names the file from elsewhere than the file's
// own partition. By the specification it does not apply; Java goes by the path
// alone, and to it the rows would come back.
func (x *deleteIndex) astray(e *manifests.Entry, part uint32) bool {
	path, seq := hash(e.Path), e.DataSeq.Or(0)
	for i := x.first(path); i < len(x.named) && x.named[i].path == path; i++ {
		if n := &x.named[i]; n.part != part && n.seq >= seq {
			return true
		}
	}
	return false
}

// revive notes of all deletes that name a live file that they do.
func (x *deleteIndex) revive(path uint64, part uint32, seq iceberg.SeqNum) {
	for i := x.first(path); i < len(x.named) && x.named[i].path == path; i++ {
		if n := &x.named[i]; n.part == part && n.seq >= seq {
			n.alive = true
		}
	}
}

// first is the place of the first delete that names the path.
func (x *deleteIndex) first(path uint64) int {
	i, _ := slices.BinarySearchFunc(x.named, path, func(n named, h uint64) int { return cmp.Compare(n.path, h) })
	return i
}

// alive reports whether a delete that names a path hits a live file.
func (x *deleteIndex) alive(path string, part uint32, seq iceberg.SeqNum) bool {
	h := hash(path)
	for i := x.first(h); i < len(x.named) && x.named[i].path == h; i++ {
		if n := &x.named[i]; n.alive && n.part == part && n.seq == seq {
			return true
		}
	}
	return false
}

// apply adds the deletes of a scope. A position delete can only hit a file that
// was there when it was written; so one of the commit that a rewrite was planned
// on applies to the rewrite's outputs by its number, but says nothing of them.
func (s *scope) apply(e *manifests.Entry, vector bool, b *burden) {
	seq := e.DataSeq.Or(0)
	n := from(s.equality, seq+1)
	b.counts += n
	if !vector {
		n += from(s.position, seq)
		b.counts += from(s.position, max(seq, e.FileSeq.Or(0)))
	}
	b.applies += n
	if n > 0 {
		b.exact = false
	}
	if d := s.badEquality; d.why != 0 && d.seq > seq {
		b.bad = d.why
	}
	if d := s.badPosition; d.why != 0 && d.seq >= seq && !vector {
		b.bad = d.why
	}
}

// twoVectors refuses a table in which a data file has two deletion vectors
// (F020). Hashes that occur twice are looked at with their paths.
func (w *work) twoVectors() error {
	suspect := map[uint64]bool{}
	last, seen := uint64(0), false
	for _, n := range w.index.named {
		if !n.vector {
			continue
		}
		if seen && n.path == last {
			suspect[n.path] = true
		}
		last, seen = n.path, true
	}
	if len(suspect) == 0 {
		return nil
	}
	vectors := manifests.Vectors{}
	for _, i := range w.index.manifests {
		err := w.entries(w.deletes[i], manifests.ProjectPath, func(_ uint32, e *manifests.Entry) error {
			if path := e.ReferencedDataFile.Or(""); !e.IsVector() || !suspect[hash(path)] {
				return nil
			}
			return vectors.Add(e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hash is FNV-1a, the same in every process, so that plans are.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// partition is one partition of the table.
type partition struct {
	key   iceberg.PartitionKey
	tuple iceberg.Tuple
	chose Selection
	// deletes of the partition that name no file, nil for none.
	deletes *scope
	// least is the least data sequence number of the files that stay.
	least seqMin
}

// seqMin is a least sequence number, if there is one.
type seqMin struct {
	seq   iceberg.SeqNum
	known bool
}

func (s *seqMin) see(seq iceberg.SeqNum) {
	if !s.known || seq < s.seq {
		s.seq, s.known = seq, true
	}
}

// below reports whether there is a number less than seq.
func (s seqMin) below(seq iceberg.SeqNum) bool { return s.known && s.seq < seq }

// partitions numbers the partitions of the table in the order they are met.
type partitions struct {
	all  []*partition
	by   map[iceberg.PartitionKey]uint32
	last uint32
}

func (p *partitions) init() { p.by = map[iceberg.PartitionKey]uint32{} }

// of is the number of the partition of an entry, which was read with it.
func (p *partitions) of(w *work, e *manifests.Entry) uint32 {
	key := e.PartitionKey()
	if len(p.all) > 0 && p.all[p.last].key == key {
		return p.last // neighbours mostly share their partition
	}
	n, ok := p.by[key]
	if !ok {
		n = uint32(len(p.all))
		part := &partition{key: key, tuple: e.Partition, chose: Selected}
		if w.selector != nil {
			part.chose = w.selector.Partition(w.types[e.SpecID], e.Partition)
		}
		p.all, p.by[key] = append(p.all, part), n
	}
	p.last = n
	return n
}

// label shows a partition to people.
func (w *work) label(p *partition) string {
	t := w.types[p.key.Spec]
	if len(t.Fields) == 0 {
		return ""
	}
	return t.Text(p.tuple)
}

// spec names the spec of a partition in a reason.
func (w *work) spec(p *partition) string { return fmt.Sprintf("spec %d", p.key.Spec) }
