package encode

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// levels are the encoded levels of a page as they lie in its body: in version 1
// each with its length in front, in version 2 without.
type levels struct {
	bytes    []byte
	rep, def int // lengths of the two, without the length in front
}

// counts of a page.
type counts struct {
	levels, rows, values int
}

// assembler puts pages together. Its buffers are used again.
type assembler struct {
	leaf   *format.Node
	o      *Options
	levels []byte
	raw    []byte
	body   []byte
	zstd   zstdChoice
	// spare is the share of the page at hand that may be given up by not compressing
	// it; 0 is a page that is compressed. gain is what compression gained of the last
	// page that was judged, judged the number of pages since.
	spare, gain float64
	judged      int
}

// judgeLeast is trialLeast of pages that may be stored without compression.
const judgeLeast = 2 << 10

// encodeLevels encodes the levels of a page.
func (a *assembler) encodeLevels(rep, def []byte) levels {
	l := levels{}
	b := a.levels[:0]
	if a.leaf.MaxRep > 0 {
		b, l.rep = a.section(b, func(b []byte) []byte { return appendHybrid(b, rep, levelWidth(a.leaf.MaxRep)) })
	}
	if a.leaf.MaxDef > 0 {
		b, l.def = a.section(b, func(b []byte) []byte { return appendHybrid(b, def, levelWidth(a.leaf.MaxDef)) })
	}
	a.levels, l.bytes = b, b
	return l
}

// repeatLevels encodes n rows of one level each: repetition 0 and definition def.
func (a *assembler) repeatLevels(n, def int) levels {
	l := levels{}
	b := a.levels[:0]
	if a.leaf.MaxRep > 0 {
		b, l.rep = a.section(b, func(b []byte) []byte { return appendRun(b, 0, n, levelWidth(a.leaf.MaxRep)) })
	}
	if a.leaf.MaxDef > 0 {
		b, l.def = a.section(b, func(b []byte) []byte { return appendRun(b, uint32(def), n, levelWidth(a.leaf.MaxDef)) })
	}
	a.levels, l.bytes = b, b
	return l
}

// section appends one kind of levels, in version 1 with the length in front.
func (a *assembler) section(b []byte, add func([]byte) []byte) (all []byte, length int) {
	if a.o.Version == 2 {
		n := len(b)
		b = add(b)
		return b, len(b) - n
	}
	n := len(b)
	b = add(append(b, 0, 0, 0, 0))
	length = len(b) - n - 4
	binary.LittleEndian.PutUint32(b[n:], uint32(length))
	return b, length
}

// data makes a data page of encoded levels and encoded values. The body is the
// assembler's, or values themselves, until the next page.
func (a *assembler) data(l levels, values []byte, enc format.Encoding, c counts, x PageIndex) (Page, error) {
	size := len(l.bytes) + len(values)
	if size > math.MaxInt32 || c.levels > math.MaxInt32 {
		return Page{}, a.tooLarge(size)
	}
	h := format.PageHeader{UncompressedSize: int32(size), Values: int32(c.levels), Encoding: enc}
	a.zstd.stride, a.zstd.head, a.zstd.most = 0, 0, trialMost
	if enc == format.Plain {
		a.zstd.stride, a.zstd.side = strideOf(a.leaf, values)
	}
	var err error
	if a.o.Version == 2 {
		h.Type, h.Nulls, h.Rows = format.DataPageV2, int32(c.levels-c.values), int32(c.rows)
		h.RepBytes, h.DefBytes = int32(l.rep), int32(l.def)
		a.body = append(a.body[:0], l.bytes...)
		h.Compressed, err = a.compressValues(values)
	} else {
		h.Type, h.DefEncoding, h.RepEncoding = format.DataPage, format.RLE, format.RLE
		src := values
		if len(l.bytes) > 0 {
			a.raw = append(append(a.raw[:0], l.bytes...), values...)
			src = a.raw
			a.zstd.head = len(l.bytes)
		}
		if a.o.Codec == format.Uncompressed {
			return a.finish(h, src, x)
		}
		a.body, err = a.compress(a.body[:0], src)
	}
	if err != nil {
		return Page{}, err
	}
	return a.finish(h, a.body, x)
}

// compressValues appends the values of a version 2 page to the body, compressed
// where that makes them smaller.
func (a *assembler) compressValues(values []byte) (compressed bool, err error) {
	n := len(a.body)
	if a.o.Codec != format.Uncompressed && len(values) > 0 {
		if stored, err := a.stored(values); err != nil {
			return false, err
		} else if stored {
			a.body = append(a.body, values...)
			return false, nil
		}
		if a.body, err = a.compress(a.body, values); err != nil {
			return false, err
		}
		if len(a.body)-n < len(values) {
			return true, nil
		}
	}
	a.body = append(a.body[:n], values...)
	return false, nil
}

// dictionary makes the dictionary page of d.
func (a *assembler) dictionary(d *Dictionary) (Page, error) {
	raw := appendPlain(a.raw[:0], &d.values, 0, d.Len())
	a.zstd.head, a.zstd.most = 0, trialEntries
	a.zstd.stride, a.zstd.side = strideOf(a.leaf, raw)
	a.raw = raw
	if len(raw) > math.MaxInt32 {
		return Page{}, a.tooLarge(len(raw))
	}
	h := format.PageHeader{
		Type: format.DictionaryPage, UncompressedSize: int32(len(raw)), Values: int32(d.Len()), Encoding: format.Plain,
	}
	var err error
	if a.body, err = a.compress(a.body[:0], raw); err != nil {
		return Page{}, err
	}
	return a.finish(h, a.body, UnknownIndex())
}

func (a *assembler) finish(h format.PageHeader, body []byte, x PageIndex) (Page, error) {
	if len(body) > math.MaxInt32 {
		return Page{}, a.tooLarge(len(body))
	}
	h.CompressedSize = int32(len(body))
	if a.o.CRC {
		sum := crc32.ChecksumIEEE(body)
		h.CRC = &sum
	}
	return Page{Header: h, Body: body, Index: x}, nil
}

func (a *assembler) compress(dst, src []byte) ([]byte, error) {
	if a.o.Codec == format.Uncompressed {
		return append(dst, src...), nil
	}
	level := a.o.Level
	if level == 0 || level == codec.DefaultLevel {
		if a.o.Codec == format.Zstd {
			if stored, err := a.stored(src); err != nil {
				return nil, err
			} else if stored {
				return codec.AppendStored(dst, src), nil
			}
			return a.zstd.compress(dst, src)
		}
		level = codec.DefaultLevel
	}
	return codec.Compress(dst, src, a.o.Codec, level)
}

// stored reports that a page is to be stored without compression, by what that did to
// some of the pages of a chunk.
func (a *assembler) stored(src []byte) (bool, error) {
	if a.spare <= 0 || a.o.Codec != format.Zstd || a.o.Level != 0 && a.o.Level != codec.DefaultLevel {
		return false, nil
	}
	if a.judged--; a.judged < 0 && len(src) >= judgeLeast {
		a.judged = trialEvery
		var err error
		if a.zstd.trial, err = codec.Compress(a.zstd.trial[:0], src, format.Zstd, codec.QuickLevel); err != nil {
			return false, err
		}
		a.gain = 1 - float64(len(a.zstd.trial))/float64(len(src))
	}
	return a.gain <= a.spare, nil
}

func (a *assembler) tooLarge(size int) error {
	return fault.New(fault.TooLarge, fmt.Sprintf("column %s: a page of %d bytes; pages hold less than 2 GiB and whole rows", a.leaf.Name, size))
}
