package avro

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seaice/seaice/fault"
)

var magic = []byte{'O', 'b', 'j', 1}

const syncSize = 16

// Limits bound what a file may make a reader hold. The zero value is
// DefaultLimits.
type Limits struct {
	// Block is the most bytes of one block, compressed or not.
	Block int
	// Header is the most bytes of all header values together.
	Header int
}

// DefaultLimits admit what real writers produce: blocks are usually 16 to 64
// KiB, but some writers put a whole manifest into one.
var DefaultLimits = Limits{Block: 64 << 20, Header: 32 << 20}

const maxHeaderKeys = 4096

// Reader reads the blocks of one container file. It is not safe for
// concurrent use.
type Reader struct {
	name   string
	in     *bufio.Reader
	meta   map[string][]byte
	schema *Node
	sync   [syncSize]byte
	limits Limits
	raw    []byte
	dec    decompressor
	taken  int64
}

// counter counts what is read from below.
type counter struct {
	in io.Reader
	n  *int64
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	*c.n += int64(n)
	return n, err
}

// Taken is the number of bytes taken from the underlying reader: behind the
// last block, the length of the file.
func (r *Reader) Taken() int64 { return r.taken }

// NewReader reads the header. The name is the file's, for errors.
func NewReader(in io.Reader, name string, l Limits) (*Reader, error) {
	if l.Block == 0 {
		l.Block = DefaultLimits.Block
	}
	if l.Header == 0 {
		l.Header = DefaultLimits.Header
	}
	r := &Reader{name: name, meta: map[string][]byte{}, limits: l}
	r.in = bufio.NewReaderSize(counter{in, &r.taken}, 32<<10)
	if err := r.header(); err != nil {
		return nil, r.fail("read header", err)
	}
	schema, err := ParseSchema(r.meta["avro.schema"])
	if err != nil {
		return nil, r.fail("read header", err)
	}
	if schema.Kind != Record || schema.minSize == 0 {
		return nil, r.fail("read header", errors.New("the schema is no record with fields"))
	}
	r.schema = schema
	r.dec = decompressor{codec: Uncompressed, limit: l.Block}
	if c := r.meta["avro.codec"]; len(c) > 0 {
		if r.dec.codec, err = ParseCodec(string(c)); err != nil {
			return nil, fault.In("read "+name, err)
		}
	}
	return r, nil
}

// Name is the file's name.
func (r *Reader) Name() string { return r.name }

// Meta is the header's value for the key, nil when absent.
func (r *Reader) Meta(key string) []byte { return r.meta[key] }

// Schema is the writer's schema, a record.
func (r *Reader) Schema() *Node { return r.schema }

// Codec is the codec of the blocks.
func (r *Reader) Codec() Codec { return r.dec.codec }

// Close releases the decoder. The underlying reader is the caller's.
func (r *Reader) Close() { r.dec.close() }

