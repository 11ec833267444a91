package codec

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

func compressSnappy(dst, src []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, snappy.MaxEncodedLen(len(src)))
	return dst[:at+len(snappy.Encode(dst[at:cap(dst)], src))]
}

func decompressSnappy(dst, src []byte) error {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return broken(format.Snappy, err)
	}
	if n != len(dst) {
		return length(format.Snappy, n, len(dst))
	}
	if _, err := snappy.Decode(dst, src); err != nil {
		return broken(format.Snappy, err)
	}
	return nil
}

var (
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		// The capacity of the destination bounds what is written.
		return zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true))
	})
	zstdEncoders sync.Map // zstd.EncoderLevel to func() (*zstd.Encoder, error)
)

// zstdWindow is enough for a page of common size and keeps an encoder small.
const zstdWindow = 1 << 20

func compressZstd(dst, src []byte, level int) ([]byte, error) {
	if level == DefaultLevel {
		level = 3
	}
	l := zstd.EncoderLevelFromZstd(level)
	if level == QuickLevel {
		l = zstd.SpeedFastest
	}
	made, ok := zstdEncoders.Load(l)
	if !ok {
		made, _ = zstdEncoders.LoadOrStore(l, sync.OnceValues(func() (*zstd.Encoder, error) {
			// The fastest level would not compress literals where it finds no matches:
			// half of what can be saved of numbers and of text without repetitions.
			return zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithWindowSize(zstdWindow),
				zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true), zstd.WithLowerEncoderMem(true),
				zstd.WithAllLitEntropyCompression(true))
		}))
	}
	e, err := made.(func() (*zstd.Encoder, error))()
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "make a zstd encoder", err)
	}
	return e.EncodeAll(src, dst), nil
}

func decompressZstd(dst, src []byte) error {
	d, err := zstdDecoder()
	if err != nil {
		return fault.Wrap(fault.Halt, "make a zstd decoder", err)
	}
	out, err := d.DecodeAll(src, dst[:0:len(dst)])
	if err != nil {
		return broken(format.Zstd, err)
	}
	if len(out) != len(dst) {
		return length(format.Zstd, len(out), len(dst))
	}
	if len(out) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return nil
}

var (
	lz4Fast = sync.Pool{New: func() any { return new(lz4.Compressor) }}
	lz4High = sync.Pool{New: func() any { return new(lz4.CompressorHC) }}
)

func compressLZ4(dst, src []byte, level int) ([]byte, error) {
	at := len(dst)
	dst = slices.Grow(dst, lz4.CompressBlockBound(len(src))+1)
	if len(src) == 0 {
		return append(dst, 0), nil // a token without literals ends the block
	}
	room := dst[at:cap(dst)]
	var n int
	var err error
	if level == DefaultLevel || level <= 0 {
		c := lz4Fast.Get().(*lz4.Compressor)
		n, err = c.CompressBlock(src, room)
		lz4Fast.Put(c)
	} else {
		c := lz4High.Get().(*lz4.CompressorHC)
		c.Level = lz4.CompressionLevel(1 << (8 + min(level, 9)))
		n, err = c.CompressBlock(src, room)
		lz4High.Put(c)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "compress lz4", err)
	}
	return dst[:at+n], nil
}

func decompressLZ4(dst, src []byte) error {
	if len(dst) == 0 && len(src) == 1 && src[0] == 0 {
		return nil
	}
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return broken(format.LZ4Raw, err)
	}
	if n != len(dst) {
		return length(format.LZ4Raw, n, len(dst))
	}
	return nil
}

// decompressHadoop reads Hadoop's framing: blocks of a length of content and
// parts of a length each, big endian. Some writers call a bare block by this
// codec's name, so that one is tried when the frames do not fit.
func decompressHadoop(dst, src []byte) error {
	if hadoopFrames(dst, src) {
		return nil
	}
	return decompressLZ4(dst, src)
}

func hadoopFrames(dst, src []byte) bool {
	for len(src) >= 8 {
		content := binary.BigEndian.Uint32(src)
		src = src[4:]
		if content > math.MaxInt32 || int(content) > len(dst) {
			return false
		}
		for content > 0 {
			if len(src) < 4 {
				return false
			}
			n := binary.BigEndian.Uint32(src)
			src = src[4:]
			if uint64(n) > uint64(len(src)) {
				return false
			}
			done, err := lz4.UncompressBlock(src[:n], dst[:content])
			if err != nil || done == 0 {
				return false
			}
			dst, src, content = dst[done:], src[n:], content-uint32(done)
		}
	}
	return len(dst) == 0 && len(src) == 0
}
