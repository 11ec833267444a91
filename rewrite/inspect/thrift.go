package inspect

import (
	"encoding/binary"
	"fmt"

	"github.com/seaice/seaice/fault"
)

// Limits of a Thrift struct in a Parquet file. Decoded, an element of a list may
// take hundreds of times its bytes.
const (
	maxFooterBytes = 64 << 20
	maxElements    = 1 << 20
	maxDepth       = 32
)

// walker goes over a struct in Thrift's compact protocol and proves that lists
// are no longer than their bytes, before a decoder allocates what they claim.
type walker struct {
	b        []byte
	at       int
	elements int
}

// measure returns the length of the struct that b begins with.
func measure(b []byte) (int, error) {
	w := walker{b: b}
	if err := w.structure(0); err != nil {
		return 0, fault.In("read thrift", err)
	}
	return w.at, nil
}

var errCut = fault.New(fault.Corrupt, "it ends within a value")

func (w *walker) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errCut
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *walker) varint() (uint64, error) {
	n, used := binary.Uvarint(w.b[w.at:])
	if used <= 0 {
		return 0, errCut
	}
	w.at += used
	return n, nil
}

func (w *walker) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errCut
	}
	w.at += int(n)
	return nil
}

func (w *walker) structure(depth int) error {
	if depth > maxDepth {
		return fault.New(fault.Corrupt, fmt.Sprintf("values are nested deeper than %d", maxDepth))
	}
	for {
		h, err := w.byte()
		if err != nil || h == 0 {
			return err
		}
		if h>>4 == 0 { // the field id follows
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if kind := h & 0xf; kind != 1 && kind != 2 { // booleans are in the type
			if err := w.value(kind, depth); err != nil {
				return err
			}
		}
	}
}

func (w *walker) value(kind byte, depth int) error {
	switch kind {
	case 1, 2, 3: // booleans in lists, bytes
		return w.skip(1)
	case 4, 5, 6: // integers
		_, err := w.varint()
		return err
	case 7: // double
		return w.skip(8)
	case 8: // binary
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case 9, 10:
		return w.list(depth)
	case 11:
		return w.table(depth)
	case 12:
		return w.structure(depth + 1)
	case 13: // uuid
		return w.skip(16)
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("there is no type %d", kind))
}

func (w *walker) list(depth int) error {
	h, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(h >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	return w.times(n, depth, h&0xf)
}

func (w *walker) table(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	h, err := w.byte()
	if err != nil {
		return err
	}
	return w.times(n, depth, h>>4, h&0xf)
}

// times goes over n elements of the kinds. Each takes a byte at least.
func (w *walker) times(n uint64, depth int, kinds ...byte) error {
	if n > uint64(len(w.b)-w.at) {
		return errCut
	}
	if w.elements += int(n); w.elements > maxElements {
		return fault.New(fault.TooLarge, fmt.Sprintf("it has more than %d elements", maxElements))
	}
	if depth >= maxDepth {
		return fault.New(fault.Corrupt, fmt.Sprintf("values are nested deeper than %d", maxDepth))
	}
	for range n {
		for _, kind := range kinds {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
