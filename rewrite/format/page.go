package format

import (
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

// MaxPageHeader is the greatest length of a page header that is read. Headers
// have statistics, whose bounds some writers do not cut.
const MaxPageHeader = 16 << 20

// ErrShort says that the bytes end within a structure; with more of them it may
// be whole. It is fault.Corrupt.
var ErrShort = thrift.ErrShort

// ParsePageHeader reads the header that b begins with, and says how many bytes
// it takes. If b ends too early the error is ErrShort. Sizes and counts are not
// negative. Bounds in statistics are parts of b.
func ParsePageHeader(b []byte) (PageHeader, int, error) {
	var h PageHeader
	r := thrift.NewReader(b, MaxPageHeader)
	r.Begin()
	var seen uint16
	for f := (thrift.Field{}); r.Next(&f); {
		if f.ID > 0 && f.ID < 16 {
			seen |= 1 << f.ID
		}
		switch f.ID {
		case 1:
			h.Type = PageType(r.Int32(f.Kind))
		case 2:
			h.UncompressedSize = size32(&r, f.Kind, "uncompressed bytes")
		case 3:
			h.CompressedSize = size32(&r, f.Kind, "bytes")
		case 4:
			h.CRC = ptr(uint32(r.Int32(f.Kind)))
		case 5:
			h.parseV1(&r, f.Kind)
		case 7:
			h.parseDictionary(&r, f.Kind)
		case 8:
			h.parseV2(&r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	if r.Err() == nil {
		r.Fail(h.missing(seen))
	}
	if err := r.Err(); err != nil {
		return PageHeader{}, 0, err
	}
	return h, r.At(), nil
}

// missing says which field is not among the ones seen.
func (h *PageHeader) missing(seen uint16) error {
	switch {
	case seen&(1<<1) == 0:
		return missing("a page header", "type")
	case seen&(1<<2) == 0:
		return missing("a page header", "uncompressed size")
	case seen&(1<<3) == 0:
		return missing("a page header", "size")
	}
	kinds := map[PageType]int{DataPage: 5, DictionaryPage: 7, DataPageV2: 8}
	if id, ok := kinds[h.Type]; ok && seen&(1<<id) == 0 {
		return missing(fmt.Sprintf("the header of a page of type %d", h.Type), "part of its type")
	}
	return nil
}

func size32(r *thrift.Reader, k thrift.Kind, what string) int32 {
	return nonNegative(r, r.Int32(k), what)
}

func nonNegative(r *thrift.Reader, n int32, what string) int32 {
	if n < 0 {
		r.Fail(fault.New(fault.Corrupt, fmt.Sprintf("a page header has %d %s", n, what)))
		return 0
	}
	return n
}

func (h *PageHeader) parseV1(r *thrift.Reader, k thrift.Kind) {
	r.Struct(k)
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			h.Values = size32(r, f.Kind, "values")
		case 2:
			h.Encoding = Encoding(r.Int32(f.Kind))
		case 3:
			h.DefEncoding = Encoding(r.Int32(f.Kind))
		case 4:
			h.RepEncoding = Encoding(r.Int32(f.Kind))
		case 5:
			h.Statistics = parseStatistics(r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
}

func (h *PageHeader) parseDictionary(r *thrift.Reader, k thrift.Kind) {
	r.Struct(k)
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			h.Values = size32(r, f.Kind, "values")
		case 2:
			h.Encoding = Encoding(r.Int32(f.Kind))
		case 3:
			h.Sorted = ptr(r.Bool(f.Kind))
		default:
			r.Skip(f.Kind)
		}
	}
}

func (h *PageHeader) parseV2(r *thrift.Reader, k thrift.Kind) {
	r.Struct(k)
	h.Compressed = true
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			h.Values = size32(r, f.Kind, "values")
		case 2:
			if h.Nulls = r.Int32(f.Kind); h.Nulls != -1 { // of parquet-java 1.15 to 1.17 (parquet-java 3585)
				h.Nulls = nonNegative(r, h.Nulls, "nulls")
			}
		case 3:
			h.Rows = size32(r, f.Kind, "rows")
		case 4:
			h.Encoding = Encoding(r.Int32(f.Kind))
		case 5:
			h.DefBytes = size32(r, f.Kind, "bytes of definition levels")
		case 6:
			h.RepBytes = size32(r, f.Kind, "bytes of repetition levels")
		case 7:
			h.Compressed = r.Bool(f.Kind)
		case 8:
			h.Statistics = parseStatistics(r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
}

// AppendPageHeader appends the stored form of h.
func AppendPageHeader(b []byte, h *PageHeader) []byte {
	w := thrift.Writer{B: b}
	w.Begin()
	w.Int32(1, int32(h.Type))
	w.Int32(2, h.UncompressedSize)
	w.Int32(3, h.CompressedSize)
	if h.CRC != nil {
		w.Int32(4, int32(*h.CRC))
	}
	switch h.Type {
	case DataPage:
		w.Struct(5)
		w.Int32(1, h.Values)
		w.Int32(2, int32(h.Encoding))
		w.Int32(3, int32(h.DefEncoding))
		w.Int32(4, int32(h.RepEncoding))
		h.Statistics.write(&w, 5)
		w.End()
	case DictionaryPage:
		w.Struct(7)
		w.Int32(1, h.Values)
		w.Int32(2, int32(h.Encoding))
		maybeBool(&w, 3, h.Sorted)
		w.End()
	case DataPageV2:
		w.Struct(8)
		w.Int32(1, h.Values)
		w.Int32(2, h.Nulls)
		w.Int32(3, h.Rows)
		w.Int32(4, int32(h.Encoding))
		w.Int32(5, h.DefBytes)
		w.Int32(6, h.RepBytes)
		w.Bool(7, h.Compressed)
		h.Statistics.write(&w, 8)
		w.End()
	case IndexPage:
		w.Struct(6)
		w.End()
	}
	w.End()
	return w.B
}

// RewritePageHeader appends the stored header raw with the sizes, CRC, encodings,
// and, of v2 pages, compression of h. Everything else stays as it is stored,
// fields that are not known included. Nil statistics in h take the stored ones
// away.
func RewritePageHeader(b, raw []byte, h *PageHeader) ([]byte, error) {
	s, _, err := thrift.Parse(raw)
	if err != nil {
		return nil, fault.In("read a page header", err)
	}
	set := func(s *thrift.Struct, id int16, n int32) {
		s.Set(id, thrift.Value{Kind: thrift.I32, Int: int64(n)})
	}
	set(s, 2, h.UncompressedSize)
	set(s, 3, h.CompressedSize)
	s.Remove(4)
	if h.CRC != nil {
		set(s, 4, int32(*h.CRC))
	}
	parts := map[PageType]struct{ part, encoding, statistics int16 }{
		DataPage: {5, 2, 5}, DictionaryPage: {7, 2, 0}, DataPageV2: {8, 4, 8},
	}
	at, ok := parts[h.Type]
	if !ok {
		return s.Append(b), nil
	}
	part := s.Get(at.part)
	if part == nil || part.Struct == nil {
		return nil, missing(fmt.Sprintf("the header of a page of type %d", h.Type), "part of its type")
	}
	set(part.Struct, at.encoding, int32(h.Encoding))
	if h.Type == DataPageV2 {
		compressed := thrift.False
		if h.Compressed {
			compressed = thrift.True
		}
		part.Struct.Set(7, thrift.Value{Kind: compressed})
	}
	if at.statistics != 0 && h.Statistics == nil {
		part.Struct.Remove(at.statistics)
	}
	return s.Append(b), nil
}