// fail makes err the Corrupt it is, unless it came with a kind from below.
func (r *Reader) fail(doing string, err error) error {
	doing += " of " + r.name
	var carried *fault.Error
	if errors.As(err, &carried) {
		return fault.In(doing, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(fault.Canceled, doing, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTruncated
	}
	var content contentError
	if !errors.As(err, &content) && r.readFailed(err) {
		return fault.In(doing, err)
	}
	return fault.Wrap(fault.Corrupt, doing, err)
}

var errTruncated = errors.New("the file is truncated")

// contentError marks findings in the file's bytes, as opposed to failures to
// get them.
type contentError struct{ error }

func (c contentError) Unwrap() error { return c.error }

// inputError marks failures of the underlying reader.
type inputError struct{ error }

func (c inputError) Unwrap() error { return c.error }

func (r *Reader) readFailed(err error) bool {
	var in inputError
	return errors.As(err, &in)
}

func (r *Reader) header() error {
	var head [4]byte
	if err := r.full(head[:]); err != nil {
		return err
	}
	if !bytes.Equal(head[:], magic) {
		return errors.New("this is no avro container file")
	}
	total := 0
	for {
		count, err := r.long()
		if err != nil {
			return err
		}
		if count == 0 {
			break
		}
		if count < 0 {
			if _, err := r.long(); err != nil {
				return err
			}
			count = -count
		}
		if count < 0 || count > maxHeaderKeys-int64(len(r.meta)) {
			return errors.New("the header has too many keys")
		}
		for ; count > 0; count-- {
			key, err := r.bytes(&total)
			if err != nil {
				return err
			}
			value, err := r.bytes(&total)
			if err != nil {
				return err
			}
			if _, twice := r.meta[string(key)]; twice {
				return fmt.Errorf("the header has %q twice", key)
			}
			r.meta[string(key)] = value
		}
	}
	return r.full(r.sync[:])
}

func (r *Reader) long() (int64, error) {
	var u uint64
	for shift := uint(0); shift < 64; shift += 7 {
		c, err := r.in.ReadByte()
		if err != nil {
			return 0, input(err)
		}
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if shift == 63 && c > 1 {
				break
			}
			return int64(u>>1) ^ -int64(u&1), nil
		}
	}
	return 0, errors.New("a number is too long")
}

func (r *Reader) bytes(total *int) ([]byte, error) {
	n, err := r.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(r.limits.Header-*total) {
		return nil, fmt.Errorf("the header is larger than %d bytes", r.limits.Header)
	}
	*total += int(n)
	return r.take(nil, int(n))
}

// take reads n bytes into buf. Memory is taken as the bytes arrive.
func (r *Reader) take(buf []byte, n int) ([]byte, error) {
	buf = buf[:0]
	for n > 0 {
		step := min(n, max(1<<20, cap(buf)-len(buf)))
		at := len(buf)
		if cap(buf)-at < step {
			grown := make([]byte, at, max(at+step, min(2*cap(buf), at+n)))
			copy(grown, buf)
			buf = grown
		}
		buf = buf[:at+step]
		if err := r.full(buf[at:]); err != nil {
			return nil, err
		}
		n -= step
	}
	return buf, nil
}

func (r *Reader) full(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	return input(err)
}

func input(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return inputError{err}
}

// Next returns the next block's data and the number of records in it, or
// io.EOF behind the last. The data is valid until the next call. Every record
// takes at least one byte, so the count is within len(data).
func (r *Reader) Next() (data []byte, count int, err error) {
	defer func() {
		// The decompressors are other people's code on hostile input.
		if p := recover(); p != nil {
			data, count, err = nil, 0, r.fail("read block", fmt.Errorf("decompression panicked: %v", p))
		}
	}()
	for {
		data, count, err = r.next()
		if err != nil {
			if err == io.EOF { //nolint:errorlint // the bare value marks the end, a wrapped one a failure
				return nil, 0, io.EOF
			}
			return nil, 0, r.fail("read block", err)
		}
		if count > 0 {
			return data, count, nil
		}
	}
}

func (r *Reader) next() ([]byte, int, error) {
	if _, err := r.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, 0, io.EOF
		}
		return nil, 0, input(err)
	}
	count, err := r.long()
	if err != nil {
		return nil, 0, truncated(err)
	}
	size, err := r.long()
	if err != nil {
		return nil, 0, truncated(err)
	}
	if count < 0 || size < 0 || size > int64(r.limits.Block) {
		return nil, 0, fmt.Errorf("a block claims %d records in %d bytes", count, size)
	}
	if r.raw, err = r.take(r.raw, int(size)); err != nil {
		return nil, 0, truncated(err)
	}
	var sync [syncSize]byte
	if err := r.full(sync[:]); err != nil {
		return nil, 0, truncated(err)
	}
	if sync != r.sync {
		return nil, 0, errors.New("a block does not end with the file's marker")
	}
	data, err := r.dec.block(r.raw)
	if err != nil {
		return nil, 0, contentError{err}
	}
	if count > int64(len(data)/r.schema.minSize) {
		return nil, 0, fmt.Errorf("a block claims %d records in %d bytes", count, len(data))
	}
	return data, int(count), nil
}

// truncated keeps a bare io.EOF inside a block from looking like the end.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
