package model

import (
	"encoding/binary"
	"fmt"

	"github.com/seaice/seaice/filer"
)

// spread is a fixed, even scatter of n.
func spread(n int) uint64 {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(n)*0x9E3779B97F4A7C15)
	x := binary.BigEndian.Uint64(buf[:])
	return x ^ x>>29
}

func (b *synth) part(n int) int64 {
	switch {
	case b.o.Partitions == 0:
		return 0
	case b.o.Clustered && n >= 0:
		return int64(n) * int64(b.o.Partitions) / int64(b.o.Manifests*b.o.EntriesPerManifest)
	}
	return int64(max(n, -n) % b.o.Partitions)
}

func (b *synth) size(n int) int64 { return int64(spread(n)%uint64(2*b.o.Bytes)) + 1 }

// head writes status, snapshot and sequence numbers; from is the snapshot that
// added the file.
func (b *synth) head(e *avroBytes, status Status, at, from int) {
	e.long(int64(status))
	e.some()
	e.long(int64(b.t.Snapshots[at]))
	if status == Added {
		e.null()
		e.null()
		return
	}
	for range 2 {
		e.some()
		e.long(int64(from) + 1)
	}
}

func (b *synth) tuple(e *avroBytes, line *synthManifest, n int) {
	if b.o.Partitions == 0 {
		return
	}
	p := b.part(n)
	e.some()
	e.long(p)
	if line.low < 0 || p < line.low {
		line.low = p
	}
	line.up = max(line.up, p)
}

// entry writes a data file; n is its number, id that of its statistics.
func (b *synth) entry(e *avroBytes, line *synthManifest, status Status, at, from, n int, path string, id int) {
	b.head(e, status, at, from)
	e.long(int64(Data))
	e.str("s3://" + b.t.Root.Rel(filer.BucketsRoot) + "/" + path)
	e.str("PARQUET")
	b.tuple(e, line, n)
	e.long(b.o.Records)
	e.long(b.size(id))
	b.statistics(e, id)
	e.null()               // key_metadata
	e.optLongs([]int64{4}) // split_offsets
	e.null()               // equality_ids
	e.null()               // sort_order_id
	if b.o.Version >= 3 {
		if status == Deleted {
			first := b.churnRow + line.rows[Deleted]
			e.optLong(&first)
		} else {
			e.null()
		}
		e.null()
		e.null()
		e.null()
	}
	line.files[status]++
	line.rows[status] += b.o.Records
}

// statistics are those of the columns: sizes, counts and bounds.
func (b *synth) statistics(e *avroBytes, id int) {
	n := b.o.Columns
	if n == 0 {
		for range 6 {
			e.null()
		}
		return
	}
	counts := func(v int64) {
		e.some()
		e.long(int64(n))
		for c := range n {
			e.long(int64(3 + c))
			e.long(v)
		}
		e.long(0)
	}
	bounds := func(v int64) {
		e.some()
		e.long(int64(n))
		for c := range n {
			e.long(int64(3 + c))
			e.long(8)
			*e = binary.LittleEndian.AppendUint64(*e, uint64(v+int64(c)))
		}
		e.long(0)
	}
	counts(b.size(id) / int64(n))
	counts(b.o.Records)
	counts(0)
	e.null() // nan_value_counts
	bounds(int64(id) * 1000)
	bounds(int64(id)*1000 + 999)
}

// deleteEntry writes a position delete file, or a vector in v3, of data file n.
func (b *synth) deleteEntry(e *avroBytes, line *synthManifest, n int) {
	b.head(e, Added, 0, 0)
	e.long(1)
	path, format := b.t.data(n, "x"), "PARQUET"
	if b.o.Version >= 3 {
		path, format = fmt.Sprintf("data/x/%06d.puffin", n/100), "PUFFIN"
	}
	prefix := "s3://" + b.t.Root.Rel(filer.BucketsRoot) + "/"
	e.str(prefix + path)
	e.str(format)
	b.tuple(e, line, n)
	e.long(1)
	e.long(500)
	target := prefix + b.t.data(n, "d")
	for range 4 {
		e.null()
	}
	for range 2 {
		e.optBounds(map[int][]byte{fieldFilePath: []byte(target)})
	}
	for range 4 { // key_metadata, split_offsets, equality_ids, sort_order_id
		e.null()
	}
	if b.o.Version >= 3 {
		e.null()
		e.some()
		e.str(target)
		e.some()
		e.long(4 + int64(n%100)*60)
		e.some()
		e.long(60)
	}
	line.files[Added]++
	line.rows[Added]++
}
