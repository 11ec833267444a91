package check

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/manifests"
)

// useKind says what a use is looked at for.
type useKind uint8

const (
	// useFile is a file: it exists, and is live once in a snapshot.
	useFile useKind = iota
	// usePuffin is a file with deletion vectors: it exists.
	usePuffin
	// useVector is a data file with a deletion vector: it has one in a snapshot.
	useVector
)

// use is one live entry in 24 bytes, so that a table of millions of files is
// checked in tens of megabytes. Paths are hashed; a hash that matters is turned
// back into its path by reading the manifest again.
type use struct {
	hash     uint64
	size     int64
	manifest int32
	kind     useKind
}

// uses are all live entries of all distinct manifests.
type uses struct {
	all []use
	// texts are the spellings by hash, as long as they are few.
	texts map[uint64]string
	many  bool
}

// fewFiles is up to how many files are looked up one by one. Beyond, the table's
// directories are listed. Tests lower it.
var fewFiles = 4096

func (c *checker) hash(p filer.Path) uint64 { return maphash.String(c.seed, string(p)) }

// use notes a live entry.
func (x *entryCheck) use(e *manifests.Entry, p filer.Path, at int32) {
	u := use{hash: x.hash(p), size: e.Bytes, manifest: at}
	if e.IsVector() {
		u.kind = usePuffin
		if ref, ok := e.ReferencedDataFile.Get(); ok {
			if data, err := x.loc.Resolve(ref); err == nil {
				x.uses.all = append(x.uses.all, use{hash: x.hash(data), manifest: at, kind: useVector})
			}
		}
	}
	x.uses.all = append(x.uses.all, u)
	if x.uses.many {
		return
	}
	if x.uses.texts == nil {
		x.uses.texts = map[uint64]string{}
	}
	x.uses.texts[u.hash] = e.Path
	if len(x.uses.texts) > fewFiles {
		x.uses.texts, x.uses.many = nil, true
	}
}

// twice looks for files that are live twice in one snapshot, and for data files
// with two vectors.
func (c *checker) twice(ctx context.Context) error {
	all := c.uses.all
	slices.SortFunc(all, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.hash, b.hash), cmp.Compare(a.manifest, b.manifest))
	})
	together := &pairs{c: c, known: map[uint64]int32{}}
	suspects := map[int32]map[uint64]doubled{}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].kind == all[from].kind && all[to].hash == all[from].hash {
			to++
		}
		if all[from].kind != usePuffin && to-from > 1 {
			if a, b, snap, ok := together.meet(all[from:to]); ok {
				if suspects[a] == nil {
					suspects[a] = map[uint64]doubled{}
				}
				suspects[a][all[from].hash] = doubled{all[from].kind, b, snap}
			}
		}
		from = to
	}
	for _, at := range sortedKeys(suspects) {
		if err := c.tellTwice(ctx, at, suspects[at]); err != nil {
			return err
		}
	}
	return nil
}

type doubled struct {
	kind  useKind
	other int32
	snap  int32
}

// tellTwice reads a manifest again for the paths behind the hashes.
func (c *checker) tellTwice(ctx context.Context, at int32, suspects map[uint64]doubled) error {
	m := c.manifests[at]
	told := map[uint64]bool{}
	for e, err := range manifests.EntriesOf(ctx, c.r, c.loc, m.file, c.readOptions(m)) {
		if err != nil {
			return c.wrong(ManifestUnreadable, ManifestMissing, m.spelling, err)
		}
		if !e.Live() {
			continue
		}
		text, code, kind, what := e.Path, EntryTwice, useFile, "the file is live twice"
		if e.IsVector() {
			text, code, kind, what = e.ReferencedDataFile.Value, VectorTwice, useVector, "the data file has two deletion vectors"
		}
		p, err := c.loc.Resolve(text)
		if err != nil {
			continue
		}
		h := c.hash(p)
		if d, ok := suspects[h]; ok && d.kind == kind && !told[h] {
			told[h] = true
			c.found(code, Error, text, "%s in %s: in manifests %s and %s", what, c.snaps[d.snap].subject(), m.spelling, c.manifests[d.other].spelling)
		}
	}
	return nil
}

// pairs knows which manifests are in one snapshot.
type pairs struct {
	c     *checker
	known map[uint64]int32
}

// meet returns two uses of one file that a snapshot has at once.
func (p *pairs) meet(group []use) (a, b, snap int32, ok bool) {
	for i := range group {
		for j := i + 1; j < len(group); j++ {
			a, b := group[i].manifest, group[j].manifest
			if s := p.snapshot(a, b); s >= 0 {
				return a, b, s, true
			}
		}
	}
	return 0, 0, 0, false
}

