package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"sync"

	icego "github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/inspect"
)

// opened are the files looked into at once.
const opened = 4

// deep looks into data and delete files, each once.
type deep struct {
	c      *checker
	mapped bool
	seen   map[uint64]bool
	group  *errgroup.Group

	mu sync.Mutex
	// claims are the greatest positions that deletes name, by data file.
	claims map[uint64]claim
}

type claim struct {
	last int64
	by   string
}

func newDeep(c *checker) *deep {
	d := &deep{c: c, seen: map[uint64]bool{}, claims: map[uint64]claim{}}
	d.mapped = c.m.Properties[iceberg.NameMappingProperty] != ""
	d.reset()
	return d
}

func (d *deep) reset() {
	d.group = &errgroup.Group{}
	d.group.SetLimit(opened)
}

// wait ends what is under way.
func (d *deep) wait() error {
	err := d.group.Wait()
	d.reset()
	return err
}

// look starts the look into the file of a live entry.
func (d *deep) look(ctx context.Context, m *manifest, e *manifests.Entry, p filer.Path) {
	key := d.c.hash(p)
	if e.IsVector() {
		var h maphash.Hash
		h.SetSeed(d.c.seed)
		_ = binary.Write(&h, binary.LittleEndian, []int64{int64(key), e.ContentOffset.Value, e.ContentSize.Value}) // a hash takes all
		key = h.Sum64()
	}
	if d.seen[key] {
		return
	}
	d.seen[key] = true
	if e.Content == manifests.Data {
		if claimed, ok := d.claims[key]; ok && claimed.last >= e.Records {
			d.c.found(DeepPositions, Error, claimed.by, "it deletes position %d of %s, which has %d rows", claimed.last, e.Path, e.Records)
		}
	}
	if e.KeyMetadata != nil {
		return // noted already
	}
	if e.Format != manifests.Parquet && !e.IsVector() {
		d.c.addGroup(Finding{Code: FileUnsupported, Severity: Note, Subject: e.Path, Text: fmt.Sprintf("files of format %s are not looked into", e.Format)})
		return
	}
	e = e.Clone()
	d.group.Go(func() error {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, "look into "+e.Path, context.Cause(ctx))
		}
		return d.file(ctx, m, e)
	})
}

func (d *deep) file(ctx context.Context, m *manifest, e *manifests.Entry) error {
	at, err := d.c.loc.Find(ctx, d.c.r, e.Path)
	if filer.NotFound(err) {
		return nil // found elsewhere
	}
	if err != nil {
		return d.c.wrong(DeepUnreadable, FileMissing, e.Path, err)
	}
	o, err := d.c.r.Open(ctx, at.Path)
	if err != nil {
		return d.c.wrong(DeepUnreadable, FileMissing, e.Path, err)
	}
	defer o.Close()
	d.mu.Lock()
	d.c.report.Stats.Opened++
	d.mu.Unlock()
	if e.IsVector() {
		return d.c.wrongOr(DeepVector, e.Path, d.vector(o, e))
	}
	options := column.Options{}
	if e.Content != manifests.PositionDeletes {
		options.Whole = -1 // of others the footer is all that is read
	}
	f, err := column.Open(ctx, o, e.Path, options)
	if err != nil {
		return d.c.wrong(DeepUnreadable, FileMissing, e.Path, err)
	}
	defer f.Close()
	if rows := f.Footer().Rows; rows != e.Records {
		d.c.found(DeepRows, Error, e.Path, "the file has %d rows, manifest %s says %d", rows, m.spelling, e.Records)
	}
	d.ranges(f.Footer(), m, e)
	if e.Content == manifests.PositionDeletes {
		return d.c.wrongOr(DeepPositions, e.Path, d.positions(f, e))
	}
	d.fieldIDs(f.Footer().Schema, e)
	return nil
}

// wrongOr is wrong for an error that may be nil.
func (c *checker) wrongOr(code Code, subject string, err error) error {
	if err == nil {
		return nil
	}
	return c.wrong(code, FileMissing, subject, err)
}

// fieldIDs: without ids, columns are found through the name mapping alone.
func (d *deep) fieldIDs(s *format.Schema, e *manifests.Entry) {
	for _, n := range s.Leaves {
		if n.FieldID != nil {
			return
		}
	}
	if len(s.Leaves) > 0 && !d.mapped {
		d.c.add(Finding{Code: DeepFieldIDs, Severity: Error, Subject: e.Path, Text: "the file has no field ids, and the table has no name mapping",
			Hint: "set the table property " + iceberg.NameMappingProperty})
	}
}

