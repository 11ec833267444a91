package avro

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/seaice/seaice/fault"
)

// Codec compresses the blocks of a container file.
type Codec string

// The codecs this package reads and writes, by their names in a file.
const (
	Uncompressed Codec = "null"
	Deflate      Codec = "deflate"
	Snappy       Codec = "snappy"
	Zstandard    Codec = "zstandard"
)

// ParseCodec reads a codec as tables' properties and Avro name it: deflate or
// gzip, zstandard or zstd, snappy, and null, none or uncompressed, in any case.
func ParseCodec(name string) (Codec, error) {
	switch strings.ToLower(name) {
	case "deflate", "gzip":
		return Deflate, nil
	case "zstandard", "zstd":
		return Zstandard, nil
	case "snappy":
		return Snappy, nil
	case "null", "none", "uncompressed":
		return Uncompressed, nil
	}
	return "", fault.New(fault.Unsupported, fmt.Sprintf("avro codec %q", name))
}

var errTooLong = errors.New("a block decompresses to more than the limit")

// decompressor turns compressed blocks into data, into a buffer it reuses.
type decompressor struct {
	codec Codec
	limit int
	out   []byte
	in    bytes.Reader
	flate io.ReadCloser
	zstd  *zstd.Decoder
}

func (d *decompressor) block(raw []byte) ([]byte, error) {
	switch d.codec {
	case Uncompressed:
		return raw, nil
	case Snappy:
		return d.snappy(raw)
	case Deflate:
		d.in.Reset(raw)
		if d.flate == nil {
			d.flate = flate.NewReader(&d.in)
		} else if err := d.flate.(flate.Resetter).Reset(&d.in, nil); err != nil {
			return nil, err
		}
		return d.stream(d.flate)
	default:
		d.in.Reset(raw)
		if d.zstd == nil {
			var err error
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxMemory(uint64(d.limit)), zstd.WithDecoderMaxWindow(32<<20))
			if err != nil {
				return nil, err
			}
		}
		if err := d.zstd.Reset(&d.in); err != nil {
			return nil, err
		}
		return d.stream(d.zstd)
	}
}

// stream reads r to its end. The buffer grows with what arrives, so that a
// small block cannot claim a large one.
func (d *decompressor) stream(r io.Reader) ([]byte, error) {
	if d.out == nil {
		d.out = make([]byte, 0, 64<<10)
	}
	out := d.out[:0]
	for {
		if len(out) == cap(out) {
			if cap(out) > d.limit {
				return nil, errTooLong
			}
			out = append(out, 0)[:len(out)]
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if len(out) > d.limit {
			return nil, errTooLong
		}
		if err != nil {
			d.out = out
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
	}
}

func (d *decompressor) snappy(raw []byte) ([]byte, error) {
	if len(raw) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	body, sum := raw[:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return nil, err
	}
	// A snappy copy of three bytes yields at most 64.
	if n > d.limit || n > 32*len(body)+64 {
		return nil, errTooLong
	}
	if cap(d.out) < n {
		d.out = make([]byte, n)
	}
	out, err := snappy.Decode(d.out[:cap(d.out)], body)
	if err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(out) != sum {
		return nil, errors.New("the checksum of a snappy block does not match")
	}
	return out, nil
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}

// compressor is the other direction.
type compressor struct {
	codec Codec
	out   bytes.Buffer
	snap  []byte
	flate *flate.Writer
	zstd  *zstd.Encoder
}

// DefaultLevel lets the codec choose.
const DefaultLevel = 0

func newCompressor(c Codec, level int) (*compressor, error) {
	w := &compressor{codec: c}
	var err error
	switch c {
	case Uncompressed, Snappy:
	case Deflate:
		if level == DefaultLevel {
			level = 4
		}
		w.flate, err = flate.NewWriter(&w.out, level)
	case Zstandard:
		if level == DefaultLevel {
			level = 3
		}
		w.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithWindowSize(1<<20))
	default:
		err = fmt.Errorf("codec %q", c)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "write avro", err)
	}
	return w, nil
}

// block compresses data; the result is valid until the next call.
func (w *compressor) block(data []byte) ([]byte, error) {
	switch w.codec {
	case Snappy:
		w.snap = snappy.Encode(w.snap[:cap(w.snap)], data)
		w.snap = binary.BigEndian.AppendUint32(w.snap, crc32.ChecksumIEEE(data))
		return w.snap, nil
	case Deflate:
		w.out.Reset()
		w.flate.Reset(&w.out)
		if _, err := w.flate.Write(data); err != nil {
			return nil, err
		}
		if err := w.flate.Close(); err != nil {
			return nil, err
		}
		return w.out.Bytes(), nil
	case Zstandard:
		w.snap = w.zstd.EncodeAll(data, w.snap[:0])
		return w.snap, nil
	}
	return data, nil
}
