package codec

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// beginWindow bounds what a decoder of beginnings keeps.
const beginWindow = 16 << 20

// beginners are decoders that need not decode all of a frame.
var beginners = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(beginWindow))
	if err != nil {
		return nil
	}
	return d
}}

// Begin fills dst with the begin of the content of src, which has size bytes. dst
// is not longer than that. With zstd, and without compression, no more is decoded
// than is needed.
func Begin(dst, src []byte, size int, c format.Codec) (err error) {
	defer guard(c, &err)
	switch {
	case len(dst) > size:
		return length(c, size, len(dst))
	case len(dst) == size && c != format.Uncompressed:
		return Decompress(dst, src, c)
	case c == format.Uncompressed:
		if len(src) < len(dst) {
			return length(c, len(src), len(dst))
		}
		copy(dst, src)
		return nil
	case c == format.Zstd && beginZstd(dst, src) == nil:
		return nil
	}
	all := make([]byte, size)
	if err := Decompress(all, src, c); err != nil {
		return err
	}
	copy(dst, all)
	return nil
}

// beginZstd may refuse frames that can be decoded in full, such as those of a large
// window.
func beginZstd(dst, src []byte) error {
	d, ok := beginners.Get().(*zstd.Decoder)
	if !ok {
		return fault.New(fault.Unsupported, "make a zstd decoder")
	}
	defer beginners.Put(d)
	// Not a bytes.Buffer, which would be decoded at once.
	err := d.Reset(bytes.NewReader(src))
	if err == nil {
		_, err = io.ReadFull(d, dst)
	}
	_ = d.Reset(nil) // lets go of src; its error says that there is no input now
	return err
}
