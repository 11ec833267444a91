package check

import (
	"fmt"
	"sync"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// Reserved columns of delete files and of row lineage (spec, "Reserved Field
// IDs").
const (
	pathColumn iceberg.FieldID = 2147483546
	posColumn  iceberg.FieldID = 2147483545
	rowColumn  iceberg.FieldID = 2147483540
	seqColumn  iceberg.FieldID = 2147483539
	firstFixed iceberg.FieldID = 2147483447 // ids from here on are reserved
)

// columns knows the newest type of every column the table ever had. It is safe
// for concurrent use.
type columns struct {
	history *iceberg.History
	mu      sync.Mutex
	known   map[iceberg.FieldID]icego.Type
}

func (c *columns) typeOf(id iceberg.FieldID) (icego.Type, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[iceberg.FieldID]icego.Type{
			pathColumn: icego.PrimitiveTypes.String, posColumn: icego.PrimitiveTypes.Int64,
			rowColumn: icego.PrimitiveTypes.Int64, seqColumn: icego.PrimitiveTypes.Int64,
		}
	}
	if t, ok := c.known[id]; ok {
		return t, true
	}
	col, ok := c.history.Column(id)
	if !ok {
		return nil, false // not kept: a manifest may name any number of them
	}
	c.known[id] = col.Field.Type
	return col.Field.Type, true
}

// contents checks what an entry says about its file.
func (x *entryCheck) contents(e *manifests.Entry) {
	if e.KeyMetadata != nil {
		x.addGroup(Finding{Code: FileEncrypted, Severity: Note, Subject: e.Path, Text: "the file is encrypted and is not looked into"})
	}
	x.format(e)
	x.bounds(e)
	x.counts(e)
	x.offsets(e)
	if e.Content == manifests.EqualityDeletes {
		x.equality(e)
	}
	if e.IsVector() {
		x.vector(e)
	}
}

func (x *entryCheck) format(e *manifests.Entry) {
	switch e.Format {
	case manifests.Parquet, manifests.Avro, manifests.ORC:
	case manifests.Puffin:
		switch {
		case e.Content != manifests.PositionDeletes:
			x.say(FileFormat, Error, e, "a file of %s cannot be %s", e.Content, e.Format)
		case x.checker.m.FormatVersion < 3:
			x.say(FileFormat, Error, e, "a table of version %d cannot have deletion vectors", x.checker.m.FormatVersion)
		}
	default:
		x.say(FileFormat, Error, e, "the file format %.40q is not known", string(e.Format))
	}
}

// bounds are decoded under the newest type of their column and compared.
func (x *entryCheck) bounds(e *manifests.Entry) {
	for _, lower := range e.Lower {
		low, ok := x.bound(e, "lower", lower)
		if !ok {
			continue
		}
		raw, ok := e.Upper.Of(lower.Column)
		if !ok {
			continue
		}
		high, ok := x.bound(e, "upper", manifests.Bound{Column: lower.Column, Value: raw})
		if !ok || isNaN(low) || isNaN(high) {
			continue
		}
		if n, err := low.Compare(high); err == nil && n > 0 {
			severity := Error
			if _, id := low.Type().(icego.UUIDType); id {
				severity = Warning // old Java writers compared them signed
			}
			x.say(FileBounds, severity, e, "column %d: the lower bound %s is above the upper bound %s", lower.Column, low, high)
		}
	}
	for _, upper := range e.Upper {
		if _, both := e.Lower.Of(upper.Column); !both {
			x.bound(e, "upper", upper)
		}
	}
}

func (x *entryCheck) bound(e *manifests.Entry, which string, b manifests.Bound) (iceberg.Value, bool) {
	t, ok := x.columns.typeOf(b.Column)
	if !ok {
		if b.Column < firstFixed {
			x.addGroup(Finding{Code: FileColumn, Severity: Note, Subject: e.Path, Text: fmt.Sprintf("there are bounds for column %d, which is in no schema", b.Column)})
		}
		return iceberg.Value{}, false
	}
	if _, text := t.(icego.StringType); text && !utf8.Valid(b.Value) { // F045
		x.say(FileBoundsText, Warning, e, "column %d: the %s bound %.40q is not valid UTF-8", b.Column, which, b.Value)
	}
	v, err := iceberg.DecodeBound(t, b.Value)
	switch {
	case err == nil:
		return v, true
	case fault.Is(err, fault.Corrupt):
		x.say(FileBounds, Error, e, "column %d: the %s bound cannot be read: %v", b.Column, which, err)
	}
	return iceberg.Value{}, false
}

func isNaN(v iceberg.Value) bool {
	switch f := v.Any().(type) {
	case float32:
		return f != f
	case float64:
		return f != f
	}
	return false
}

func (x *entryCheck) counts(e *manifests.Entry) {
	for _, c := range []struct {
		name   string
		counts manifests.Counts
	}{{"column size", e.ColumnSizes}, {"value count", e.ValueCounts}, {"null count", e.NullCounts}, {"NaN count", e.NaNCounts}} {
		for _, n := range c.counts {
			if n.N < 0 {
				x.say(FileCounts, Error, e, "column %d: the %s is %d", n.Column, c.name, n.N)
			}
		}
	}
	for _, nulls := range e.NullCounts {
		values, ok := e.ValueCounts.Of(nulls.Column)
		if ok && nulls.N > values {
			x.say(FileCounts, Error, e, "column %d: %d of %d values are null", nulls.Column, nulls.N, values)
		}
	}
	for _, nans := range e.NaNCounts {
		values, ok := e.ValueCounts.Of(nans.Column)
		nulls, _ := e.NullCounts.Of(nans.Column)
		if ok && nans.N > values-nulls && nulls <= values {
			x.say(FileCounts, Error, e, "column %d: %d of %d values that are not null are NaN", nans.Column, nans.N, values-nulls)
		}
	}
}

func (x *entryCheck) offsets(e *manifests.Entry) {
	before := int64(-1)
	for _, at := range e.SplitOffsets {
		if at <= before || at >= e.Bytes {
			x.say(FileOffsets, Warning, e, "the split offsets %v are not ascending within %d bytes", short(e.SplitOffsets), e.Bytes)
			return
		}
		before = at
	}
}

func short(offsets []int64) []int64 { return offsets[:min(len(offsets), 16)] }

func (x *entryCheck) equality(e *manifests.Entry) {
	if len(e.EqualityIDs) == 0 {
		x.say(DeleteKeys, Error, e, "the equality delete names no columns")
	}
	for _, id := range e.EqualityIDs {
		if _, ok := x.columns.typeOf(id); !ok {
			x.say(DeleteKeys, Error, e, "the equality delete is by column %d, which is in no schema", id)
		}
	}
}

// vector checks where a deletion vector says it lies and what it applies to.
func (x *entryCheck) vector(e *manifests.Entry) {
	at, ok := e.ContentOffset.Get()
	size, ok2 := e.ContentSize.Get()
	switch {
	case !ok || !ok2:
		x.say(VectorFields, Error, e, "the deletion vector has no content_offset or no content_size_in_bytes")
	case at < 0 || size <= 0 || at > e.Bytes || size > e.Bytes-at:
		x.say(VectorFields, Error, e, "the deletion vector lies at %d+%d, the file has %d bytes", at, size, e.Bytes)
	}
	if _, ok := e.ReferencedDataFile.Get(); !ok {
		x.say(VectorFields, Error, e, "the deletion vector names no data file")
	}
}
