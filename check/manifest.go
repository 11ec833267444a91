package check

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// tally is what the entries of a manifest add up to.
type tally struct {
	files, rows [3]int64 // by status
	minSeq      manifests.Opt[iceberg.SeqNum]
	live        totals
	// added and deleted are entries of the manifest's own snapshot.
	added, deleted totals
}

// totals are the sums of a snapshot's summary. They stop at the greatest
// number instead of overflowing.
type totals struct {
	data, deletes             int64
	records, positions, equal int64
	bytes                     int64
	// content is bytes with deletion vectors counted by their blob, as some
	// writers do.
	content int64
}

func plus(a *int64, n int64) {
	if n > math.MaxInt64-*a {
		*a = math.MaxInt64
		return
	}
	*a += n
}

func (t *totals) add(e *manifests.Entry) {
	plus(&t.bytes, e.Bytes)
	plus(&t.content, e.ContentSize.Or(e.Bytes))
	switch e.Content {
	case manifests.Data:
		t.data++
		plus(&t.records, e.Records)
	case manifests.PositionDeletes:
		t.deletes++
		plus(&t.positions, e.Records)
	case manifests.EqualityDeletes:
		t.deletes++
		plus(&t.equal, e.Records)
	}
}

func (t *totals) merge(o totals) {
	plus(&t.data, o.data)
	plus(&t.deletes, o.deletes)
	plus(&t.records, o.records)
	plus(&t.positions, o.positions)
	plus(&t.equal, o.equal)
	plus(&t.bytes, o.bytes)
	plus(&t.content, o.content)
}

