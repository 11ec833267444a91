package manifests

import (
	"math"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// decoder decodes the fields of entries, into buffers it uses again.
type decoder struct {
	want   Projection
	tuples *tupleReader
	spare  spares
}

// spares are the buffers an entry's slices are decoded into.
type spares struct {
	sizes, values, nulls, nans Counts
	lower, upper               Bounds
	offsets                    []int64
	ids                        []iceberg.FieldID
}

// step decodes one field at c into e.
func (d *decoder) step(c *cursor, s *step, e *Entry) {
	sp := &d.spare
	switch s.code {
	case cStatus:
		e.Status = Status(c.small(s.node))
	case cSnapshot:
		e.SnapshotID = asOpt[iceberg.SnapshotID](c.optLong(s.node))
	case cDataSeq:
		e.DataSeq = asOpt[iceberg.SeqNum](c.optLong(s.node))
	case cFileSeq:
		e.FileSeq = asOpt[iceberg.SeqNum](c.optLong(s.node))
	case cEnter:
		if c.value(s.node) == nil {
			c.bad("data_file")
		}
	case cContent:
		e.Content = Content(c.small(s.node))
	case cFormat:
		e.setFormat(c.optBytes(s.node))
	case cRecords:
		e.Records = c.natural(s.node)
	case cBytes:
		e.Bytes = c.natural(s.node)
	case cBlockSize:
		e.blockSize = c.optLong(s.node)
	case cKeyMetadata:
		e.KeyMetadata = c.optBytes(s.node)
	case cSortOrder:
		if o := c.optLong(s.node); o.Known() {
			e.SortOrderID = Some(iceberg.SortOrderID(c.int32("sort_order_id", o.Value)))
		}
	case cFirstRowID:
		e.FirstRowID = c.optLong(s.node)
	case cContentOffset:
		e.ContentOffset = c.optLong(s.node)
	case cContentSize:
		e.ContentSize = c.optLong(s.node)
	case cPath:
		if d.want&ProjectPath == 0 {
			c.skip(s.node)
			return
		}
		e.Path = string(c.optBytes(s.node))
	case cReferenced:
		if d.want&ProjectPath == 0 {
			c.skip(s.node)
		} else if b := c.optBytes(s.node); b != nil {
			e.ReferencedDataFile = Some(string(b))
		}
	case cPartition:
		if d.tuples == nil {
			c.skip(s.node)
			return
		}
		e.Partition = d.tuples.read(c, s.node)
	case cColumnSizes:
		e.ColumnSizes = d.counts(c, s, &sp.sizes)
	case cValueCounts:
		e.ValueCounts = d.counts(c, s, &sp.values)
	case cNullCounts:
		e.NullCounts = d.counts(c, s, &sp.nulls)
	case cNaNCounts:
		e.NaNCounts = d.counts(c, s, &sp.nans)
	case cLower:
		e.Lower = d.bounds(c, s, &sp.lower)
	case cUpper:
		e.Upper = d.bounds(c, s, &sp.upper)
	case cSplitOffsets, cEqualityIDs:
		if d.want&ProjectLists == 0 {
			c.skip(s.node)
			return
		}
		d.list(c, s, e)
	default:
		c.skip(s.node)
	}
}

func (d *decoder) counts(c *cursor, s *step, spare *Counts) Counts {
	if d.want&ProjectCounts == 0 {
		c.skip(s.node)
		return nil
	}
	v := c.counts(s.node, s.pairs, *spare)
	if v != nil {
		*spare = v
	}
	return v
}

func (d *decoder) bounds(c *cursor, s *step, spare *Bounds) Bounds {
	if d.want&ProjectBounds == 0 {
		c.skip(s.node)
		return nil
	}
	v := c.bounds(s.node, s.pairs, *spare)
	if v != nil {
		*spare = v
	}
	return v
}

func (d *decoder) list(c *cursor, s *step, e *Entry) {
	n := c.value(s.node)
	if n == nil {
		return
	}
	if s.code == cSplitOffsets {
		if d.spare.offsets == nil {
			d.spare.offsets = make([]int64, 0, 4)
		}
		v := d.spare.offsets[:0]
		c.each(n, func() { v = append(v, c.long()) })
		e.SplitOffsets, d.spare.offsets = v, v
		return
	}
	if d.spare.ids == nil {
		d.spare.ids = make([]iceberg.FieldID, 0, 4)
	}
	v := d.spare.ids[:0]
	c.each(n, func() { v = append(v, iceberg.FieldID(c.int32("equality_ids", c.long()))) })
	e.EqualityIDs, d.spare.ids = v, v
}

// small decodes a number that enumerates; out of range it does not decode.
func (c *cursor) small(n *avro.Node) int8 {
	o := c.optLong(n)
	if o.Value < 0 || o.Value > math.MaxInt8 {
		c.p = -1
	}
	return int8(o.Value)
}

// natural decodes a number that cannot be negative or null.
func (c *cursor) natural(n *avro.Node) int64 {
	o := c.optLong(n)
	if !o.Known() || o.Value < 0 {
		c.p = -1
	}
	return o.Value
}

func asOpt[T ~int64](o Opt[int64]) Opt[T] { return Opt[T]{Value: T(o.Value), From: o.From} }
