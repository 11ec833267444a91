package manifests

import (
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// file encodes the data_file record from an entry's fields.
func (w *Writer) file(b []byte, e *Entry, h head) ([]byte, error) {
	var err error
	known := len(w.fields) - len(w.extraFile)
	for i := range w.fields[:known] {
		switch c := codes[w.fields[i].ID]; c {
		case cPartition:
			if b, err = w.tuples.append(b, e.Partition); err != nil {
				return nil, err
			}
		case cFirstRowID:
			b = w.firstRow(b, h)
		default:
			b = appendField(b, c, &e.File)
		}
	}
	return appendExtras(b, w.extraFile, e, true), nil
}

// firstRow encodes first_row_id: null for ADDED entries, which inherit it, and
// for delete files (semantics: v3 lineage).
func (w *Writer) firstRow(b []byte, h head) []byte {
	if h.status == Added || w.o.Content != DataManifest {
		return append(b, 0)
	}
	return appendOpt(b, h.firstRow)
}

func (w *Writer) entryExtras(b []byte, e *Entry) []byte {
	if len(w.extraEntry) == 0 {
		return b
	}
	return appendExtras(b, w.extraEntry, e, false)
}

// appendExtras encodes the fields of unknown meaning as the entry was read
// with them.
func appendExtras(b []byte, extras extraFields, e *Entry, inFile bool) []byte {
next:
	for i := range extras {
		to := &extras[i]
		if l := e.raw.layout; l != nil {
			for _, at := range l.extras {
				if s := &l.steps[at]; s.inDF == inFile && sameField(to, s.field) {
					b = appendExtra(b, to.Type, s.node, e.raw.bytes(at, at+1))
					continue next
				}
			}
		}
		b = appendNull(b, to.Type)
	}
	return b
}

// appendField encodes a field of data_file of the type fileFields gives it.
func appendField(b []byte, c code, f *File) []byte {
	switch c {
	case cContent:
		return avro.AppendLong(b, int64(f.Content))
	case cPath:
		return avro.AppendBytes(b, f.Path)
	case cFormat:
		return avro.AppendBytes(b, f.formatName())
	case cRecords:
		return avro.AppendLong(b, f.Records)
	case cBytes:
		return avro.AppendLong(b, f.Bytes)
	case cBlockSize:
		return avro.AppendLong(b, f.blockSize.Or(defaultBlockSize))
	case cColumnSizes:
		return appendCounts(b, f.ColumnSizes)
	case cValueCounts:
		return appendCounts(b, f.ValueCounts)
	case cNullCounts:
		return appendCounts(b, f.NullCounts)
	case cNaNCounts:
		return appendCounts(b, f.NaNCounts)
	case cLower:
		return appendBounds(b, f.Lower)
	case cUpper:
		return appendBounds(b, f.Upper)
	case cKeyMetadata:
		return appendBlob(b, f.KeyMetadata)
	case cSplitOffsets:
		return appendList(b, f.SplitOffsets)
	case cEqualityIDs:
		return appendList(b, f.EqualityIDs)
	case cSortOrder:
		return appendOpt(b, f.SortOrderID)
	case cContentOffset:
		return appendOpt(b, f.ContentOffset)
	case cContentSize:
		return appendOpt(b, f.ContentSize)
	case cReferenced:
		if p, ok := f.ReferencedDataFile.Get(); ok {
			return avro.AppendBytes(append(b, 2), p)
		}
	}
	return append(b, 0)
}

// The encodings below are of optional types, null first.

func appendOpt[T ~int32 | ~int64](b []byte, o Opt[T]) []byte {
	if !o.Known() {
		return append(b, 0)
	}
	return avro.AppendLong(append(b, 2), int64(o.Value))
}

func appendBlob(b, v []byte) []byte {
	if v == nil {
		return append(b, 0)
	}
	return avro.AppendBytes(append(b, 2), v)
}

func appendCounts(b []byte, v Counts) []byte {
	if v == nil {
		return append(b, 0)
	}
	if b = append(b, 2); len(v) > 0 {
		b = avro.AppendLong(b, int64(len(v)))
		for _, c := range v {
			b = avro.AppendLong(avro.AppendLong(b, int64(c.Column)), c.N)
		}
	}
	return append(b, 0)
}

func appendBounds(b []byte, v Bounds) []byte {
	if v == nil {
		return append(b, 0)
	}
	if b = append(b, 2); len(v) > 0 {
		b = avro.AppendLong(b, int64(len(v)))
		for _, c := range v {
			b = avro.AppendBytes(avro.AppendLong(b, int64(c.Column)), c.Value)
		}
	}
	return append(b, 0)
}

func appendList[T ~int32 | ~int64](b []byte, v []T) []byte {
	if v == nil {
		return append(b, 0)
	}
	if b = append(b, 2); len(v) > 0 {
		b = avro.AppendLong(b, int64(len(v)))
		for _, n := range v {
			b = avro.AppendLong(b, int64(n))
		}
	}
	return append(b, 0)
}

// carryPlan says how the data_file records of one source schema become those
// of a manifest: long runs are copied, and only what differs is encoded anew.
type carryPlan struct {
	layout *layout
	ops    []carryOp
	tuples *tupleReader
	dec    decoder
	tmp    Entry
	// the raw partition the summaries have already seen.
	seen []byte
	any  bool
}

type carryOp struct {
	kind     carryKind
	from, to int    // steps, for copies and the source of what is encoded anew
	lit      []byte // for literals
	code     code
}

type carryKind uint8

const (
	carryCopy carryKind = iota
	carryLiteral
	carryFirstRow
	carryPartition
	carryRecode
	carryExtras
)

func newCarryPlan(w *Writer, l *layout) (*carryPlan, error) {
	p := &carryPlan{layout: l, dec: decoder{want: ProjectAll &^ ProjectPartition}}
	var err error
	if p.tuples, err = newTupleReader(l.partition, w.o.Partitioning.Type, w.o.Path); err != nil {
		return nil, err
	}
	known := len(w.fields) - len(w.extraFile)
	for i := range w.fields[:known] {
		p.field(&w.fields[i])
	}
	if len(w.extraFile) > 0 {
		p.ops = append(p.ops, carryOp{kind: carryExtras})
	}
	return p, nil
}

func (p *carryPlan) field(to *avro.Field) {
	c := codes[to.ID]
	at := p.layout.at[c]
	switch {
	case c == cFirstRowID:
		p.ops = append(p.ops, carryOp{kind: carryFirstRow})
	case c == cPartition && (at < 0 || !avro.SameEncoding(p.layout.steps[at].node, to.Type)):
		p.ops = append(p.ops, carryOp{kind: carryPartition})
	case c == cPartition:
		p.copy(at)
	case at < 0:
		p.ops = append(p.ops, carryOp{kind: carryLiteral, lit: appendField(nil, c, &File{})})
	default:
		p.known(c, at, to.Type)
	}
}

// known plans a field that the source has too.
func (p *carryPlan) known(c code, at int, to *avro.Node) {
	s := &p.layout.steps[at]
	value, _, _, optional := to.Optional()
	switch {
	case s.pairs.swapped:
		p.ops = append(p.ops, carryOp{kind: carryRecode, from: at, code: c})
	case avro.SameBytes(s.node, to):
		p.copy(at)
	case optional && s.node.Kind != avro.Union && avro.SameBytes(s.node, value):
		p.ops = append(p.ops, carryOp{kind: carryLiteral, lit: []byte{2}})
		p.copy(at)
	default:
		p.ops = append(p.ops, carryOp{kind: carryRecode, from: at, code: c})
	}
}

// copy plans the bytes of a step, as part of the run before if it goes on.
func (p *carryPlan) copy(at int) {
	if n := len(p.ops); n > 0 && p.ops[n-1].kind == carryCopy && p.ops[n-1].to == at {
		p.ops[n-1].to++
		return
	}
	p.ops = append(p.ops, carryOp{kind: carryCopy, from: at, to: at + 1})
}

// partition returns the entry's tuple if the summaries have not seen it, and
// the zero Tuple if they have.
func (p *carryPlan) partition(w *Writer, e *Entry) (iceberg.Tuple, error) {
	if len(w.tuples.types) == 0 {
		return iceberg.Tuple{}, nil
	}
	at := p.layout.at[cPartition]
	var raw []byte
	if at >= 0 {
		raw = e.raw.bytes(at, at+1)
	}
	if p.any && string(p.seen) == string(raw) {
		return iceberg.Tuple{}, nil
	}
	t, err := p.tuple(e)
	if err != nil {
		return iceberg.Tuple{}, err
	}
	p.any, p.seen = true, append(p.seen[:0], raw...)
	return t, nil
}

func (p *carryPlan) tuple(e *Entry) (iceberg.Tuple, error) {
	at := p.layout.at[cPartition]
	if at < 0 {
		return p.tuples.make(nodeNull, nil)
	}
	t, err := p.tuples.decode(p.layout.steps[at].node, e.raw.bytes(at, at+1))
	return t, fault.In("carry entry "+e.Path, err)
}

func (p *carryPlan) append(b []byte, w *Writer, e *Entry, h head) ([]byte, error) {
	for i := range p.ops {
		switch op := &p.ops[i]; op.kind {
		case carryCopy:
			b = append(b, e.raw.bytes(op.from, op.to)...)
		case carryLiteral:
			b = append(b, op.lit...)
		case carryFirstRow:
			b = w.firstRow(b, h)
		case carryExtras:
			b = appendExtras(b, w.extraFile, e, true)
		case carryPartition:
			t, err := p.tuple(e)
			if err == nil {
				b, err = w.tuples.append(b, t)
			}
			if err != nil {
				return nil, err
			}
		case carryRecode:
			c := cursor{b: e.raw.data, p: int(e.raw.from(op.from))}
			p.dec.step(&c, &p.layout.steps[op.from], &p.tmp)
			if c.p < 0 {
				return nil, fault.New(fault.Corrupt, "carry entry "+e.Path+": field "+codeNames[op.code])
			}
			b = appendField(b, op.code, &p.tmp.File)
			p.tmp = Entry{}
		}
	}
	return b, nil
}
