package avro

import (
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/seaice/seaice/fault"
)

// BlockSize is the number of uncompressed bytes after which a block is
// written, as Java's writer has it.
const BlockSize = 64000

// Writer writes one container file, block by block. A failed Writer stays
// failed. It is not safe for concurrent use.
type Writer struct {
	out     io.Writer
	comp    *compressor
	sync    [syncSize]byte
	block   []byte
	count   int64
	written int64
	packed  int64 // compressed bytes of all written blocks
	loose   int64 // and what they held
	err     error
}

// Options of a Writer. The zero Codec is Deflate.
type Options struct {
	Codec Codec
	// Level is the codec's compression level; DefaultLevel leaves the choice.
	Level int
	// Meta are the header's keys beside avro.schema and avro.codec.
	Meta map[string][]byte
}

// NewWriter writes the header of a file whose records have the schema.
func NewWriter(out io.Writer, schema *Node, o Options) (*Writer, error) {
	if o.Codec == "" {
		o.Codec = Deflate
	}
	comp, err := newCompressor(o.Codec, o.Level)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, comp: comp}
	_, _ = rand.Read(w.sync[:]) // never fails
	meta := maps.Clone(o.Meta)
	if meta == nil {
		meta = map[string][]byte{}
	}
	meta["avro.schema"] = schema.JSON()
	meta["avro.codec"] = []byte(o.Codec)
	head := slices.Clone(magic)
	head = AppendLong(head, int64(len(meta)))
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		head = AppendBytes(head, k)
		head = AppendBytes(head, meta[k])
	}
	head = append(head, 0)
	head = append(head, w.sync[:]...)
	return w, w.write(head)
}

func (w *Writer) write(b []byte) error {
	if w.err != nil {
		return w.err
	}
	n, err := w.out.Write(b)
	w.written += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fault.In("write avro", err)
	}
	return w.err
}

// Append writes one record. The function appends the record's encoding to the
// buffer and returns it; on an error nothing of the record is kept and the
// Writer can be used on.
func (w *Writer) Append(encode func(b []byte) ([]byte, error)) error {
	if w.err != nil {
		return w.err
	}
	at := len(w.block)
	b, err := encode(w.block)
	if err != nil {
		w.block = w.block[:at]
		return err
	}
	w.block = b
	w.count++
	if len(b) >= BlockSize {
		return w.flush()
	}
	return nil
}

func (w *Writer) flush() error {
	if w.count == 0 || w.err != nil {
		return w.err
	}
	packed, err := w.comp.block(w.block)
	if err != nil {
		w.err = fault.In("compress avro block", err)
		return w.err
	}
	head := AppendLong(AppendLong(nil, w.count), int64(len(packed)))
	for _, b := range [][]byte{head, packed, w.sync[:]} {
		if err := w.write(b); err != nil {
			return err
		}
	}
	w.packed += int64(len(packed))
	w.loose += int64(len(w.block))
	w.block, w.count = w.block[:0], 0
	return nil
}

// Written is the number of bytes given to the underlying writer.
func (w *Writer) Written() int64 { return w.written }

// Size is Written plus what the block at hand will take, judged by the blocks
// before it.
func (w *Writer) Size() int64 {
	pending := int64(len(w.block))
	if w.loose > 0 {
		pending = pending * w.packed / w.loose
	} else if w.comp.codec != Uncompressed {
		pending /= 3
	}
	return w.written + pending
}

var errClosed = errors.New("the writer is closed")

// Close writes the last block. The underlying writer is the caller's.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.comp.zstd != nil {
		_ = w.comp.zstd.Close()
	}
	w.err = fault.Wrap(fault.Halt, "write avro", errClosed)
	return nil
}
