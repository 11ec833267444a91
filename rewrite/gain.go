package rewrite

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// Writers of small files rightly leave a dictionary out that is worth its bytes in
// a large file. The gain rule finds columns of which that is so: the begins of a
// few pages, of several sources, say how many distinct values the column has, and
// from that follows what it would take with a dictionary. It is asked once for a
// leaf of a unit.
const (
	// gainBlocks pages are looked into, gainValues values of each.
	gainBlocks = 4
	gainValues = 4096
	// gainLeast is how many bytes a chunk must have, as stored, to be looked at.
	gainLeast = 64 << 10
	// gainRead is how much of a chunk is read for that, if it is enough: the first
	// block of a zstd frame at least.
	gainRead = 160 << 10
	// gainPage is the greatest page that is looked into.
	gainPage = 16 << 20
	// gainShare is what is thought to be left at most where it is worth encoding
	// anew.
	gainShare = 0.93
	// gainOverlap is how much ranges of numbers must overlap to be thought of as
	// having values in common.
	gainOverlap = 1.25
)

// verdict is what is known of a leaf.
type verdict uint8

const (
	gainUnknown verdict = iota
	gainNone
	gainSome
)

// gain gives copying up where encoding the chunk anew makes it smaller.
func (m *mover) gain(parts []part) error {
	v := &m.e.gains[m.index]
	if *v == gainNone || m.e.q.Copying != CopyWhereAllowed || m.e.settings.dictBytes == 0 ||
		m.leaf.Node.Type == format.Boolean || m.leaf.Lineage != resolve.NoLineage {
		return nil
	}
	plain, stored, total := []*part(nil), 0.0, 0.0
	for i := range parts {
		p := &parts[i]
		total += p.weight()
		if p.copied && p.plain() {
			plain = append(plain, p)
			stored += p.weight()
		}
	}
	if len(plain) < 2 || stored < gainLeast || stored < total/2 {
		return nil
	}
	if *v == gainUnknown {
		*v = gainNone
		s, err := m.sample(plain)
		if err != nil {
			return err
		}
		if s != nil && s.worth(&m.e.settings, stored) {
			*v = gainSome
		}
	}
	if *v == gainSome {
		for i := range parts {
			parts[i].copied = false
			parts[i].close()
		}
	}
	return nil
}

// plain reports that all values are PLAIN.
func (p *part) plain() bool {
	if p.coded() {
		return false
	}
	for _, e := range p.chunk.Encodings {
		if e != format.Plain && e != format.RLE && e != format.BitPacked {
			return false
		}
	}
	return true
}

// sample are values of several pages.
type sample struct {
	dict *encode.Dictionary
	// blocks has, by code, in how many pages a value was, last the number of the
	// page that last had it.
	blocks, last []uint32
	pages        uint32
	// full reports that the values do not fit into a dictionary.
	full bool
	// values and bytes are those of the pages, the bytes in PLAIN form; all is how
	// many values the chunk has.
	values, bytes int64
	all           float64
}

// sample looks into pages of parts that lie far from each other. It is nil where
// nothing can be gained.
func (m *mover) sample(parts []*part) (*sample, error) {
	if apart(parts) {
		return nil, nil
	}
	dict, err := encode.NewDictionary(m.leaf.Node, int(m.e.settings.dictBytes))
	if err != nil {
		return nil, err
	}
	if w := m.leaf.Node.Width(); w > 0 {
		dict.Grow(gainBlocks*gainValues, gainBlocks*gainValues*w)
	}
	s := &sample{dict: dict}
	for _, p := range parts {
		s.all += float64(p.chunk.Values)
	}
	n := min(gainBlocks, len(parts))
	for i := range n {
		// The first and the last part are among them.
		if err := s.look(m, parts[i*(len(parts)-1)/(n-1)]); err != nil {
			return nil, err
		}
		if s.full || i == 1 && s.distinct() == 0 {
			return nil, nil
		}
	}
	return s, nil
}

// apart reports that the numbers of parts lie in ranges that hardly overlap, as
// those of counters and clocks do: then there are no values in common.
func apart(parts []*part) bool {
	low, high, sum := math.Inf(1), math.Inf(-1), 0.0
	for _, p := range parts {
		s := p.statistics()
		if s == nil {
			return false
		}
		var from, to float64
		switch {
		case p.node.Type == format.Int64 && len(s.Min) == 8 && len(s.Max) == 8:
			from, to = float64(int64(binary.LittleEndian.Uint64(s.Min))), float64(int64(binary.LittleEndian.Uint64(s.Max)))
		case p.node.Type == format.Int32 && len(s.Min) == 4 && len(s.Max) == 4:
			from, to = float64(int32(binary.LittleEndian.Uint32(s.Min))), float64(int32(binary.LittleEndian.Uint32(s.Max)))
		default:
			return false
		}
		low, high = min(low, from), max(high, to)
		sum += to - from
	}
	return sum < gainOverlap*(high-low)
}

// look adds the begin of the first page of a part.
func (s *sample) look(m *mover, p *part) error {
	b, ok, err := m.first(p)
	if err != nil || !ok {
		return fault.In("read "+p.src.Location, err)
	}
	s.pages++
	for range gainValues {
		v := cutPlain(b, p.node)
		if v == nil {
			break
		}
		b = b[len(v):]
		s.values++
		s.bytes += int64(len(v))
		if p.node.Type == format.ByteArray {
			v = v[4:]
		}
		s.add(v)
	}
	return nil
}

