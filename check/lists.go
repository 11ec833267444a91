package check

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// snapshot is a snapshot with its manifests.
type snapshot struct {
	*iceberg.Snapshot
	manifests []int32
	// broken: the list, or a manifest of it, cannot be read.
	broken bool
}

func (s *snapshot) subject() string { return fmt.Sprintf("snapshot %d", s.ID) }

// manifest is one distinct manifest with all that lists say about it.
type manifest struct {
	path     filer.Path
	spelling string
	// file is what it is read by.
	file *manifests.ManifestFile
	// variants are the different things that lists say about it; usually one.
	variants []variant
	// snapshots are the positions of those that list it, ascending.
	snapshots []int32
	tally     tally
	broken    bool
}

// variant is what a list says, with the list.
type variant struct {
	key  variantKey
	file *manifests.ManifestFile
	list string
}

type variantKey struct {
	length            int64
	spec              iceberg.SpecID
	content           manifests.ManifestContent
	seq, minSeq       manifests.Opt[iceberg.SeqNum]
	snapshot          manifests.Opt[iceberg.SnapshotID]
	files, rows       [3]manifests.Opt[int64]
	firstRow          manifests.Opt[int64]
	summaries         uint64
	encrypted, hasAny bool
}

// maxVariants bounds the memory for lists that keep changing their mind.
const maxVariants = 16

func (c *checker) key(f *manifests.ManifestFile) variantKey {
	k := variantKey{
		length: f.Length, spec: f.SpecID, content: f.Content, seq: f.Seq, minSeq: f.MinSeq, snapshot: f.SnapshotID,
		files:    [3]manifests.Opt[int64]{f.ExistingFiles, f.AddedFiles, f.DeletedFiles},
		rows:     [3]manifests.Opt[int64]{f.ExistingRows, f.AddedRows, f.DeletedRows},
		firstRow: f.FirstRowID, encrypted: f.KeyMetadata != nil, hasAny: f.Partitions != nil,
	}
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, p := range f.Partitions {
		fmt.Fprintf(&h, "%t %v %t %d %t %d ", p.ContainsNull, p.ContainsNaN, p.Lower != nil, len(p.Lower), p.Upper != nil, len(p.Upper))
		_, _ = h.Write(p.Lower)
		_, _ = h.Write(p.Upper)
	}
	k.summaries = h.Sum64()
	return k
}

// lists reads the manifest lists and gathers the distinct manifests.
func (c *checker) lists(ctx context.Context) error {
	if c.o.Snapshots == HeadOnly {
		if s := c.m.Current(); s != nil {
			c.snaps = []snapshot{{Snapshot: s}}
		}
	} else {
		c.snaps = make([]snapshot, len(c.m.Snapshots))
		for i := range c.m.Snapshots {
			c.snaps[i].Snapshot = &c.m.Snapshots[i]
		}
	}
	c.report.Stats.Snapshots = int64(len(c.snaps))
	for i := range c.snaps {
		c.o.Progress("manifest lists", int64(i), int64(len(c.snaps)))
		if err := c.list(ctx, int32(i)); err != nil {
			return err
		}
	}
	c.report.Stats.Manifests = int64(len(c.manifests))
	return nil
}

func (c *checker) list(ctx context.Context, at int32) error {
	s := &c.snaps[at]
	subject := s.ManifestList
	if subject == "" {
		subject = s.subject()
	} else {
		c.spelling(subject)
	}
	if s.KeyID != "" {
		s.broken = true
		return nil // noted with the metadata
	}
	var listed []*manifests.ManifestFile
	for f, err := range manifests.OfSnapshot(ctx, c.r, c.loc, s.Snapshot) {
		if err != nil {
			s.broken = true
			return c.wrong(ListUnreadable, ListMissing, subject, err)
		}
		listed = append(listed, f)
		if err := c.listed(at, subject, f); err != nil {
			return err
		}
	}
	c.listedRows(s, subject, listed)
	return nil
}

// listed takes in what a list says about one manifest.
func (c *checker) listed(at int32, list string, f *manifests.ManifestFile) error {
	s := &c.snaps[at]
	p, ok := c.spelling(f.Path)
	if !ok {
		s.broken = true
		return nil
	}
	index, known := c.byPath[p]
	if !known {
		index = int32(len(c.manifests))
		c.byPath[p] = index
		c.manifests = append(c.manifests, &manifest{path: p, spelling: f.Path, file: f})
	}
	m := c.manifests[index]
	if n := len(m.snapshots); n > 0 && m.snapshots[n-1] == at {
		c.found(ListTwice, Error, list, "it names the manifest %s twice", f.Path)
		return nil
	}
	m.snapshots = append(m.snapshots, at)
	s.manifests = append(s.manifests, index)
	if f.FirstRowID.Known() && !m.file.FirstRowID.Known() {
		m.file = f
	}
	if seq := f.Seq.Or(0); seq > s.SequenceNumber {
		c.found(ListSequence, Error, list, "manifest %s has sequence number %d, its snapshot %d", f.Path, seq, s.SequenceNumber)
	}
	c.added(s, list, f)
	key := c.key(f)
	if len(m.variants) < maxVariants && !slices.ContainsFunc(m.variants, func(v variant) bool { return v.key == key }) {
		m.variants = append(m.variants, variant{key, f, list})
	}
	return nil
}

