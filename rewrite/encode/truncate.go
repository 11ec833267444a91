package encode

import (
	"bytes"
	"unicode/utf8"

	"github.com/seaice/seaice/rewrite/format"
)

// Bound lengths.
const (
	// IndexBoundBytes is the length to which byte array bounds of a column
	// index are shortened, as Java's parquet.columnindex.truncate.length.
	IndexBoundBytes = 64
	// StatisticsBoundBytes is the greatest length of a bound that is kept in
	// full, in memory and in the statistics of a chunk. Longer ones are
	// shortened to IndexBoundBytes.
	StatisticsBoundBytes = 2048
)

// Truncatable reports that bounds of the leaf may be shortened: byte arrays that
// compare byte by byte. Those of a fixed length must have it: parquet-cpp ends its
// process where they do not.
func Truncatable(n *format.Node) bool {
	return n.Type == format.ByteArray && OrderingOf(n) == UnsignedBytes
}

// TruncateMin shortens a lower bound of a leaf to at most limit bytes; text is cut between
// code points where it is valid. exact reports that nothing was cut. The result
// shares memory with b.
func TruncateMin(leaf *format.Node, b []byte, limit int) (short []byte, exact bool) {
	if len(b) <= limit {
		return b, true
	}
	return b[:cut(b, limit, isText(leaf))], false
}

// TruncateMax shortens an upper bound of a leaf to at most limit bytes and makes it greater
// than everything it was cut from: the last byte, or code point of text, that
// can be increased is, and what follows it goes. When nothing can be increased
// ok is false and there is no shorter bound. b is not changed.
func TruncateMax(leaf *format.Node, b []byte, limit int) (short []byte, exact, ok bool) {
	if len(b) <= limit {
		return b, true, true
	}
	text := isText(leaf)
	n := cut(b, limit, text)
	if text && utf8.Valid(b[:n]) {
		short, ok = nextText(b[:n], limit)
		return short, false, ok
	}
	short, ok = nextBytes(b[:n])
	return short, false, ok
}

// cut is the length to cut b at: limit, or less so that no code point of valid
// text is split.
func cut(b []byte, limit int, text bool) int {
	if !text {
		return limit
	}
	for n := limit; n > limit-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(b[n]) {
			if utf8.Valid(b[:n]) {
				return n
			}
			break
		}
	}
	return limit
}

func nextBytes(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			next := bytes.Clone(b[:i+1])
			next[i]++
			return next, true
		}
	}
	return nil, false
}

// The code points around the surrogates, which are no text.
const (
	beforeSurrogates = 0xd7ff
	afterSurrogates  = 0xe000
)

// nextText increases the last code point that can be increased without making
// the bound longer than limit.
func nextText(b []byte, limit int) ([]byte, bool) {
	for len(b) > 0 {
		r, size := utf8.DecodeLastRune(b)
		b = b[:len(b)-size]
		next := r + 1
		if r == beforeSurrogates {
			next = afterSurrogates
		}
		if next <= utf8.MaxRune && len(b)+utf8.RuneLen(next) <= limit {
			return utf8.AppendRune(bytes.Clone(b), next), true
		}
	}
	return nil, false
}

// isText reports that the values of the leaf are meant to be UTF-8, so that their
// bounds are cut between code points.
func isText(n *format.Node) bool {
	if n.Logical != nil {
		k := n.Logical.Kind
		return k == format.LogicalString || k == format.LogicalEnum || k == format.LogicalJSON
	}
	return n.Converted != nil && (*n.Converted == convertedUTF8 || *n.Converted == convertedEnum || *n.Converted == convertedJSON)
}

// bind shortens bounds that are too long to be kept. Bounds that cannot be
// shortened are given up.
func (x *PageIndex) bind(leaf *format.Node) {
	x.MinExact, x.MaxExact = true, true
	if x.Bounds != BoundsSet || len(x.Min) <= StatisticsBoundBytes && len(x.Max) <= StatisticsBoundBytes {
		return
	}
	if !Truncatable(leaf) {
		x.Bounds, x.Min, x.Max = BoundsUnknown, nil, nil
		return
	}
	if len(x.Min) > StatisticsBoundBytes {
		short, _ := TruncateMin(leaf, x.Min, IndexBoundBytes)
		x.Min, x.MinExact = bytes.Clone(short), false
	}
	if len(x.Max) > StatisticsBoundBytes {
		short, _, ok := TruncateMax(leaf, x.Max, IndexBoundBytes)
		if !ok {
			x.Bounds, x.Min, x.Max = BoundsUnknown, nil, nil
			return
		}
		x.Max, x.MaxExact = short, false
	}
}
