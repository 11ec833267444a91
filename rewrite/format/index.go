package format

import (
	"fmt"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

// maxIndexMemory is what an index of one chunk may take in memory.
const maxIndexMemory = 128 << 20

// ParseOffsetIndex reads an OffsetIndex and checks that its pages follow one
// another: offsets ascend without overlap, first rows do not descend.
func ParseOffsetIndex(b []byte) (*OffsetIndex, error) {
	r := thrift.NewReader(b, maxIndexMemory)
	x := new(OffsetIndex)
	pages := false
	r.Begin()
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			kind, n := r.List(f.Kind, int(unsafe.Sizeof(PageLocation{})))
			x.Pages, pages = make([]PageLocation, n), true
			for i := range x.Pages {
				r.Struct(kind)
				parseLocation(&r, &x.Pages[i])
			}
		case 2:
			x.UnencodedBytes = parseInts(&r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	if !pages {
		r.Fail(missing("an offset index", "pages"))
	}
	if r.Err() == nil {
		r.Fail(x.agree())
	}
	if err := r.Err(); err != nil {
		return nil, fault.In("read an offset index", err)
	}
	return x, nil
}

func parseLocation(r *thrift.Reader, l *PageLocation) {
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			l.Offset = r.Int64(f.Kind)
		case 2:
			l.Size = r.Int32(f.Kind)
		case 3:
			l.FirstRow = r.Int64(f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
}

func (x *OffsetIndex) agree() error {
	var end, row int64
	for i, p := range x.Pages {
		if p.Offset < end || p.Size < 0 || p.FirstRow < row || i == 0 && p.FirstRow != 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("page %d lies at %d+%d with first row %d, after %d and row %d", i, p.Offset, p.Size, p.FirstRow, end, row))
		}
		end, row = p.Offset+int64(p.Size), p.FirstRow
		if end < p.Offset {
			return fault.New(fault.Corrupt, fmt.Sprintf("page %d lies at %d+%d", i, p.Offset, p.Size))
		}
	}
	if n := len(x.UnencodedBytes); x.UnencodedBytes != nil && n != len(x.Pages) {
		return fault.New(fault.Corrupt, fmt.Sprintf("there are sizes of %d pages of %d", n, len(x.Pages)))
	}
	return nil
}

// AppendOffsetIndex appends the stored form of x.
func AppendOffsetIndex(b []byte, x *OffsetIndex) []byte {
	w := &thrift.Writer{B: b}
	w.Begin()
	w.List(1, thrift.Group, len(x.Pages))
	for _, p := range x.Pages {
		w.Begin()
		w.Int64(1, p.Offset)
		w.Int32(2, p.Size)
		w.Int64(3, p.FirstRow)
		w.End()
	}
	maybeInts(w, 2, x.UnencodedBytes)
	w.End()
	return w.B
}

// ParseColumnIndex reads a ColumnIndex and checks that its lists have an element
// for each page, histograms a multiple of that. Bounds are parts of b.
func ParseColumnIndex(b []byte) (*ColumnIndex, error) {
	r := thrift.NewReader(b, maxIndexMemory)
	x := new(ColumnIndex)
	r.Begin()
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			kind, n := r.List(f.Kind, 1)
			x.NullPages = make([]bool, n)
			for i := range x.NullPages {
				x.NullPages[i] = r.ElementBool(kind)
			}
		case 2:
			x.Min = parseBinaries(&r, f.Kind)
		case 3:
			x.Max = parseBinaries(&r, f.Kind)
		case 4:
			x.Order = BoundaryOrder(r.Int32(f.Kind))
		case 5:
			x.NullCounts = parseInts(&r, f.Kind)
		case 6:
			x.RepHistograms = parseInts(&r, f.Kind)
		case 7:
			x.DefHistograms = parseInts(&r, f.Kind)
		case 8:
			x.NaNCounts = parseInts(&r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	if r.Err() == nil {
		r.Fail(x.agree())
	}
	if err := r.Err(); err != nil {
		return nil, fault.In("read a column index", err)
	}
	return x, nil
}

func parseBinaries(r *thrift.Reader, k thrift.Kind) [][]byte {
	kind, n := r.List(k, 24)
	out := make([][]byte, n)
	for i := range out {
		out[i] = r.Bytes(kind)
	}
	return out
}

func (x *ColumnIndex) agree() error {
	n := len(x.NullPages)
	whole := func(v []int64, multiple bool) bool {
		return v == nil || len(v) == n || multiple && n > 0 && len(v)%n == 0
	}
	if len(x.Min) != n || len(x.Max) != n || !whole(x.NullCounts, false) || !whole(x.NaNCounts, false) ||
		!whole(x.RepHistograms, true) || !whole(x.DefHistograms, true) {
		return fault.New(fault.Corrupt, fmt.Sprintf("its lists are not of one length: %d, %d, %d, %d, %d, %d, %d", n,
			len(x.Min), len(x.Max), len(x.NullCounts), len(x.NaNCounts), len(x.RepHistograms), len(x.DefHistograms)))
	}
	return nil
}

// AppendColumnIndex appends the stored form of x.
func AppendColumnIndex(b []byte, x *ColumnIndex) []byte {
	w := &thrift.Writer{B: b}
	w.Begin()
	w.List(1, thrift.True, len(x.NullPages))
	for _, null := range x.NullPages {
		w.ElementBool(null)
	}
	for id, bounds := range [][][]byte{x.Min, x.Max} {
		w.List(int16(2+id), thrift.Binary, len(bounds))
		for _, v := range bounds {
			w.Binary(v)
		}
	}
	w.Int32(4, int32(x.Order))
	maybeInts(w, 5, x.NullCounts)
	maybeInts(w, 6, x.RepHistograms)
	maybeInts(w, 7, x.DefHistograms)
	maybeInts(w, 8, x.NaNCounts)
	w.End()
	return w.B
}

// MaxBloom is the greatest bitset in bytes that parquet-format allows.
const MaxBloom = 128 << 20

// ParseBloomHeader reads the header of a split-block bloom filter that b begins
// with. It answers the length of the bitset after it and that of the header. Other
// algorithms, hashes or compressions than block, xxHash and none are
// fault.Unsupported. If b ends too early the error is ErrShort.
func ParseBloomHeader(b []byte) (bitset, header int, err error) {
	r := thrift.NewReader(b, 1<<20)
	var length int32
	known := 0
	r.Begin()
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			length = r.Int32(f.Kind)
		case 2, 3, 4: // unions whose only known member is 1
			r.Struct(f.Kind)
			for u := (thrift.Field{}); r.Next(&u); r.Skip(u.Kind) {
				if u.ID == 1 {
					known++
				}
			}
		default:
			r.Skip(f.Kind)
		}
	}
	switch {
	case r.Err() != nil:
	case known != 3:
		r.Fail(fault.New(fault.Unsupported, "the algorithm, hash or compression is not known"))
	case length <= 0 || length > MaxBloom || length%32 != 0:
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("a bitset of %d bytes", length)))
	}
	if err := r.Err(); err != nil {
		return 0, 0, fault.In("read a bloom filter", err)
	}
	return int(length), r.At(), nil
}

// AppendBloomHeader appends the header of a split-block filter with xxHash whose
// bitset has so many bytes.
func AppendBloomHeader(b []byte, bitset int) []byte {
	w := &thrift.Writer{B: b}
	w.Begin()
	w.Int32(1, int32(bitset))
	for id := int16(2); id <= 4; id++ {
		w.Struct(id)
		w.Struct(1)
		w.End()
		w.End()
	}
	w.End()
	return w.B
}
