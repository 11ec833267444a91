// Package codec compresses and decompresses page bodies. Lengths are known from
// page headers, so that nothing is allocated beyond them; encoders and decoders
// are pooled. All functions are safe for concurrent use.
package codec

import (
	"fmt"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// DefaultLevel is the level of a codec that is used where none is stated: 3 of
// zstd, 6 of gzip, 4 of brotli.
const DefaultLevel = math.MinInt

// QuickLevel is a level of zstd that takes a third of the time of its default. It
// is as small where there are few repetitions or only short ones.
const QuickLevel = math.MinInt + 1

// Name is the codec's name as table properties have it, lz4 for both forms.
func Name(c format.Codec) string {
	switch c {
	case format.Uncompressed:
		return "uncompressed"
	case format.Snappy:
		return "snappy"
	case format.Gzip:
		return "gzip"
	case format.LZO:
		return "lzo"
	case format.Brotli:
		return "brotli"
	case format.Zstd:
		return "zstd"
	case format.LZ4, format.LZ4Raw:
		return "lz4"
	}
	return fmt.Sprintf("codec %d", c)
}

// Compress appends the compressed form of src to dst. Snappy and uncompressed
// have no levels; lz4 has 1 to 9 beside its default; a level out of a codec's
// range is moved into it. LZO and Hadoop's framing of LZ4 are fault.Unsupported.
func Compress(dst, src []byte, c format.Codec, level int) (out []byte, err error) {
	defer guard(c, &err)
	switch c {
	case format.Uncompressed:
		return append(dst, src...), nil
	case format.Snappy:
		return compressSnappy(dst, src), nil
	case format.Gzip:
		return compressGzip(dst, src, level)
	case format.Brotli:
		return compressBrotli(dst, src, level)
	case format.Zstd:
		return compressZstd(dst, src, level)
	case format.LZ4Raw:
		return compressLZ4(dst, src, level)
	}
	return nil, fault.New(fault.Unsupported, "compress with "+Name(c))
}

// Decompress fills dst, whose length is that of the content, from src. Content of
// another length and broken input are fault.Corrupt, LZO is fault.Unsupported.
func Decompress(dst, src []byte, c format.Codec) (err error) {
	defer guard(c, &err)
	if len(dst) == 0 && len(src) == 0 {
		return nil // an empty part of a v2 page is not compressed at all
	}
	switch c {
	case format.Uncompressed:
		if len(src) != len(dst) {
			return length(c, len(src), len(dst))
		}
		copy(dst, src)
		return nil
	case format.Snappy:
		return decompressSnappy(dst, src)
	case format.Gzip:
		return decompressGzip(dst, src)
	case format.Brotli:
		return decompressBrotli(dst, src)
	case format.Zstd:
		return decompressZstd(dst, src)
	case format.LZ4Raw:
		return decompressLZ4(dst, src)
	case format.LZ4:
		return decompressHadoop(dst, src)
	}
	return fault.New(fault.Unsupported, "decompress "+Name(c))
}

func length(c format.Codec, got, want int) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("%s content has %d bytes, not %d", Name(c), got, want))
}

func broken(c format.Codec, err error) error {
	return fault.Wrap(fault.Corrupt, "decompress "+Name(c), err)
}

func guard(c format.Codec, err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Corrupt, fmt.Sprintf("%s: %v", Name(c), p))
	}
}
