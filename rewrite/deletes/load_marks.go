package deletes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite/column"
)

// vectors reads the deletion vectors, those of one Puffin file together.
func (l *loader) vectors(ctx context.Context) error {
	files := map[filer.Path][]int{}
	var order []filer.Path
	owner := map[int]int{}
	for _, i := range l.kind[DeletionVector] {
		d := &l.q.Deletes[i]
		for _, n := range d.Applies {
			if other, ok := owner[n]; ok {
				return fault.New(fault.Corrupt, fmt.Sprintf("data file %s has two deletion vectors: at %d of %s and at %d of %s",
					l.q.Data[n].Location, l.q.Deletes[other].Offset, l.q.Deletes[other].Location, d.Offset, d.Location))
			}
			owner[n] = i
		}
		if len(d.Applies) != 1 {
			return fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector at %d of %s applies to %d data files", d.Offset, d.Location, len(d.Applies)))
		}
		if files[d.At] == nil {
			order = append(order, d.At)
		}
		files[d.At] = append(files[d.At], i)
	}
	m, err := newMatcher(&l.q)
	if err != nil {
		return err
	}
	return l.parallel(ctx, len(order), func(ctx context.Context, i int) error {
		return l.puffin(ctx, m, order[i], files[order[i]])
	})
}

// gapBytes between two vectors are read rather than a second request made, and
// rangeBytes are read at once.
const (
	gapBytes   = 64 << 10
	rangeBytes = 4 << 20
)

func (l *loader) puffin(ctx context.Context, m *matcher, at filer.Path, all []int) error {
	name := l.q.Deletes[all[0]].Location
	o, err := l.q.Reader.Open(ctx, at)
	if err != nil {
		return missing(name, err)
	}
	defer func() { _ = o.Close() }() // only read
	footer, err := OpenPuffin(o, o.Size())
	if err != nil {
		return fault.In("open "+name, err)
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(l.q.Deletes[a].Offset, l.q.Deletes[b].Offset) })
	in := ahead{in: o, size: o.Size()}
	for k, i := range all {
		d := &l.q.Deletes[i]
		n := d.Applies[0]
		v := Vector{Offset: d.Offset, Size: d.Size, Records: d.Records, Rows: l.q.Data[n].Records}
		in.end = l.ahead(all[k:])
		p, err := l.vector(ctx, m, footer, &in, v, n)
		if err != nil {
			return fault.In("read "+name, err)
		}
		l.out.Positions[n].Or(p)
		l.out.Deletes[i] = Counts{Rows: p.Len(), Taken: p.Len()}
	}
	return nil
}

// ahead is how far to read together with the first of some vectors.
func (l *loader) ahead(all []int) int64 {
	first := &l.q.Deletes[all[0]]
	end := first.Offset + max(0, first.Size)
	for _, i := range all[1:] {
		d := &l.q.Deletes[i]
		if d.Offset > end+gapBytes || d.Offset+d.Size > first.Offset+rangeBytes {
			break
		}
		end = max(end, d.Offset+d.Size)
	}
	return end
}

func (l *loader) vector(ctx context.Context, m *matcher, footer *Puffin, in *ahead, v Vector, n int) (*Positions, error) {
	spelled, err := footer.Check(v)
	if err != nil {
		return nil, err
	}
	if spelled != "" {
		is, err := m.match(ctx, spelled)
		if err != nil {
			return nil, err
		}
		if is != n {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector at %d is of %s, its manifest says of %s", v.Offset, spelled, l.q.Data[n].Location))
		}
	}
	// The blob and what is made of it, which is about as large.
	room := 2 * min(max(v.Size, 0), MaxVectorBytes)
	if err := l.q.Columns.Budget.Take(room); err != nil {
		return nil, fault.In(fmt.Sprintf("make room for the deletion vector at %d", v.Offset), err)
	}
	defer l.q.Columns.Budget.Give(room)
	return ReadVector(in, in.size, v)
}

// ahead reads up to an end with the first read that begins before it.
type ahead struct {
	in   io.ReaderAt
	size int64
	end  int64
	at   int64
	b    []byte
}

func (a *ahead) ReadAt(b []byte, off int64) (int, error) {
	n := int64(len(b))
	if off >= a.at && off-a.at <= int64(len(a.b)) && int64(len(a.b))-(off-a.at) >= n {
		return copy(b, a.b[off-a.at:]), nil
	}
	want := min(a.end, a.size) - off
	if want <= n || want > rangeBytes {
		return a.in.ReadAt(b, off)
	}
	a.at, a.b = off, slices.Grow(a.b[:0], int(want))[:want]
	if err := readAt(a.in, a.b, off); err != nil {
		a.b = a.b[:0]
		return 0, err
	}
	return copy(b, a.b), nil
}

// positions reads the position delete files.
func (l *loader) positions(ctx context.Context) error {
	all := l.kind[PositionDelete]
	if len(all) == 0 {
		return nil
	}
	m, err := newMatcher(&l.q)
	if err != nil {
		return err
	}
	var mu sync.Mutex // of out.Positions
	return l.parallel(ctx, len(all), func(ctx context.Context, k int) error {
		d := &l.q.Deletes[all[k]]
		found, counts, err := l.positionFile(ctx, m, d)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for n, p := range found {
			l.out.Positions[n].Or(p)
		}
		l.out.Deletes[all[k]] = counts
		return nil
	})
}

func (l *loader) positionFile(ctx context.Context, m *matcher, d *DeleteFile) (map[int]*Positions, Counts, error) {
	found := map[int]*Positions{}
	for _, n := range d.Applies {
		found[n] = &Positions{}
	}
	var counts Counts
	err := l.parquet(ctx, d.At, d.Location, func(f *column.File) (err error) {
		if rows := f.Footer().Rows; rows != d.Records {
			return fault.New(fault.Corrupt, fmt.Sprintf("%s has %d rows, its manifest says %d", d.Location, rows, d.Records))
		}
		counts, err = ReadPositions(f, func(path []byte) (*Sink, error) {
			n, err := m.match(ctx, string(path))
			if err != nil || found[n] == nil {
				return nil, err
			}
			return &Sink{Name: l.q.Data[n].Location, Positions: found[n], Rows: l.q.Data[n].Records}, nil
		})
		return err
	})
	return found, counts, err
}