// added checks which snapshot a list says has added a manifest.
func (c *checker) added(s *snapshot, list string, f *manifests.ManifestFile) {
	id, ok := f.SnapshotID.Get()
	if !ok {
		if c.m.FormatVersion > 1 && f.Seq.Or(0) > 0 {
			c.found(ListSnapshot, Warning, list, "manifest %s has no added_snapshot_id", f.Path)
		}
		return
	}
	by, ok := c.m.Snapshot(id)
	if !ok {
		return // expired
	}
	if s.ManifestList != "" && by.SequenceNumber != f.Seq.Or(0) {
		c.found(ListSnapshot, Warning, list, "manifest %s has sequence number %d, but snapshot %d, which is said to have added it, has %d",
			f.Path, f.Seq.Or(0), id, by.SequenceNumber)
	}
}

// listedRows checks the row id ranges of a list (v3): they do not overlap, and
// they are below the table's next row id.
func (c *checker) listedRows(s *snapshot, list string, files []*manifests.ManifestFile) {
	if c.m.NextRowID == nil || s.FirstRowID == nil {
		return
	}
	type span struct {
		from, to int64
		path     string
	}
	var spans []span
	for _, f := range files {
		from, ok := f.FirstRowID.Get()
		rows, counted := f.LiveRows()
		switch {
		case f.Content == manifests.DeleteManifest:
			if ok {
				c.found(ListRowIDs, Error, list, "delete manifest %s has a first_row_id", f.Path)
			}
		case !ok:
			c.found(ListRowIDs, Error, list, "data manifest %s has no first_row_id", f.Path)
		case counted && rows > math.MaxInt64-from || counted && from+rows > *c.m.NextRowID:
			c.found(ListRowIDs, Error, list, "the row ids %d+%d of manifest %s pass the table's next-row-id %d", from, rows, f.Path, *c.m.NextRowID)
		case counted && rows > 0:
			spans = append(spans, span{from, from + rows, f.Path})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(min(1, max(-1, a.from-b.from))) })
	for i := 1; i < len(spans); i++ {
		if a, b := spans[i-1], spans[i]; b.from < a.to {
			c.found(ListRowIDs, Error, list, "the row ids of manifests %s and %s overlap: %d to %d and %d to %d", a.path, b.path, a.from, a.to, b.from, b.to)
		}
	}
}

// spelling resolves a path of metadata, lists or manifests and notes spellings
// that other readers do not understand. The other answer is false for a path
// that is not followed.
func (c *checker) spelling(text string) (filer.Path, bool) {
	p, err := c.loc.Resolve(text)
	if err != nil {
		c.found(FilePath, Error, text, "%v", err)
		return "", false
	}
	if !absoluteURI(text) { // F124
		c.addGroup(Finding{Code: FileRelative, Severity: Note, Subject: text, Text: "the path is not an absolute URI",
			Hint: "Spark, Trino and others read only absolute locations"})
	}
	if c.loc.Foreign(p) {
		c.addGroup(Finding{Code: FileForeign, Severity: Warning, Subject: text, Text: "the file is in another bucket and is not looked at"})
		return p, false
	}
	return p, true
}

func (c *checker) checkVariants(m *manifest, size int64) {
	for _, v := range m.variants {
		f := v.file
		if v.key.length != size && !v.key.embedded() {
			c.found(ListLength, Error, v.list, "manifest %s has %d bytes, the list says %d", f.Path, size, f.Length)
		}
		if a := m.variants[0].key; !v.key.embedded() && !a.embedded() && (v.key.snapshot != a.snapshot || v.key.seq.Value != a.seq.Value) {
			c.found(ListChanged, Warning, v.list, "manifest %s has another sequence number or added_snapshot_id than in %s", f.Path, m.variants[0].list)
		}
		if m.broken {
			continue
		}
		for i, name := range [...]string{"existing", "added", "deleted"} {
			if n, ok := v.key.files[i].Get(); ok && n != m.tally.files[i] {
				c.found(ListCounts, Error, v.list, "manifest %s has %d %s files, the list says %d", f.Path, m.tally.files[i], name, n)
			}
			if n, ok := v.key.rows[i].Get(); ok && n != m.tally.rows[i] {
				c.found(ListCounts, Error, v.list, "manifest %s has %d %s rows, the list says %d", f.Path, m.tally.rows[i], name, n)
			}
		}
		least, live := m.tally.minSeq.Get()
		if n, ok := v.key.minSeq.Get(); ok && live && n != least { // F085
			severity := Warning
			if n > least {
				severity = Error // readers skip manifests by it
			}
			c.found(ListMinSeq, severity, v.list, "the least data sequence number of manifest %s is %d, the list says %d", f.Path, least, n)
		}
	}
}

// embedded: nothing is known about a manifest that a snapshot names itself.
func (k variantKey) embedded() bool { return k.length == 0 && !k.files[1].Known() }

// entryOf returns the entry of a file that the metadata names.
func (c *checker) entryOf(ctx context.Context, spelling string) (*filer.Entry, error) {
	e, err := c.loc.Find(ctx, c.r, spelling)
	return e, fault.In(spelling, err)
}

// absoluteURI reports whether a path has a scheme.
func absoluteURI(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && scheme != "" && !strings.Contains(scheme, "/")
}
