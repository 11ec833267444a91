package rewrite

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// proof compares the content of a chunk as it was read with what the pages
// made of it say when they are decoded again.
type proof struct {
	on     bool
	node   *format.Node
	source sum
	// written is the sum of the pages made, decoded by again into batch.
	written sum
	again   *column.Decoder
	batch   column.Batch
	// codec is that of the pages made; opener opens those of codes.
	codec  format.Codec
	opener *encode.Remapper
	// hashes are those of the entries of the dictionary written.
	hashes []uint64
	buffer []byte
}

func (p *proof) close() {
	if p.again != nil {
		p.again.Close()
	}
}

// merged compares the dictionary written with those it was merged from, and
// keeps its hashes.
func (p *proof) merged(parts []part) error {
	if !p.on {
		return nil
	}
	entries := p.again.Entries()
	p.hashes = make([]uint64, entries.Len())
	for i := range p.hashes {
		p.hashes[i] = hashValue(entries.At(i))
	}
	for i := range parts {
		if !parts[i].copied || parts[i].codes == nil {
			continue
		}
		for k, c := range parts[i].codes.Codes {
			if int(c) >= len(p.hashes) || p.hashes[c] != parts[i].hashes[k] {
				return fault.New(fault.Halt, fmt.Sprintf("entry %d of the dictionary of %s is another value in the merged one", k, parts[i].src.Location))
			}
		}
	}
	return nil
}

func (p *proof) begin(node *format.Node, c format.Codec, on bool) {
	p.on, p.node, p.codec = on, node, c
	if on {
		p.again = column.NewDecoder(node, c, column.DecoderOptions{Name: "the output"})
	}
}

// read adds rows as they were read.
func (p *proof) read(b *column.Batch) {
	if p.on {
		p.source.add(b, p.node.MaxDef)
	}
}

// dictionary takes the dictionary page made.
func (p *proof) dictionary(page *encode.Page) error {
	if !p.on {
		return nil
	}
	err := p.again.Dictionary(column.Page{Header: page.Header, Raw: page.Raw, Body: page.Body})
	return fault.Wrap(fault.Halt, "read the dictionary just written", err)
}

// page adds the content of a data page made.
func (p *proof) page(page *encode.Page) error {
	if !p.on {
		return nil
	}
	err := p.again.Decode(column.Page{Header: page.Header, Raw: page.Raw, Body: page.Body, FirstRow: -1, Rows: -1}, &p.batch)
	if err != nil {
		return fault.Wrap(fault.Halt, "read a page just written", err)
	}
	p.written.add(&p.batch, p.node.MaxDef)
	return nil
}

// end compares.
func (p *proof) end() error {
	if p.source.total != p.written.total || p.source.values != p.written.values {
		return fault.New(fault.Halt, fmt.Sprintf("what was written is not what was read: %d values with sum %016x were, %d with sum %016x are",
			p.source.values, p.source.total, p.written.values, p.written.total))
	}
	return nil
}

// trail is a hash of where the rows of a chunk came from, run by run. Runs that
// join are one, however they were added.
type trail struct {
	sum, rows  uint64
	source     int
	from, next int64
}

func (t *trail) add(source int, from, rows int64) {
	t.rows += uint64(rows)
	if t.next > t.from && t.next == from && t.source == source {
		t.next += rows
		return
	}
	t.flush()
	t.source, t.from, t.next = source, from, from+rows
}

func (t *trail) flush() {
	if t.next == t.from {
		return
	}
	var b [24]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(t.source))
	binary.LittleEndian.PutUint64(b[8:], uint64(t.from))
	binary.LittleEndian.PutUint64(b[16:], uint64(t.next))
	t.sum = bits.RotateLeft64(t.sum, 5) ^ xxh3.HashSeed(b[:], t.sum)
	t.from, t.next = 0, 0
}

// end gives the hash and the number of rows.
func (t *trail) end() (sum, rows uint64) {
	t.flush()
	return t.sum, t.rows
}
