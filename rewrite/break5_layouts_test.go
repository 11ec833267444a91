package rewrite_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// cell is one level of a column: its levels, and its value in PLAIN form or nil.
type cell struct {
	rep, def byte
	value    []byte
}

// layoutFields are columns of the kinds whose pages are laid out by hand.
func layoutFields() []icego.NestedField {
	return []icego.NestedField{
		{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		{ID: 2, Name: "i", Type: icego.PrimitiveTypes.Int32},
		{ID: 3, Name: "s", Type: icego.PrimitiveTypes.String},
		{ID: 4, Name: "d", Type: icego.PrimitiveTypes.Float64},
		{ID: 5, Name: "l", Type: &icego.ListType{ElementID: 6, Element: icego.PrimitiveTypes.String}},
		{ID: 7, Name: "st", Type: &icego.StructType{FieldList: []icego.NestedField{{ID: 8, Name: "x", Type: icego.PrimitiveTypes.Int32}}}},
	}
}

// layouts draws files with pages of every kind that writers are known to make, and of
// some more.
type layouts struct {
	*lcg
	nulls int
}

func (d *layouts) odds(percent int) bool { return d.intn(100) < percent }

func (d *layouts) text() string {
	long := bytes.Repeat([]byte{'z'}, 70)
	return []string{"", "a", "ab", "\uffff", "ein Wort", string(long), string(long) + "y", fmt.Sprint("v", d.intn(5))}[d.intn(8)]
}

func (d *layouts) number() float64 {
	return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1.5, -2.5, float64(d.intn(4))}[d.intn(8)]
}

// row draws a row and its levels in the five columns.
func (d *layouts) row(n int) (row, [][]cell) {
	r, cells := row{}, make([][]cell, 6)
	r[1] = int64(n)
	cells[0] = []cell{{value: handLongs(int64(n))}}
	optional := func(id, at int, value func() (any, []byte)) {
		r[id] = nil
		if d.odds(d.nulls) {
			cells[at] = []cell{{}}
			return
		}
		v, b := value()
		r[id] = v
		cells[at] = []cell{{def: 1, value: b}}
	}
	optional(2, 1, func() (any, []byte) { v := int32(d.intn(9) - 4); return v, handInts(v) })
	optional(3, 2, func() (any, []byte) { v := d.text(); return v, plainText(v) })
	optional(4, 3, func() (any, []byte) {
		v := math.Float64bits(d.number())
		return v, binary.LittleEndian.AppendUint64(nil, v)
	})
	switch {
	case d.odds(d.nulls):
		r[5], cells[4] = nil, []cell{{}}
	case d.odds(20):
		r[5], cells[4] = []any{}, []cell{{def: 1}}
	default:
		list := []any{}
		for k := range 1 + d.intn(4) {
			c := cell{rep: min(byte(k), 1), def: 2}
			if d.odds(d.nulls) {
				list = append(list, nil)
			} else {
				v := d.text()
				list = append(list, v)
				c.def, c.value = 3, plainText(v)
			}
			cells[4] = append(cells[4], c)
		}
		r[5] = list
	}
	switch {
	case d.odds(d.nulls):
		r[7], cells[5] = nil, []cell{{}}
	case d.odds(d.nulls):
		r[7], cells[5] = row{8: nil}, []cell{{def: 1}}
	default:
		v := int32(d.intn(3))
		r[7], cells[5] = row{8: v}, []cell{{def: 2, value: handInts(v)}}
	}
	return r, cells
}

