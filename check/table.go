package check

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// Selection says which snapshots are checked.
type Selection uint8

const (
	// AllSnapshots checks every snapshot of the metadata.
	AllSnapshots Selection = iota
	// HeadOnly checks the current snapshot alone.
	HeadOnly
)

// Progress is told what is being done: a stage, and how much of it.
type Progress func(stage string, done, total int64)

// Options of a check.
type Options struct {
	// Deep opens every live data and delete file as well.
	Deep      bool
	Snapshots Selection
	// MaxFindings are kept in the report; 0 is 1000.
	MaxFindings int
	Progress    Progress
}

const defaultMaxFindings = 1000

// checker is one check under way.
type checker struct {
	*collector
	r   filer.Reader
	v   *iceberg.View
	m   *iceberg.Metadata
	loc *iceberg.Locator
	o   Options

	snaps     []snapshot
	manifests []*manifest
	byPath    map[filer.Path]int32
	columns   *columns
	seed      maphash.Seed
	uses      uses
	ranges    []rowRange
	dangling  *dangling
	deep      *deep
}

// Named loads a table as it is now and checks it. A table that cannot be loaded
// because it contradicts itself is a report with that one finding.
func Named(ctx context.Context, r filer.Reader, id iceberg.TableID, o Options) (*Report, error) {
	v, err := iceberg.Load(ctx, r, id)
	if err == nil {
		return Table(ctx, r, v, o)
	}
	if !fault.Is(err, fault.Corrupt) {
		return nil, err
	}
	rep := &Report{Table: id, Findings: []Finding{}}
	f := Finding{Code: MetadataUnreadable, Severity: Error, Subject: "metadata", Text: err.Error(),
		Hint: "restore an earlier metadata file and point the catalog at it"}
	switch {
	case filer.NotFound(err):
		f.Code = MetadataMissing
	case otherUUID(ctx, r, id):
		f.Code, f.Hint = RecordUUID, "the catalog points at the metadata of another table"
	}
	c := newCollector(1, rep)
	c.add(f)
	return rep, nil
}

// otherUUID reports whether a record has another table uuid than the metadata it
// holds, which is why the table is not loaded.
func otherUUID(ctx context.Context, r filer.Reader, id iceberg.TableID) bool {
	p, err := iceberg.RecordPath(id)
	if err != nil {
		return false
	}
	e, err := r.Stat(ctx, p)
	if err != nil {
		return false
	}
	rec, err := iceberg.ParseRecord(e)
	if err != nil || rec.FullMetadata == nil {
		return false
	}
	m, err := iceberg.ParseMetadata(rec.FullMetadata)
	return err == nil && differ(rec.TableUUID, m.UUID)
}

// Table checks the table as the view has it. What is wrong with the table is in
// the report; an error means that the check could not be made, for example
// because the filer does not answer.
func Table(ctx context.Context, r filer.Reader, v *iceberg.View, o Options) (*Report, error) {
	if o.MaxFindings <= 0 {
		o.MaxFindings = defaultMaxFindings
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	rep := &Report{Table: v.ID, MetadataLocation: v.MetadataLocation, Findings: []Finding{}}
	c := &checker{
		collector: newCollector(o.MaxFindings, rep), r: r, v: v, m: v.Metadata, loc: v.Locations, o: o,
		byPath: map[filer.Path]int32{}, columns: &columns{history: v.Metadata.History()}, seed: maphash.MakeSeed(),
	}
	if o.Deep {
		c.deep = newDeep(c)
		defer func() { _ = c.deep.wait() }() // nothing runs on when a step fails
	}
	for _, step := range []func(context.Context) error{
		c.record, c.metadata, c.lists, c.entries, c.twice, c.rowIDs, c.present, c.summaries, c.danglingNotes, c.moved,
	} {
		if err := step(ctx); err != nil {
			return nil, fault.In("check the table "+v.ID.String(), err)
		}
	}
	c.finish()
	return rep, nil
}

// wrong makes a finding of an error that tells about the table, and returns any
// other.
func (c *checker) wrong(code, missing Code, subject string, err error) error {
	f := Finding{Code: code, Severity: Error, Subject: subject, Text: err.Error()}
	switch fault.Of(err) {
	case fault.Corrupt:
		if filer.NotFound(err) {
			f.Code, f.Text = missing, "the file does not exist"
		}
	case fault.Stale:
		if !filer.NotFound(err) {
			return err
		}
		f.Code, f.Text = missing, "the file does not exist"
	case fault.Unsupported, fault.TooLarge:
		f.Code, f.Severity = FileUnsupported, Note
	case fault.None, fault.Transient, fault.Canceled, fault.Unknown, fault.Halt:
		return err
	}
	c.add(f)
	return nil
}

func (c *checker) found(code Code, s Severity, subject, format string, args ...any) {
	c.add(Finding{Code: code, Severity: s, Subject: subject, Text: fmt.Sprintf(format, args...)})
}

// moved notes that the table was changed meanwhile: files of snapshots that
// were expired are then missing rightly.
func (c *checker) moved(ctx context.Context) error {
	e, err := c.r.Stat(ctx, c.v.RecordPath)
	if filer.NotFound(err) {
		c.found(RecordMoved, Note, "record", "the table was removed during the check")
		return nil
	}
	if err != nil {
		return err
	}
	rec, err := iceberg.ParseRecord(e)
	if err != nil || rec.MetadataLocation != c.v.MetadataLocation {
		c.add(Finding{Code: RecordMoved, Severity: Note, Subject: "record", Text: "the table was changed during the check",
			Hint: "errors about missing files may be due to this; run the check again"})
	}
	return nil
}