// ranges compares the bounds of the entry with the statistics in the file: what
// is in the file must be within the bounds.
func (d *deep) ranges(f *format.Footer, m *manifest, e *manifests.Entry) {
	for i, n := range f.Schema.Leaves {
		if n.FieldID == nil || n.MaxRep > 0 {
			continue
		}
		id := iceberg.FieldID(*n.FieldID)
		t, ok := d.c.columns.typeOf(id)
		if !ok {
			continue
		}
		low, high, ok := inspect.Range(f, i, t)
		if !ok {
			continue
		}
		lower, ok := d.bound(t, e.Lower, id)
		if n, err := lower.Compare(low); ok && err == nil && n > 0 && !prefixed(lower, low) && !zeros(lower, low) {
			d.c.found(DeepBounds, severityOf(t), e.Path, "column %d: the file has %s, below the lower bound %s in manifest %s", id, low, lower, m.spelling)
		}
		upper, ok := d.bound(t, e.Upper, id)
		if n, err := upper.Compare(high); ok && err == nil && n < 0 && !zeros(upper, high) {
			d.c.found(DeepBounds, severityOf(t), e.Path, "column %d: the file has %s, above the upper bound %s in manifest %s", id, high, upper, m.spelling)
		}
	}
}

func (d *deep) bound(t icego.Type, b manifests.Bounds, id iceberg.FieldID) (iceberg.Value, bool) {
	raw, ok := b.Of(id)
	if !ok {
		return iceberg.Value{}, false
	}
	v, err := iceberg.DecodeBound(t, raw)
	return v, err == nil && !isNaN(v)
}

// severityOf: writers may cut text in a file's statistics, so that what they say
// of it proves nothing.
func severityOf(t icego.Type) Severity {
	switch t.(type) {
	case icego.StringType, icego.BinaryType:
		return Warning
	}
	return Error
}

// prefixed: the file's least value may be the cut one.
func prefixed(bound, stat iceberg.Value) bool {
	return severityOf(bound.Type()) == Warning && bytes.HasPrefix(bound.Bytes(), stat.Bytes())
}

// zeros: Parquet's statistics do not tell -0.0 from +0.0.
func zeros(a, b iceberg.Value) bool {
	x, ok := number(a)
	y, ok2 := number(b)
	return ok && ok2 && x == 0 && y == 0
}

func number(v iceberg.Value) (float64, bool) {
	switch f := v.Any().(type) {
	case float32:
		return float64(f), true
	case float64:
		return f, true
	}
	return 0, false
}

// claim notes a position that a delete names.
func (d *deep) claim(data, by string, last int64) {
	p, err := d.c.loc.Resolve(data)
	if err != nil {
		return // a path that means nothing hits nothing
	}
	key := d.c.hash(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if c, ok := d.claims[key]; !ok || last > c.last {
		d.claims[key] = claim{last, by}
	}
}

// positions reads a position delete file (F021).
func (d *deep) positions(f *column.File, e *manifests.Entry) error {
	target, single := e.ReferencedDataFile.Get()
	var path []byte
	last := int64(-1)
	disorder, stranger, rows := false, "", 0
	err := inspect.Positions(f, func(p []byte, pos int64) error {
		if pos < 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("it deletes position %d of %s", pos, p))
		}
		order := bytes.Compare(p, path)
		if rows > 0 && (order < 0 || order == 0 && pos < last) {
			disorder = true
		}
		if single && stranger == "" && string(p) != target {
			stranger = string(p)
		}
		if rows > 0 && order != 0 {
			d.claim(string(path), e.Path, last)
			last = -1
		}
		if order != 0 {
			path = append(path[:0], p...)
		}
		last = max(last, pos)
		rows++
		return nil
	})
	if rows > 0 {
		d.claim(string(path), e.Path, last)
	}
	if disorder {
		d.c.found(DeepOrder, Warning, e.Path, "the rows of the position delete file are not in the order of path and position")
	}
	if stranger != "" {
		d.c.found(DeepPositions, Error, e.Path, "the manifest says that it deletes from %s alone, it deletes from %s as well", target, stranger)
	}
	return err
}

// vector reads a deletion vector (F021). Its positions are compared with the data
// file's rows once both are known.
func (d *deep) vector(o filer.Object, e *manifests.Entry) error {
	at, ok := e.ContentOffset.Get()
	n, ok2 := e.ContentSize.Get()
	if !ok || !ok2 || at < 0 || n <= 0 || at > o.Size() || n > o.Size()-at {
		return nil // found with the entry, or as the file's size
	}
	p, err := deletes.ReadVector(o, o.Size(), deletes.Vector{Offset: at, Size: n, Records: e.Records, Rows: math.MaxInt64})
	if err != nil {
		return err
	}
	if ref, ok := e.ReferencedDataFile.Get(); ok && !p.Empty() {
		d.claim(ref, e.Path, p.Max())
	}
	return nil
}
