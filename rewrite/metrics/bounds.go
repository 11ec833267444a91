package metrics

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// maxBound is the length in bytes above which a bound is left out whatever the
// mode: entries of manifests are read by everyone who plans.
const maxBound = 1 << 20

// lower is a lower bound as it is stored. Zeros become -0.0, because engines
// disagree whether the two are equal (F041).
func (c *Column) lower(b []byte) []byte {
	b = c.widen(b, true)
	if b == nil || c.mode.kind != truncate {
		return bounded(b)
	}
	switch c.kind {
	case text:
		return bounded(b[:prefix(b, c.mode.length)])
	case bytewise:
		return bounded(b[:min(len(b), c.mode.length)])
	}
	return b
}

// upper is an upper bound as it is stored, nil if it was cut and nothing of its
// length is greater (F045, F046).
func (c *Column) upper(b []byte) []byte {
	b = c.widen(b, false)
	if b == nil || c.mode.kind != truncate {
		return bounded(b)
	}
	switch c.kind {
	case text:
		if n := prefix(b, c.mode.length); n < len(b) {
			return bounded(nextText(b[:n]))
		}
	case bytewise:
		if c.mode.length < len(b) {
			return bounded(nextBytes(b[:c.mode.length]))
		}
	}
	return bounded(b)
}

func bounded(b []byte) []byte {
	if len(b) > maxBound {
		return nil
	}
	return b
}

// widen makes a bound of zero one for both zeros. The result never shares memory
// with b.
func (c *Column) widen(b []byte, low bool) []byte {
	if b == nil {
		return nil
	}
	b = nonNil(bytes.Clone(b))
	switch {
	case c.kind == float32s && len(b) == 4:
		if math.Float32frombits(binary.LittleEndian.Uint32(b)) == 0 {
			b[3] = signOfZero(low)
		}
	case c.kind == float64s && len(b) == 8:
		if math.Float64frombits(binary.LittleEndian.Uint64(b)) == 0 {
			b[7] = signOfZero(low)
		}
	}
	return b
}

func signOfZero(negative bool) byte {
	if negative {
		return 0x80
	}
	return 0
}

// prefix is the length in bytes of the first n code points.
func prefix(b []byte, n int) int {
	at := 0
	for range n {
		if at >= len(b) {
			break
		}
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

// nextText is the least text of at most as many code points that is greater than
// every text that begins with b, or nil.
func nextText(b []byte) []byte {
	for len(b) > 0 {
		r, size := utf8.DecodeLastRune(b)
		b = b[:len(b)-size]
		switch {
		case r == 0xD7FF:
			r = 0xE000
		case r < utf8.MaxRune:
			r++
		default:
			continue
		}
		return utf8.AppendRune(bytes.Clone(b), r)
	}
	return nil
}

// nextBytes is the same for bytes.
func nextBytes(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0xFF {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return nil
	}
	out := bytes.Clone(b)
	out[len(out)-1]++
	return out
}

// shortest cuts the repeated signs off a number in two's complement (F035).
func shortest(b []byte) []byte {
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xFF && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}
