package model

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/seaice/seaice/fault"
)

// avroBytes builds Avro's binary encoding by hand, because libraries hide what
// the quirks of other writers are made of.
type avroBytes []byte

func (b *avroBytes) long(n int64) { *b = binary.AppendVarint(*b, n) }

func (b *avroBytes) boolean(v bool) {
	if v {
		*b = append(*b, 1)
		return
	}
	*b = append(*b, 0)
}

func (b *avroBytes) float(v float32) {
	*b = binary.LittleEndian.AppendUint32(*b, math.Float32bits(v))
}

func (b *avroBytes) double(v float64) {
	*b = binary.LittleEndian.AppendUint64(*b, math.Float64bits(v))
}

func (b *avroBytes) bytes(v []byte) {
	b.long(int64(len(v)))
	*b = append(*b, v...)
}

func (b *avroBytes) str(v string) {
	b.long(int64(len(v)))
	*b = append(*b, v...)
}

func (b *avroBytes) fixed(v []byte) { *b = append(*b, v...) }

// null is the first branch of every optional union, some the second.
func (b *avroBytes) null() { b.long(0) }
func (b *avroBytes) some() { b.long(1) }

func (b *avroBytes) optLong(v *int64) {
	if v == nil {
		b.null()
		return
	}
	b.some()
	b.long(*v)
}

// optLongs is an optional array of numbers, null when empty.
func (b *avroBytes) optLongs(v []int64) {
	if len(v) == 0 {
		b.null()
		return
	}
	b.some()
	b.long(int64(len(v)))
	for _, n := range v {
		b.long(n)
	}
	b.long(0)
}

// optCounts is an optional map of field id to number; nil is null.
func (b *avroBytes) optCounts(m map[int]int64) {
	if m == nil {
		b.null()
		return
	}
	b.some()
	if len(m) > 0 {
		b.long(int64(len(m)))
		for _, id := range slices.Sorted(maps.Keys(m)) {
			b.long(int64(id))
			b.long(m[id])
		}
	}
	b.long(0)
}

// optBounds is an optional map of field id to bytes; nil is null.
func (b *avroBytes) optBounds(m map[int][]byte) {
	if m == nil {
		b.null()
		return
	}
	b.some()
	if len(m) > 0 {
		b.long(int64(len(m)))
		for _, id := range slices.Sorted(maps.Keys(m)) {
			b.long(int64(id))
			b.bytes(m[id])
		}
	}
	b.long(0)
}

var avroMagic = []byte{'O', 'b', 'j', 1}

// deflaters are used again, because each is a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil { // only for a level that does not exist
		panic(err)
	}
	return w
}}

// container is an Avro object container file being written.
type container struct {
	out   bytes.Buffer
	codec string
	sync  [16]byte
	zstd  *zstd.Encoder
}

// newContainer starts a file. The sync marker follows from seed.
func newContainer(header map[string][]byte, schema, codec, seed string) (*container, error) {
	c := &container{codec: codec, sync: syncMarker(seed)}
	switch codec {
	case "null", "snappy":
	case "deflate":
	case "zstandard":
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fault.Wrap(fault.Halt, "open zstd", err)
		}
		c.zstd = w
	default:
		return nil, fault.New(fault.Unsupported, "avro codec "+codec+" is not known")
	}
	meta := maps.Clone(header)
	if meta == nil {
		meta = map[string][]byte{}
	}
	meta["avro.schema"] = []byte(schema)
	meta["avro.codec"] = []byte(codec)
	c.out.Write(avroHeader(meta, c.sync))
	return c, nil
}

func syncMarker(seed string) (out [16]byte) {
	h := fnv.New128a()
	_, _ = h.Write([]byte(seed))
	copy(out[:], h.Sum(nil))
	return out
}

func avroHeader(meta map[string][]byte, sync [16]byte) []byte {
	b := avroBytes(bytes.Clone(avroMagic))
	b.long(int64(len(meta)))
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		b.str(k)
		b.bytes(meta[k])
	}
	b.long(0)
	b.fixed(sync[:])
	return b
}

// block appends a block of n records.
func (c *container) block(n int, records []byte) error {
	packed := records
	switch c.codec {
	case "deflate":
		var buf bytes.Buffer
		w := deflaters.Get().(*flate.Writer)
		defer deflaters.Put(w)
		w.Reset(&buf)
		if _, err := w.Write(records); err != nil {
			return fault.Wrap(fault.Halt, "deflate avro block", err)
		}
		if err := w.Close(); err != nil {
			return fault.Wrap(fault.Halt, "deflate avro block", err)
		}
		packed = buf.Bytes()
	case "zstandard":
		packed = c.zstd.EncodeAll(records, nil)
	case "snappy":
		packed = binary.BigEndian.AppendUint32(snappy.Encode(nil, records), crc32.ChecksumIEEE(records))
	}
	var head avroBytes
	head.long(int64(n))
	head.long(int64(len(packed)))
	c.out.Write(head)
	c.out.Write(packed)
	c.out.Write(c.sync[:])
	return nil
}
