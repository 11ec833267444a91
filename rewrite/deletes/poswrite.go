package deletes

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

// PositionOptions say how a position delete file is written.
type PositionOptions struct {
	CreatedBy string
	Codec     format.Codec
	// Level is the codec's; 0 is its default.
	Level int
	// GroupRows ends a row group; 0 is 1 Mi rows.
	GroupRows int64
}

// WrittenPositions is what a manifest entry says of a position delete file. Both
// bounds of file_path are in full, outside of the table's metrics modes: readers
// find by them which data files a delete is of.
type WrittenPositions struct {
	Bytes, Records int64
	ColumnSizes    map[iceberg.FieldID]int64
	Values         map[iceberg.FieldID]int64
	Nulls          map[iceberg.FieldID]int64
	Lower, Upper   map[iceberg.FieldID][]byte
	SplitOffsets   []int64
	// Referenced is the only data file, or empty.
	Referenced string
}

// WritePositions writes a Parquet position delete file in the order of file_path
// and pos. A data file that occurs twice or has no positions is fault.Halt.
func WritePositions(w io.Writer, o PositionOptions, all []Deleted) (*WrittenPositions, error) {
	out, err := writePositions(w, o, all)
	return out, fault.In("write a position delete file", err)
}

func writePositions(w io.Writer, o PositionOptions, all []Deleted) (*WrittenPositions, error) {
	if o.GroupRows <= 0 {
		o.GroupRows = 1 << 20
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Deleted) int { return strings.Compare(a.DataFile, b.DataFile) })
	for i, d := range all {
		if d.Positions.Empty() || i > 0 && d.DataFile == all[i-1].DataFile {
			return nil, fault.New(fault.Halt, fmt.Sprintf("positions of %s twice, or none", d.DataFile))
		}
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Halt, "there are no positions")
	}
	schema := icego.NewSchema(0,
		icego.NestedField{ID: int(PathField), Name: pathName, Type: icego.PrimitiveTypes.String, Required: true},
		icego.NestedField{ID: int(PosField), Name: posName, Type: icego.PrimitiveTypes.Int64, Required: true})
	target, err := resolve.NewTarget(schema, resolve.Options{})
	if err != nil {
		return nil, err
	}
	text, err := resolve.SchemaJSON(schema)
	if err != nil {
		return nil, err
	}
	kind := "position"
	f, err := output.NewFile(w, target.Schema, output.Options{CreatedBy: o.CreatedBy, KeyValues: []format.KeyValue{
		{Key: "delete-type", Value: &kind}, {Key: "iceberg.schema", Value: &text},
	}})
	if err != nil {
		return nil, err
	}
	p := posWriter{f: f, o: o, target: target, left: all}
	for len(p.left) > 0 {
		if err := p.group(); err != nil {
			return nil, err
		}
	}
	res, err := f.Close()
	if err != nil {
		return nil, err
	}
	return describe(res, all), nil
}

// posWriter goes over the positions twice in each row group: once for the paths,
// which need only their number.
type posWriter struct {
	f      *output.File
	o      PositionOptions
	target *resolve.Target
	left   []Deleted
	// from is the first position of left[0] that is not written, done how many
	// are.
	from, done int64
}

// share is what one data file has in a row group.
type share struct {
	d    Deleted
	from int64
	rows int64
}

func (p *posWriter) group() error {
	var shares []share
	rows := int64(0)
	for len(p.left) > 0 && rows < p.o.GroupRows {
		d := p.left[0]
		n := min(d.Positions.Len()-p.done, p.o.GroupRows-rows)
		shares = append(shares, share{d: d, from: p.from, rows: n})
		rows += n
		if p.done += n; p.done == d.Positions.Len() {
			p.left, p.from, p.done = p.left[1:], 0, 0
		}
	}
	g, err := p.f.BeginGroup()
	if err != nil {
		return err
	}
	err = p.column(g, 0, func(e *encode.Encoder) error {
		for _, s := range shares {
			if err := e.Repeat(s.rows, 0, []byte(s.d.DataFile)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.column(g, 1, func(e *encode.Encoder) error {
		for _, s := range shares {
			last, err := writePlaces(e, s)
			if err != nil {
				return err
			}
			if p.done > 0 {
				p.from = last + 1 // only the last share is not whole
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.Close(rows)
}

// column writes one column of a row group.
func (p *posWriter) column(g *output.Group, leaf int, fill func(*encode.Encoder) error) error {
	c, err := g.Column(leaf, p.o.Codec)
	if err != nil {
		return err
	}
	o := encode.Options{Codec: p.o.Codec, Level: p.o.Level}
	if leaf == 1 {
		o.DictionaryBytes = -1 // positions of a file do not repeat
	}
	e, err := encode.NewEncoder(p.target.Schema.Leaves[leaf], o, c)
	if err != nil {
		return err
	}
	if err := fill(e); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	return c.Close()
}

func writePlaces(e *encode.Encoder, s share) (last int64, err error) {
	const batchRows = 8192
	var b column.Batch
	b.Values.Reset(format.Int64, 8)
	flush := func() error {
		b.Rows = b.Values.Len()
		b.Levels = b.Rows
		err := e.Write(&b)
		b.Values.Reset(format.Int64, 8)
		return err
	}
	left := s.rows
	for from, to := range s.d.Positions.Within(s.from, math.MaxInt64) {
		for ; from < to && left > 0; from++ {
			b.Values.Data = binary.LittleEndian.AppendUint64(b.Values.Data, uint64(from))
			last = from
			if left--; len(b.Values.Data) >= 8*batchRows {
				if err := flush(); err != nil {
					return 0, err
				}
			}
		}
		if left == 0 {
			break
		}
	}
	if b.Values.Len() == 0 {
		return last, nil
	}
	return last, flush()
}

func describe(res output.Result, all []Deleted) *WrittenPositions {
	long := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	least, greatest := int64(math.MaxInt64), int64(-1)
	for _, d := range all {
		least, greatest = min(least, d.Positions.Min()), max(greatest, d.Positions.Max())
	}
	out := &WrittenPositions{
		Bytes: res.Bytes, Records: res.Rows, SplitOffsets: res.SplitOffsets,
		ColumnSizes: map[iceberg.FieldID]int64{PathField: res.LeafBytes[0], PosField: res.LeafBytes[1]},
		Values:      map[iceberg.FieldID]int64{PathField: res.Rows, PosField: res.Rows},
		Nulls:       map[iceberg.FieldID]int64{PathField: 0, PosField: 0},
		Lower:       map[iceberg.FieldID][]byte{PathField: []byte(all[0].DataFile), PosField: long(least)},
		Upper:       map[iceberg.FieldID][]byte{PathField: []byte(all[len(all)-1].DataFile), PosField: long(greatest)},
	}
	if len(all) == 1 {
		out.Referenced = all[0].DataFile
	}
	return out
}
