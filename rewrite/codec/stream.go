package codec

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// appender writes to the end of a slice.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// resetter is a compressor that can be used again.
type resetter interface {
	io.WriteCloser
	Reset(w io.Writer)
}

type pools struct {
	byLevel sync.Map // level to *sync.Pool of resetter
	make    func(level int) resetter
}

var (
	gzips = pools{make: func(level int) resetter {
		w, err := gzip.NewWriterLevel(nil, level)
		if err != nil {
			panic(err) // the level is in range
		}
		return w
	}}
	brotlis = pools{make: func(level int) resetter { return brotli.NewWriterLevel(nil, level) }}
)

func (p *pools) compress(dst, src []byte, level int) ([]byte, error) {
	at, ok := p.byLevel.Load(level)
	if !ok {
		at, _ = p.byLevel.LoadOrStore(level, &sync.Pool{New: func() any { return p.make(level) }})
	}
	pool := at.(*sync.Pool)
	w := pool.Get().(resetter)
	out := &appender{dst}
	w.Reset(out)
	if _, err := w.Write(src); err != nil {
		return nil, fault.Wrap(fault.Halt, "compress", err)
	}
	if err := w.Close(); err != nil {
		return nil, fault.Wrap(fault.Halt, "compress", err)
	}
	w.Reset(nil)
	pool.Put(w)
	return out.b, nil
}

func compressGzip(dst, src []byte, level int) ([]byte, error) {
	if level == DefaultLevel {
		level = 6
	}
	return gzips.compress(dst, src, min(max(level, 0), 9))
}

func compressBrotli(dst, src []byte, level int) ([]byte, error) {
	if level == DefaultLevel {
		level = 4
	}
	return brotlis.compress(dst, src, min(max(level, brotli.BestSpeed), brotli.BestCompression))
}

var (
	gunzips   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	unbrotlis = sync.Pool{New: func() any { return new(brotli.Reader) }}
)

func decompressGzip(dst, src []byte) error {
	z := gunzips.Get().(*gzip.Reader)
	defer gunzips.Put(z)
	if err := z.Reset(bytes.NewReader(src)); err != nil { // reads on over members
		return broken(format.Gzip, err)
	}
	return fill(format.Gzip, dst, z)
}

func decompressBrotli(dst, src []byte) error {
	z := unbrotlis.Get().(*brotli.Reader)
	defer unbrotlis.Put(z)
	if err := z.Reset(bytes.NewReader(src)); err != nil {
		return broken(format.Brotli, err)
	}
	return fill(format.Brotli, dst, z)
}

// fill reads dst, which must be all there is.
func fill(c format.Codec, dst []byte, r io.Reader) error {
	if n, err := io.ReadFull(r, dst); err == io.EOF || err == io.ErrUnexpectedEOF {
		return length(c, n, len(dst))
	} else if err != nil {
		return broken(c, err)
	}
	var more [1]byte
	switch _, err := io.ReadFull(r, more[:]); err {
	case io.EOF:
		return nil
	case nil:
		return length(c, len(dst)+1, len(dst))
	default:
		return broken(c, err)
	}
}