// first are the first values of the first page of a part. It is false for a page that
// is not looked into.
func (m *mover) first(p *part) (b []byte, ok bool, err error) {
	pages, err := p.src.file.Pages(p.group, p.from.Leaf)
	if err != nil {
		return nil, false, err
	}
	defer pages.Close()
	if p.chunk.Codec == format.Zstd || p.chunk.Codec == format.Uncompressed {
		page, ok, err := pages.Begin(gainRead)
		if err != nil {
			return nil, false, err
		}
		if ok {
			if !looked(p, &page) {
				return nil, false, nil
			}
			if b, err := m.begins(page.Body, &page.Header, p); err == nil {
				return b, true, nil
			}
		}
		// More of the page is needed.
		pages.Close()
		if pages, err = p.src.file.Pages(p.group, p.from.Leaf); err != nil {
			return nil, false, err
		}
		defer pages.Close()
	}
	page, err := pages.Next()
	if errors.Is(err, io.EOF) {
		return nil, false, nil
	}
	if err != nil || !looked(p, &page) {
		return nil, false, err
	}
	b, err = m.begins(page.Body, &page.Header, p)
	return b, err == nil, err
}

// looked reports that the first page of a part is looked into.
func looked(p *part, page *column.Page) bool {
	h := &page.Header
	return h.Encoding == format.Plain && h.UncompressedSize <= gainPage && h.UncompressedSize > 0 && h.Values > 0 && p.movable(h)
}

// begins are the first values of a page, about so many as are needed.
func (m *mover) begins(body []byte, h *format.PageHeader, p *part) ([]byte, error) {
	size, c := int(h.UncompressedSize), p.chunk.Codec
	levels := 0
	if h.Type == format.DataPageV2 {
		n := int(h.RepBytes) + int(h.DefBytes)
		if h.RepBytes < 0 || h.DefBytes < 0 || n > len(body) || n > size {
			return nil, fault.New(fault.Corrupt, "levels longer than their page")
		}
		body, size = body[n:], size-n
		if !h.Compressed {
			c = format.Uncompressed
		}
	} else {
		// Levels in runs take hardly more than those that are packed.
		width := bits.Len(uint(p.node.MaxDef)) + bits.Len(uint(p.node.MaxRep))
		levels = 16 + int(h.Values)/8*width*9/8
	}
	want := min(size, levels+size*gainValues/int(max(h.Values, gainValues)))
	if err := m.e.reading.Take(int64(size)); err != nil {
		return nil, nil //nolint:nilerr // with no memory left nothing is looked for
	}
	defer m.e.reading.Give(int64(size))
	b := make([]byte, want)
	if err := codec.Begin(b, body, size, c); err != nil {
		return nil, err
	}
	if h.Type == format.DataPageV2 {
		return b, nil
	}
	n, err := encode.LevelsLength(p.node, h, b)
	if err != nil {
		return nil, nil //nolint:nilerr // the levels are longer than what was read of them
	}
	return b[n:], nil
}

// cutPlain is the first value of b in PLAIN form, or nil.
func cutPlain(b []byte, n *format.Node) []byte {
	size := n.Width()
	if n.Type == format.ByteArray {
		if len(b) < 4 {
			return nil
		}
		length := binary.LittleEndian.Uint32(b)
		if length > math.MaxInt32 {
			return nil
		}
		size = 4 + int(length)
	}
	if size <= 0 || size > len(b) {
		return nil
	}
	return b[:size]
}

func (s *sample) add(v []byte) {
	code, ok := s.dict.Put(v)
	if !ok {
		s.full = true
		return
	}
	if int(code) == len(s.last) {
		s.last, s.blocks = append(s.last, 0), append(s.blocks, 0)
	}
	if s.last[code] != s.pages {
		s.last[code] = s.pages
		s.blocks[code]++
	}
}

// distinct is about how many values there are (Chao's estimator of the number of
// species from how many were in one place only, and in two), or 0 if it cannot be
// told because hardly any came twice.
func (s *sample) distinct() float64 {
	one, two, more := 0.0, 0.0, 0.0
	for _, n := range s.blocks {
		switch n {
		case 1:
			one++
		case 2:
			two++
		default:
			more++
		}
	}
	const few = 8
	if two+more < min(few, one/2) || s.pages < 2 {
		return 0
	}
	k := float64(s.pages)
	unseen := (k - 1) / k * one * one / (2 * max(two, 1))
	return one + two + more + unseen
}

// worth reports that a chunk with a dictionary would be much smaller than it is.
func (s *sample) worth(t *settings, stored float64) bool {
	d := min(s.distinct(), s.all)
	if d < 1 || s.values == 0 {
		return false
	}
	length := float64(s.bytes) / float64(s.values)
	if d*length > float64(t.dictBytes) {
		return false
	}
	// The encoder decides by its first page, of which no value is compressed.
	if !firstPage(t, d, length, s.all) {
		return false
	}
	// Codes do not compress, if they come in no order. Entries do, but being
	// distinct not as well as the column does.
	entry := length * min(1, 2*stored/(s.all*length))
	return s.all*codeBytes(d)+d*entry <= gainShare*stored
}

// firstPage reports that the encoder begins with a dictionary where there are d
// values that come in no order.
func firstPage(t *settings, d, length, rows float64) bool {
	rows = min(rows, float64(t.pageRows), float64(t.pageBytes)/length)
	entries := d * -math.Expm1(-rows/d)
	return entries*length+rows*codeBytes(entries) < 0.75*rows*length
}

func codeBytes(entries float64) float64 {
	return float64(max(1, bits.Len64(uint64(max(entries, 1))-1))) / 8
}
