package rewritemanifests

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/manifests"
)

// proof is a sum over entries that does not depend on their order: two sets of
// entries that hold the same have equal proofs.
type proof struct {
	entries, rows, bytes int64
	sum, mix             uint64
	buf                  []byte
}

func newProof() *proof { return &proof{} }

// add takes in everything an entry says and keeps when it is carried: the ids
// in effect, the file, and every statistic byte for byte.
func (p *proof) add(e *manifests.Entry) {
	p.entries++
	p.rows += e.Records
	p.bytes += e.Bytes
	b := p.buf[:0]
	num := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		num(int64(len(s)))
		b = append(b, s...)
	}
	blob := func(s []byte) {
		if s == nil {
			num(-1)
			return
		}
		text(string(s))
	}
	num(int64(e.SnapshotID.Value))
	num(int64(e.DataSeq.Value))
	num(int64(e.FileSeq.Value))
	num(int64(e.Content))
	text(e.Path)
	text(string(e.Format))
	num(int64(e.SpecID))
	text(string(e.Partition.Key()))
	num(e.Records)
	num(e.Bytes)
	for _, c := range []manifests.Counts{e.ColumnSizes, e.ValueCounts, e.NullCounts, e.NaNCounts} {
		num(size(c == nil, len(c)))
		for _, x := range c {
			num(int64(x.Column))
			num(x.N)
		}
	}
	for _, c := range []manifests.Bounds{e.Lower, e.Upper} {
		num(size(c == nil, len(c)))
		for _, x := range c {
			num(int64(x.Column))
			blob(x.Value)
		}
	}
	num(size(e.SplitOffsets == nil, len(e.SplitOffsets)))
	for _, n := range e.SplitOffsets {
		num(n)
	}
	num(size(e.EqualityIDs == nil, len(e.EqualityIDs)))
	for _, n := range e.EqualityIDs {
		num(int64(n))
	}
	num(int64(e.SortOrderID.Or(-1)))
	num(e.FirstRowID.Or(-1))
	text(e.ReferencedDataFile.Or(""))
	num(e.ContentOffset.Or(-1))
	num(e.ContentSize.Or(-1))
	h := xxhash.Sum64(b)
	p.sum += h
	p.mix += h * (h | 1)
	p.buf = b
}

func size(null bool, n int) int64 {
	if null {
		return -1
	}
	return int64(n)
}

// equals is fault.Halt unless both proofs are over the same entries.
func (p *proof) equals(o *proof) error {
	if p.entries == o.entries && p.rows == o.rows && p.bytes == o.bytes && p.sum == o.sum && p.mix == o.mix {
		return nil
	}
	return fault.New(fault.Halt, fmt.Sprintf("the new manifests do not hold what the old ones do: %d entries, %d rows, %d bytes before; %d, %d, %d after",
		p.entries, p.rows, p.bytes, o.entries, o.rows, o.bytes))
}
