package movement

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/seaice/seaice/fault"
)

// MaxBytes bounds a map as stored.
const MaxBytes = 64 << 20

// A stored map is the magic number, a version, its fields as varints, and the
// CRC-32C of all of that. A run is four numbers: the rows skipped since the last
// run of the source, its rows, the change of the output, and the difference
// between its place in the output and the row behind the last run that went to
// the same output. Runs in file order take 4 to 6 bytes; so does every row of a
// permutation that is not next to its old neighbour.
const (
	magic   = "\xd5map"
	version = 1
	minRun  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the map as stored to b. The map must be one that Check accepts.
// Above MaxBytes it is fault.TooLarge.
func (m *Map) Append(b []byte) ([]byte, error) {
	begin := len(b)
	b = append(append(b, magic...), version)
	b = binary.AppendUvarint(b, uint64(len(m.Outputs)))
	for _, o := range m.Outputs {
		b = appendText(b, o.Location)
		b = binary.AppendUvarint(b, uint64(o.Rows))
	}
	b = binary.AppendUvarint(b, uint64(len(m.Sources)))
	next := make([]int64, len(m.Outputs))
	for _, s := range m.Sources {
		b = appendText(b, s.Location)
		b = binary.AppendUvarint(b, uint64(s.Rows))
		b = binary.AppendUvarint(b, uint64(len(s.Runs)))
		end, output := int64(0), int32(0)
		for _, r := range s.Runs {
			b = binary.AppendUvarint(b, uint64(r.From-end))
			b = binary.AppendUvarint(b, uint64(r.Rows))
			b = binary.AppendVarint(b, int64(r.Output-output))
			b = binary.AppendVarint(b, r.To-next[r.Output])
			end, output, next[r.Output] = r.From+r.Rows, r.Output, r.To+r.Rows
			if len(b)-begin > MaxBytes {
				return nil, fault.New(fault.TooLarge, fmt.Sprintf("the movement map takes more than %d bytes", MaxBytes))
			}
		}
	}
	if len(b)-begin > MaxBytes-crc32.Size {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("the movement map takes %d bytes, of %d", len(b)-begin, MaxBytes))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[begin:], castagnoli)), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Parse reads a map as Append stored it and checks it. Anything wrong with it is
// fault.Corrupt, a later version fault.Unsupported.
func Parse(b []byte) (*Map, error) {
	m, err := parse(b)
	return m, fault.In("read a movement map", err)
}

func parse(b []byte) (*Map, error) {
	if len(b) > MaxBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("%d bytes, of %d", len(b), MaxBytes))
	}
	end := len(b) - crc32.Size
	if end < len(magic)+1 || string(b[:len(magic)]) != magic {
		return nil, fault.New(fault.Corrupt, "it does not begin as one")
	}
	if v := b[len(magic)]; v != version {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("version %d", v))
	}
	if sum := crc32.Checksum(b[:end], castagnoli); sum != binary.BigEndian.Uint32(b[end:]) {
		return nil, fault.New(fault.Corrupt, "its checksum is wrong")
	}
	p := parser{b: b[len(magic)+1 : end]}
	m := p.read()
	if p.err == nil && len(p.b) > 0 {
		p.err = fault.New(fault.Corrupt, fmt.Sprintf("%d bytes behind its end", len(p.b)))
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, m.check()
}

// parser reads numbers until the first that is wrong.
type parser struct {
	b   []byte
	err error
}

func (p *parser) read() *Map {
	m := &Map{}
	for range p.count(2) {
		m.Outputs = append(m.Outputs, Output{Location: p.text(), Rows: p.number()})
	}
	next := make([]int64, len(m.Outputs))
	for range p.count(3) {
		s := Source{Location: p.text(), Rows: p.number()}
		n := p.count(minRun)
		if n > 0 {
			s.Runs = make([]Run, 0, n)
		}
		end, output := int64(0), int64(0)
		for range n {
			r := Run{From: end + p.number(), Rows: p.number()}
			output += p.difference()
			if p.err == nil && (output < 0 || output >= int64(len(next)) || r.From < 0 || r.Rows > math.MaxInt64-r.From) {
				p.err = fault.New(fault.Corrupt, fmt.Sprintf("%d rows from row %d on went to output %d of %d", r.Rows, r.From, output, len(next)))
			}
			if p.err != nil {
				return nil
			}
			r.Output, r.To = int32(output), next[output]+p.difference()
			end, next[output] = r.From+r.Rows, r.To+r.Rows // a wrong one is found by check
			s.Runs = append(s.Runs, r)
		}
		m.Sources = append(m.Sources, s)
		if p.err != nil {
			return nil
		}
	}
	return m
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = fault.New(fault.Corrupt, what)
	}
	p.b = nil
}

// number reads a number that is not negative.
func (p *parser) number() int64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || v > math.MaxInt64 {
		p.fail("a number is cut or too great")
		return 0
	}
	p.b = p.b[n:]
	return int64(v)
}

func (p *parser) difference() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.fail("a number is cut or too great")
		return 0
	}
	p.b = p.b[n:]
	return v
}

// count reads how many things of at least size bytes follow.
func (p *parser) count(size int64) int64 {
	n := p.number()
	if n > int64(len(p.b))/size {
		p.fail(fmt.Sprintf("%d parts in %d bytes", n, len(p.b)))
		return 0
	}
	return n
}

func (p *parser) text() string {
	n := p.count(1)
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

// MarshalText makes the map text for JSON: what Append gives, in base64.
func (m *Map) MarshalText() ([]byte, error) {
	b, err := m.Append(nil)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads what MarshalText wrote.
func (m *Map) UnmarshalText(text []byte) error {
	if len(text) > base64.StdEncoding.EncodedLen(MaxBytes) {
		return fault.New(fault.TooLarge, fmt.Sprintf("read a movement map: %d bytes of text", len(text)))
	}
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fault.Wrap(fault.Corrupt, "read a movement map", err)
	}
	out, err := Parse(b)
	if err != nil {
		return err
	}
	*m = *out
	return nil
}