func plainText(s string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// chunk lays cells out in pages. A dictionary has entries twice and ones that no page
// uses, and is left in the midst.
func (d *layouts) chunk(cells []cell, maxDef byte, repeated bool) handChunk {
	var c handChunk
	codes := map[string]byte{}
	var entries [][]byte
	if d.odds(70) {
		for _, x := range cells {
			if x.value == nil || len(entries) > 100 {
				continue
			}
			if _, ok := codes[string(x.value)]; !ok || d.odds(5) {
				codes[string(x.value)] = byte(len(entries))
				entries = append(entries, x.value)
			}
			if d.odds(10) {
				entries = append(entries, cells[d.intn(len(cells))].value)
				if entries[len(entries)-1] == nil {
					entries = entries[:len(entries)-1]
				}
			}
		}
		for _, e := range entries {
			c.dictionary = append(c.dictionary, e...)
		}
		c.entries = int32(len(entries))
	}
	fallback := d.intn(2*len(cells) + 1)
	indexed, version := d.odds(60), d.intn(3)
	split := repeated && version == 0 && d.odds(30)
	for at := 0; at < len(cells) || len(c.pages) == 0; {
		n := d.intn(min(len(cells)-at, 40) + 1)
		if split {
			n = max(n, 1)
		}
		for at+n < len(cells) && !split && cells[at+n].rep != 0 {
			n++
		}
		some := cells[at : at+n]
		p := handPage{v2: version == 1 || version == 2 && d.odds(50)}
		x := encode.UnknownIndex()
		x.Nulls = 0
		all := c.entries > 0 && at < fallback
		if repeated {
			p.rep = []byte{} // also a page without values has their length
		}
		if maxDef > 0 {
			p.def = []byte{}
		}
		for _, y := range some {
			if y.rep == 0 {
				p.rows++
			}
			if repeated {
				p.rep = append(p.rep, y.rep)
			}
			if maxDef > 0 {
				p.def = append(p.def, y.def)
			}
			if y.value == nil {
				x.Nulls++
				continue
			}
			_, ok := codes[string(y.value)]
			all = all && ok
		}
		if all {
			p.enc = []format.Encoding{format.RLEDictionary, format.PlainDictionary}[d.intn(2)]
			var used []byte
			for _, y := range some {
				if y.value != nil {
					used = append(used, codes[string(y.value)])
				}
			}
			p.values = coded(7, used...)
		} else {
			for _, y := range some {
				p.values = append(p.values, y.value...)
			}
		}
		if indexed {
			p.index = &x
			x.Rep, x.Def = make([]int64, 2), make([]int64, maxDef+1)
			for _, y := range some {
				x.Rep[y.rep]++
				x.Def[y.def]++
			}
		}
		if split {
			p.rows = -1
		}
		if n > 0 || maxDef > 0 && !repeated {
			c.pages = append(c.pages, p)
		}
		at += n
	}
	return c
}

// bounds states the true bounds of the values of a page.
func (d *layouts) bounds(p *handPage, some []cell, o encode.Ordering, text bool) {
	x := p.index
	x.NaNs, x.Bounds = 0, encode.BoundsNone
	for _, y := range some {
		v := y.value
		if v == nil {
			continue
		}
		if text {
			v = v[4:]
		}
		if !o.Check(v) {
			x.NaNs++
			continue
		}
		if x.Bounds != encode.BoundsSet || o.Compare(v, x.Min) < 0 {
			x.Min = v
		}
		if x.Bounds != encode.BoundsSet || o.Compare(v, x.Max) > 0 {
			x.Max = v
		}
		x.Bounds = encode.BoundsSet
	}
}

// file draws a file.
func (d *layouts) file(t require.TestingT, schema *icego.Schema, n int) ([]byte, []row) {
	rows, columns := make([]row, n), make([][]cell, 6)
	for i := range rows {
		var cells [][]cell
		rows[i], cells = d.row(i)
		for k := range columns {
			columns[k] = append(columns[k], cells[k]...)
		}
	}
	orders := []encode.Ordering{encode.SignedInt64, encode.SignedInt32, encode.UnsignedBytes, encode.Doubles, encode.UnsignedBytes, encode.SignedInt32}
	chunks := make([]handChunk, 6)
	for k, cells := range columns {
		chunks[k] = d.chunk(cells, []byte{0, 1, 1, 1, 3, 2}[k], k == 4)
		at := 0
		for i := range chunks[k].pages {
			p := &chunks[k].pages[i]
			size := max(len(p.rep), len(p.def))
			if k == 0 {
				size = int(p.rows)
			}
			if p.index != nil {
				d.bounds(p, cells[at:at+size], orders[k], k == 2 || k == 4)
			}
			at += size
		}
	}
	return handFile(t, schema, int64(n), []string{"parquet-mr version 1.13.1 (build x)", "x version 1.0.0"}[d.intn(2)], chunks...), rows
}

// TestPagesOfEveryLayoutAreMerged merges files whose chunks mix versions, encodings,
// empty pages, pages of nulls, dictionaries that are left, have entries twice or unused
// ones, and pages with and without an index, with deletes and limits anywhere. Rows are
// those of the sources, and all that the outputs say of themselves is true.
func TestPagesOfEveryLayoutAreMerged(t *testing.T) {
	seeds := 150
	if testing.Short() || measure.Race {
		seeds = 30
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := layoutWorld(t, seed)
			for _, copying := range []rewrite.Copying{rewrite.CopyForced, rewrite.CopyWhereAllowed} {
				w.request.Copying = copying
				for _, o := range w.merge(t).Outputs {
					content := w.filer.Content(o.At)
					audit(t, content)
					auditMetrics(t, &w.request, content, o.Metrics)
				}
			}
		})
	}
}

// TestInteropPagesOfEveryLayout has other readers read what comes of them.
func TestInteropPagesOfEveryLayout(t *testing.T) {
	f := newForeign(t)
	dir := t.TempDir()
	for seed := range interopUnits() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := layoutWorld(t, seed)
			w.request.Copying = rewrite.CopyForced
			f.check(t, dir, w, w.merge(t))
		})
	}
}

// layoutWorld draws a unit of such files.
func layoutWorld(t require.TestingT, seed int) *world {
	d := &layouts{lcg: &lcg{x: uint64(seed)*7919 + 1}}
	d.next()
	w := newWorld(t, icego.NewSchema(0, layoutFields()...), 2)
	for range 1 + d.intn(4) {
		d.nulls = []int{0, 10, 50, 100}[d.intn(4)]
		content, rows := d.file(t, w.request.Table.Schema, 1+d.intn(120))
		var gone *deletes.Positions
		switch d.intn(4) {
		case 0:
			gone = deletes.Of(int64(d.intn(len(rows))), int64(d.intn(len(rows))))
		case 1:
			gone = &deletes.Positions{}
			from := int64(d.intn(len(rows)))
			gone.AddRange(from, from+int64(d.intn(len(rows))/2))
		}
		w.add(content, rows, gone)
	}
	p := w.request.Table.Properties
	pick := func(name string, values ...string) {
		if v := values[d.intn(len(values))]; v != "" {
			p[name] = v
		}
	}
	pick("write.parquet.compression-codec", "", "zstd", "snappy", "uncompressed")
	pick("write.parquet.dict-size-bytes", "", "", "40", "0")
	pick("write.parquet.page-version", "", "v2")
	pick("write.parquet.row-group-limit", "", "", "17")
	pick("write.metadata.metrics.default", "", "full", "truncate(2)", "counts")
	if d.odds(30) {
		for _, name := range []string{"i", "s", "d", "l.element"} {
			p["write.parquet.bloom-filter-enabled.column."+name] = "true"
		}
		p["write.parquet.bloom-filter-max-bytes"] = "8192"
	}
	w.request.MaxRows = []int64{0, 0, 7, 50}[d.intn(4)]
	w.request.Verify = []rewrite.Verify{rewrite.VerifyContent, rewrite.VerifyRows}[d.intn(2)]
	return w
}