// entries reads every distinct manifest once: those of deletes first, because
// what they say about data files is compared with the data files.
func (c *checker) entries(ctx context.Context) error {
	var err error
	if c.dangling, err = c.newDangling(); err != nil {
		return err
	}
	done := int64(0)
	for _, content := range []manifests.ManifestContent{manifests.DeleteManifest, manifests.DataManifest} {
		for i, m := range c.manifests {
			if m.file.Content != content {
				continue
			}
			c.o.Progress("manifests", done, int64(len(c.manifests)))
			done++
			if err := c.manifest(ctx, int32(i)); err != nil {
				return err
			}
		}
		if c.deep != nil { // what deletes claim is complete before data is looked at
			if err := c.deep.wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) manifest(ctx context.Context, at int32) error {
	m := c.manifests[at]
	size := int64(-1)
	err := func() error {
		if m.file.KeyMetadata != nil {
			return fault.New(fault.Unsupported, "the manifest is encrypted")
		}
		e, err := c.entryOf(ctx, m.spelling)
		if err != nil {
			return err
		}
		size = e.Size
		return c.readManifest(ctx, at, e.Path)
	}()
	if err != nil {
		m.broken = true
		for _, s := range m.snapshots {
			c.snaps[s].broken = true
		}
		if err := c.wrong(ManifestUnreadable, ManifestMissing, m.spelling, err); err != nil {
			return err
		}
	}
	if size >= 0 {
		c.checkVariants(m, size)
	}
	return nil
}

func (c *checker) readManifest(ctx context.Context, at int32, p filer.Path) error {
	m := c.manifests[at]
	o, err := c.r.Open(ctx, p)
	if err != nil {
		return err
	}
	defer o.Close()
	in := o.Stream(0, -1)
	defer in.Close()
	r, err := manifests.NewReader(ctx, in, m.file, c.readOptions(m))
	if err != nil {
		return err
	}
	if h := r.Header(); h.Content != m.file.Content { // F081
		c.addGroup(Finding{Code: ManifestLabel, Severity: Note, Subject: m.spelling,
			Text: fmt.Sprintf("the manifest's own header says that it holds %s, the list says %s", h.Content, m.file.Content)})
	}
	x := &entryCheck{checker: c, m: m, at: at, spec: r.PartitionType()}
	if _, ok := c.m.Spec(r.Header().SpecID); !ok {
		c.found(ManifestSpec, Error, m.spelling, "there is no partition spec %d", r.Header().SpecID)
	}
	x.summaries()
	for e, err := range r.Entries() {
		if err != nil {
			return err
		}
		x.entry(ctx, e)
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// readOptions reads tuples under the table's spec where it is known. The spec
// of an embedded manifest is in its header alone.
func (c *checker) readOptions(m *manifest) manifests.ReadOptions {
	if len(m.variants) > 0 && m.variants[0].key.embedded() {
		return manifests.ReadOptions{}
	}
	t, err := c.m.PartitionType(m.file.SpecID)
	if err != nil {
		return manifests.ReadOptions{} // found when the manifest is read
	}
	return manifests.ReadOptions{Partition: t}
}

// entryCheck checks the entries of one manifest.
type entryCheck struct {
	*checker
	m     *manifest
	at    int32
	spec  *iceberg.PartitionType
	cover []cover
	// last is the tuple that was compared last; neighbours share theirs.
	last   iceberg.TupleKey
	looked bool
}

func (x *entryCheck) say(code Code, s Severity, e *manifests.Entry, format string, args ...any) {
	x.found(code, s, e.Path, "%s, in manifest %s", fmt.Sprintf(format, args...), x.m.spelling)
}

func (x *entryCheck) entry(ctx context.Context, e *manifests.Entry) {
	t := &x.m.tally
	t.files[e.Status]++
	plus(&t.rows[e.Status], e.Records)
	x.statusRules(e)
	if own, ok := x.m.file.SnapshotID.Get(); ok && e.SnapshotID.Is(own) {
		switch e.Status {
		case manifests.Added:
			t.added.add(e)
		case manifests.Deleted:
			t.deleted.add(e)
		case manifests.Existing:
		}
	}
	x.sequence(e)
	x.covered(e)
	p, readable := x.path(e)
	x.contents(e)
	if !e.Live() {
		return
	}
	if seq, ok := e.DataSeq.Get(); ok && (!t.minSeq.Known() || seq < t.minSeq.Value) {
		t.minSeq = manifests.Some(seq)
	}
	t.live.add(e)
	x.dangling.take(x.m, e)
	if !readable {
		return
	}
	x.use(e, p, x.at)
	x.rowRange(e)
	if x.deep != nil {
		x.deep.look(ctx, x.m, e, p)
	}
}

// statusRules are the spec's rules on which snapshot an entry names.
func (x *entryCheck) statusRules(e *manifests.Entry) {
	id, known := e.SnapshotID.Get()
	if !known {
		x.say(EntrySnapshot, Error, e, "the %s entry has no snapshot id", e.Status)
		return
	}
	own, ok := x.m.file.SnapshotID.Get()
	ok = ok && !x.m.variants[0].key.embedded()
	switch {
	case ok && e.Status == manifests.Deleted && id != own: // F086
		x.say(EntrySnapshot, Warning, e, "the DELETED entry has snapshot %d, the manifest %d", id, own)
	case ok && e.Status == manifests.Added && id != own:
		x.say(EntrySnapshot, Warning, e, "the ADDED entry has snapshot %d, the manifest %d", id, own)
	case e.Status == manifests.Existing && e.SnapshotID.From != manifests.Stored:
		x.say(EntrySnapshot, Error, e, "the EXISTING entry does not say which snapshot added the file")
	}
}

func (x *entryCheck) sequence(e *manifests.Entry) {
	most := x.m.file.Seq.Or(0)
	data, ok := e.DataSeq.Get()
	if !ok {
		if e.Status == manifests.Deleted && most > 0 {
			x.say(EntrySequence, Warning, e, "the DELETED entry has no data sequence number")
		}
		return
	}
	file, ok := e.FileSeq.Get()
	switch {
	case data < 0 || data > most:
		x.say(EntrySequence, Error, e, "the data sequence number %d is not between 0 and the manifest's %d", data, most)
	case !ok && e.Live() && most > 0:
		x.say(EntrySequence, Warning, e, "the %s entry has no file sequence number", e.Status)
	case ok && (file < 0 || file > most):
		x.say(EntrySequence, Error, e, "the file sequence number %d is not between 0 and the manifest's %d", file, most)
	}
}

// path resolves the file's path. The other answer is false for a file that is
// not looked at.
func (x *entryCheck) path(e *manifests.Entry) (filer.Path, bool) {
	if !e.Live() {
		return "", false
	}
	p, ok := x.spelling(e.Path)
	if ok && !x.loc.Owned(p) {
		x.addGroup(Finding{Code: FileOutside, Severity: Note, Subject: e.Path, Text: "the file is in none of the table's locations"})
	}
	return p, ok
}
