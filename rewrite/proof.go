package rewrite

import (
	"bytes"
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
	buffer []byte
	// joins are the hashes of mappings that were compared, by their first code.
	joins map[*uint32]uint64
}

func (p *proof) close() {
	if p.again != nil {
		p.again.Close()
	}
}

// joined compares a dictionary with its part of the merged one: by the codes of m, and
// by its own where m says that pages need not be changed.
func (p *proof) joined(entries *column.Values, union *encode.Dictionary, m *encode.Mapping, location string) error {
	if !p.on {
		return nil
	}
	all, codes := union.Values(), m.Codes
	if len(codes) != entries.Len() {
		return fault.New(fault.Halt, fmt.Sprintf("%d of the %d entries of the dictionary of %s have codes", len(codes), entries.Len(), location))
	}
	for k, c := range codes {
		if int(c) >= all.Len() || !bytes.Equal(entries.At(k), all.At(int(c))) || m.Identity && int(c) != k {
			return fault.New(fault.Halt, fmt.Sprintf("entry %d of the dictionary of %s is another value in the merged one", k, location))
		}
	}
	if p.joins == nil {
		p.joins = map[*uint32]uint64{}
	}
	if len(codes) > 0 {
		p.joins[&codes[0]] = hashCodes(codes)
	}
	return nil
}

// still compares a mapping that was used with the one that was compared.
func (p *proof) still(codes []uint32, location string) error {
	if !p.on || len(codes) == 0 {
		return nil
	}
	if sum, ok := p.joins[&codes[0]]; !ok || sum != hashCodes(codes) {
		return fault.New(fault.Halt, "the codes of the dictionary of "+location+" are no more those that were compared")
	}
	return nil
}

// hashCodes is a hash of codes in their order.
func hashCodes(codes []uint32) uint64 {
	total, at := uint64(len(codes)), uint64(mixD)
	for _, c := range codes {
		total += fold(at, uint64(c)^mixC)
		at += mixA
	}
	return total
}

// merged compares the dictionary written with the one that was to be.
func (p *proof) merged(union *encode.Dictionary) error {
	if !p.on {
		return nil
	}
	entries, all := p.again.Entries(), union.Values()
	if entries.Len() != all.Len() {
		return fault.New(fault.Halt, fmt.Sprintf("the dictionary written has %d entries, not %d", entries.Len(), all.Len()))
	}
	for i := range entries.Len() {
		if !bytes.Equal(entries.At(i), all.At(i)) {
			return fault.New(fault.Halt, fmt.Sprintf("entry %d of the dictionary written is another value", i))
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