// snapshot is the position of a snapshot that has both manifests, or -1.
func (p *pairs) snapshot(a, b int32) int32 {
	x, y := p.c.manifests[a].snapshots, p.c.manifests[b].snapshots
	if a == b {
		return x[0]
	}
	key := uint64(a)<<32 | uint64(b)
	if s, ok := p.known[key]; ok {
		return s
	}
	found := int32(-1)
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			found, i = x[i], len(x)
		case x[i] < y[j]:
			i++
		default:
			j++
		}
	}
	if len(p.known) >= maxPairs {
		clear(p.known)
	}
	p.known[key] = found
	return found
}

const maxPairs = 1 << 20

// rowRange are the row ids of a live data file (v3).
type rowRange struct {
	from, n  int64
	manifest int32
}

func (x *entryCheck) rowRange(e *manifests.Entry) {
	if e.Content != manifests.Data || e.Records == 0 {
		return
	}
	from, ok := e.FirstRowID.Get()
	if !ok {
		return
	}
	next := x.checker.m.NextRowID
	if next == nil || from < 0 || from > *next || e.Records > *next-from {
		x.say(EntryRowIDs, Error, e, "the row ids %d+%d pass the table's next-row-id", from, e.Records)
		return
	}
	x.ranges = append(x.ranges, rowRange{from, e.Records, x.at})
}

// rowIDs looks for live data files of one snapshot that share row ids.
func (c *checker) rowIDs(context.Context) error {
	slices.SortFunc(c.ranges, func(a, b rowRange) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.manifest, b.manifest))
	})
	together := &pairs{c: c, known: map[uint64]int32{}}
	var open []rowRange
	for _, r := range c.ranges {
		open = slices.DeleteFunc(open, func(o rowRange) bool { return o.from+o.n <= r.from })
		for _, o := range open {
			if s := together.snapshot(min(o.manifest, r.manifest), max(o.manifest, r.manifest)); s >= 0 {
				c.found(EntryRowIDs, Error, c.manifests[r.manifest].spelling, "row ids %d to %d of a file overlap %d to %d of a file in %s, both live in %s",
					r.from, r.from+r.n, o.from, o.from+o.n, c.manifests[o.manifest].spelling, c.snaps[s].subject())
				break
			}
		}
		open = append(open, r)
	}
	c.ranges = nil
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// dangling decides which deletes of the head can hit nothing.
type dangling struct {
	c       *checker
	rules   *manifests.Liveness
	head    map[int32]bool
	deletes []*manifests.Entry
	skipped int64
}

// maxDangling bounds the memory for deletes that are remembered. Tests lower it.
var maxDangling = 100_000

func (c *checker) newDangling() (*dangling, error) {
	d := &dangling{c: c, head: map[int32]bool{}}
	rules, err := manifests.RulesFor(c.m)
	if err != nil {
		return nil, err
	}
	d.rules = manifests.NewLiveness(rules)
	if c.m.CurrentSnapshotID == nil {
		return d, nil
	}
	for i := range c.snaps {
		if c.snaps[i].ID == *c.m.CurrentSnapshotID {
			for _, at := range c.snaps[i].manifests {
				d.head[at] = true
			}
		}
	}
	return d, nil
}

// take looks at a live entry. Deletes come before data.
func (d *dangling) take(m *manifest, e *manifests.Entry) {
	if !d.head[d.c.byPath[m.path]] {
		return
	}
	if e.Content == manifests.Data {
		if len(d.deletes) > 0 {
			d.rules.See(e)
		}
		return
	}
	if len(d.deletes) >= maxDangling {
		d.skipped++
		return
	}
	slim := &manifests.Entry{Status: e.Status, DataSeq: e.DataSeq}
	slim.Content, slim.Format, slim.Path, slim.SpecID, slim.Partition = e.Content, e.Format, e.Path, e.SpecID, e.Partition
	if target, ok := e.Target(); ok {
		slim.ReferencedDataFile = manifests.Some(target)
	}
	d.rules.Watch(slim)
	d.deletes = append(d.deletes, slim)
}

func (c *checker) danglingNotes(context.Context) error {
	for at := range c.dangling.head {
		if c.manifests[at].broken {
			return nil // what is not known may be what a delete hits
		}
	}
	for _, e := range c.dangling.deletes {
		if c.dangling.rules.Dangling(e) {
			c.addGroup(Finding{Code: DeleteDangling, Severity: Note, Subject: e.Path, Text: fmt.Sprintf("the file of %s can hit no row of the head", e.Content),
				Hint: "rewrite_position_delete_files removes dangling deletes"})
		}
	}
	if n := c.dangling.skipped; n > 0 {
		c.found(DeleteSkipped, Note, "head", "%d deletes were not looked at for whether they can hit anything", n)
	}
	return nil
}
