package rewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/resolve"
)

// batchBytes is about how much is decoded at once; fillRows how many rows are
// made at once that no file holds.
const (
	batchBytes = 1 << 20
	fillRows   = 16 << 10
)

// feed gives the live rows of one leaf of one source in the form of the target.
type feed struct {
	m    *mover
	s    *source
	from *resolve.Source
	// expected is what the partition says the values are, or nil.
	expected *resolve.Expected
	// maxDef is that of the batches that rows are left out of.
	maxDef int
	// raw is as decoded, kept without the deleted rows, full with lineage
	// completed, out in the target's form.
	raw, kept, full, out column.Batch
}

func (m *mover) feed(source int) *feed {
	s := m.e.sources[source]
	f := &feed{m: m, s: s, from: &s.mapping.Leaves[m.index], maxDef: m.leaf.Node.MaxDef}
	if f.from.Leaf >= 0 && f.from.Lineage == resolve.NoLineage {
		f.maxDef = s.file.Footer().Schema.Leaves[f.from.Leaf].MaxDef
	}
	for i := range s.mapping.Expected {
		if s.mapping.Expected[i].Leaf == m.index {
			f.expected = &s.mapping.Expected[i]
		}
	}
	return f
}

// rows gives the live ones of rows of the file from first on to take.
func (f *feed) rows(first, rows int64, take func(*column.Batch) error) error {
	if f.from.Leaf < 0 {
		return f.fill(first, rows, take)
	}
	r := f.s.file.Reader(f.from.Leaf)
	defer r.Close()
	if err := r.SeekRow(first); err != nil {
		return err
	}
	for at, end := first, first+rows; at < end; {
		if err := f.m.ctx.Err(); err != nil {
			return err
		}
		err := r.Next(&f.raw, batchBytes)
		if errors.Is(err, io.EOF) || err == nil && f.raw.Rows == 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("the column ends at row %d, the file at %d", at, f.s.Records))
		}
		if err != nil {
			return err
		}
		n := min(int64(f.raw.Rows), end-at)
		if err := f.batch(at, at, at+n, take); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// fill makes rows that the file does not hold.
func (f *feed) fill(first, rows int64, take func(*column.Batch) error) error {
	for from, to := range f.s.Deleted.Kept(first, first+rows) {
		f.m.moved(f.s, from, to-from)
		for from < to {
			n := min(fillRows, to-from)
			if err := f.from.Fill(&f.out, int(n)); err != nil {
				return err
			}
			b := &f.out
			if f.from.Lineage != resolve.NoLineage {
				b = f.complete(b, from)
			}
			if err := take(b); err != nil {
				return err
			}
			from += n
		}
	}
	return f.m.ctx.Err()
}

// batch takes the live rows of raw, which begins at row at of the file, from row
// from up to, and without, to.
func (f *feed) batch(at, from, to int64, take func(*column.Batch) error) error {
	in, err := &f.raw, error(nil)
	if f.from.Lineage != resolve.NoLineage {
		// What stands for null depends on the place in the file, so it comes
		// before rows are left out.
		if in, err = f.from.Apply(in, &f.out); err != nil {
			return err
		}
		in = f.complete(in, at)
	}
	in = f.live(in, at, from, to)
	if in.Rows == 0 {
		return nil
	}
	if f.from.Lineage == resolve.NoLineage {
		if in, err = f.from.Apply(in, &f.out); err != nil {
			return err
		}
	}
	if f.expected != nil {
		if err := f.expected.Check(in); err != nil {
			return err
		}
	}
	return take(in)
}

// live are the live rows of a batch, which begins at row at of the file, from row
// from up to, and without, to.
func (f *feed) live(in *column.Batch, at, from, to int64) *column.Batch {
	if from == at && in.Rows == int(to-at) && f.s.Deleted.Count(from, to) == 0 {
		f.m.moved(f.s, from, to-from)
		return in
	}
	resetLike(&f.kept, in)
	c := cutter{in: in, maxDef: byte(f.maxDef)}
	for from, to := range f.s.Deleted.Kept(from, to) {
		c.next(int(from-at) - c.row)
		f.m.moved(f.s, from, to-from)
		appendRun(&f.kept, in, c.next(int(to-from)), int(to-from))
	}
	return &f.kept
}

// complete fills the nulls of a lineage column, which is flat, with what a row has
// by its place.
func (f *feed) complete(b *column.Batch, at int64) *column.Batch {
	out := &f.full
	resetLike(out, b)
	out.Levels, out.Rows = b.Levels, b.Rows
	v := 0
	for i := range b.Levels {
		if b.Def[i] == 1 {
			out.Values.Append(b.Values.At(v))
			v++
		} else if n, ok := f.lineage(at + int64(i)); ok {
			out.Values.Data = binary.LittleEndian.AppendUint64(out.Values.Data, uint64(n))
		} else {
			out.Def = append(out.Def, 0)
			continue
		}
		out.Def = append(out.Def, 1)
	}
	return out
}

// lineage is what a row without stored lineage has.
func (f *feed) lineage(row int64) (int64, bool) {
	if f.from.Lineage == resolve.LastUpdated {
		return int64(f.s.DataSeq), true
	}
	if f.s.FirstRowID == nil {
		return 0, false
	}
	return *f.s.FirstRowID + row, true
}
