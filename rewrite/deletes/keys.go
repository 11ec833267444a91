package deletes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// keyBatch is about how many bytes of a key column are decoded at a time.
const keyBatch = 128 << 10

// keyReader reads the equality keys of a file, row by row, in the types of the
// target, whatever the file has them in.
type keyReader struct {
	name    string
	columns []keyColumn
	secret  *secret
	exact   bool
	rows    int64 // still to come
	form    []byte
}

// keyColumn is one column of the key.
type keyColumn struct {
	name   string
	maxDef byte
	width  int
	float  format.Type // Float or Double, whose NaNs are one value
	plain  bool        // 4 or 8 bytes, and no float
	limit  limit

	source  *resolve.Source
	reader  *column.Reader // nil where every row is alike
	in, out column.Batch
	batch   *column.Batch
	level   int // next level
	value   int // next value
	scratch [8]byte
}

// exactKey reports whether keys of a target are told by their values: those of a
// single column of at most 8 bytes.
func exactKey(t *resolve.Target) bool {
	if len(t.Leaves) != 1 {
		return false
	}
	w := t.Leaves[0].Node.Width()
	return w > 0 && w <= 8
}

// newKeyReader reads the keys of f, where m says the columns are.
func newKeyReader(f *column.File, t *resolve.Target, m *resolve.Mapping, s *secret) (*keyReader, error) {
	k := &keyReader{name: f.Name(), secret: s, exact: exactKey(t), rows: f.Footer().Rows, form: make([]byte, len(s.mac))}
	k.columns = make([]keyColumn, len(t.Leaves))
	for i := range t.Leaves {
		leaf, c := &t.Leaves[i], &k.columns[i]
		if leaf.Repeated {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("the key column %s (id %d) lies in a list or map", leaf.Name, leaf.ID))
		}
		c.name, c.maxDef, c.width, c.source = leaf.Name, byte(leaf.Node.MaxDef), leaf.Node.Width(), &m.Leaves[i]
		if p := leaf.Node.Type; p == format.Float || p == format.Double {
			c.float = p
		} else {
			c.plain = c.width == 4 || c.width == 8
		}
		if c.source.Leaf >= 0 {
			c.reader = f.Reader(c.source.Leaf)
		}
	}
	return k, nil
}

// close gives back what the readers hold.
func (k *keyReader) close() {
	for i := range k.columns {
		if r := k.columns[i].reader; r != nil {
			r.Close()
		}
	}
}

// next reads up to len(keys) keys, each of the row after the last; after the last
// row both numbers are 0. Without a table to look them up in, the file is one of
// deletes, and those that can hit nothing by the limits are left out: then n is
// less than rows.
func (k *keyReader) next(keys []key, in *table) (n, rows int, err error) {
	rows = int(min(int64(len(keys)), k.rows))
	if rows == 0 {
		return 0, 0, nil
	}
	for i := range k.columns {
		left, err := k.columns[i].fill(rows)
		if err != nil {
			return 0, 0, fault.In("read the key column "+k.columns[i].name+" of "+k.name, err)
		}
		rows = min(rows, left)
	}
	k.rows -= int64(rows)
	if k.exact {
		return k.columns[0].exact(keys[:rows], in == nil), rows, nil
	}
	for range rows {
		form, outside := k.form, false
		for i := range k.columns {
			c := &k.columns[i]
			v, ok := c.take()
			if !ok {
				form = append(form, 0)
				continue
			}
			outside = outside || in == nil && c.limit.outside(v)
			form = append(form, 1)
			if c.width == 0 {
				form = binary.AppendUvarint(form, uint64(len(v)))
			}
			form = append(form, v...)
		}
		k.form = form[:len(k.secret.mac)]
		if outside {
			continue
		}
		quick := k.secret.quick(form)
		if in != nil && !in.mayHave(quick) {
			keys[n] = key{absent: true}
		} else {
			keys[n] = k.secret.hash(form, quick)
		}
		n++
	}
	return n, rows, nil
}

// fill makes sure that there is a row to take, and says how many there are.
func (c *keyColumn) fill(rows int) (int, error) {
	if c.batch != nil && c.level < c.batch.Levels {
		return c.batch.Levels - c.level, nil
	}
	c.level, c.value = 0, 0
	if c.reader == nil {
		c.batch = &c.out
		return rows, c.source.Fill(&c.out, rows)
	}
	if err := c.reader.Next(&c.in, keyBatch); err != nil {
		if errors.Is(err, io.EOF) {
			err = fault.New(fault.Corrupt, "it has fewer rows than the file")
		}
		return 0, err
	}
	var err error
	if c.batch, err = c.source.Apply(&c.in, &c.out); err != nil {
		return 0, err
	}
	if c.batch.Levels != c.batch.Rows || c.batch.Levels == 0 {
		return 0, fault.New(fault.Corrupt, fmt.Sprintf("%d levels in %d rows", c.batch.Levels, c.batch.Rows))
	}
	return c.batch.Levels, nil
}

// take is the value of the next row, with every NaN alike; false for null.
func (c *keyColumn) take() ([]byte, bool) {
	b := c.batch
	at := c.level
	c.level++
	if b.Def != nil && b.Def[at] < c.maxDef {
		return nil, false
	}
	v := b.Values.At(c.value)
	c.value++
	switch c.float {
	case format.Float:
		if f := binary.LittleEndian.Uint32(v); f&^(1<<31) > 0x7f800000 {
			return binary.LittleEndian.AppendUint32(c.scratch[:0], math.Float32bits(float32(math.NaN()))), true
		}
	case format.Double:
		if f := binary.LittleEndian.Uint64(v); f&^(1<<63) > 0x7ff0000000000000 {
			return binary.LittleEndian.AppendUint64(c.scratch[:0], math.Float64bits(math.NaN())), true
		}
	}
	return v, true
}

// exact takes rows whose value is the key.
func (c *keyColumn) exact(keys []key, limited bool) (n int) {
	if v := &c.batch.Values; !limited && c.plain && v.Len() == c.batch.Levels {
		c.dense(keys)
		return len(keys)
	}
	for range keys {
		v, ok := c.take()
		switch {
		case !ok:
			keys[n] = key{null: true}
		case limited && c.limit.outside(v):
			continue
		case c.width == 8:
			keys[n] = key{at: binary.LittleEndian.Uint64(v)}
		case c.width == 4:
			keys[n] = key{at: uint64(binary.LittleEndian.Uint32(v))}
		default:
			var b [8]byte
			copy(b[:], v)
			keys[n] = key{at: binary.LittleEndian.Uint64(b[:])}
		}
		n++
	}
	return n
}

// dense takes rows that all have a value of 4 or 8 bytes.
func (c *keyColumn) dense(keys []key) {
	data := c.batch.Values.Data[c.value*c.width:]
	c.level, c.value = c.level+len(keys), c.value+len(keys)
	if c.width == 8 {
		for i := range keys {
			keys[i] = key{at: binary.LittleEndian.Uint64(data[8*i:])}
		}
		return
	}
	for i := range keys {
		keys[i] = key{at: uint64(binary.LittleEndian.Uint32(data[4*i:]))}
	}
}
