package metrics

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/rewrite/column"
)

// Collector counts decoded values. It holds no reference to what it was given
// (F044). It is used by one goroutine.
type Collector struct {
	column              *Column
	values, nulls, nans int64
	some                bool
	// Numbers of up to 8 bytes.
	least, greatest int64
	// Floats; NaN is none of them.
	low, high float64
	// Bytes: all of a value, or what of it decides a bound that is cut.
	first, last keptBytes
}

// keptBytes is a value of which only the begin may be kept.
type keptBytes struct {
	b   []byte
	cut bool
}

// Collect makes a Collector.
func (c *Column) Collect() *Collector { return &Collector{column: c} }

// Add counts a batch of the target's leaf: levels as the target has them, values
// in the target's physical form.
func (c *Collector) Add(b *column.Batch) {
	if !c.column.Reported() {
		return
	}
	c.values += int64(b.Levels)
	c.nulls += int64(b.Levels - b.Values.Len())
	v := &b.Values
	switch c.column.kind {
	case small:
		c.numbers(v)
	case large:
		c.wide(v)
	case float32s, float64s:
		c.floats(v)
	case bigDecimal, text, bytewise, fixed:
		c.bytes(v)
	default:
		if c.column.floating() {
			c.floats(v)
		}
	}
}

func (c *Collector) numbers(v *column.Values) {
	if len(v.Data) == 0 {
		return
	}
	if v.Width == 1 {
		for _, b := range v.Data {
			c.span(int64(b), int64(b))
		}
		return
	}
	low := int32(binary.LittleEndian.Uint32(v.Data))
	high := low
	for d := v.Data; len(d) >= 4; d = d[4:] {
		n := int32(binary.LittleEndian.Uint32(d))
		low, high = min(low, n), max(high, n)
	}
	c.span(int64(low), int64(high))
}

func (c *Collector) wide(v *column.Values) {
	if len(v.Data) == 0 {
		return
	}
	low := int64(binary.LittleEndian.Uint64(v.Data))
	high := low
	for d := v.Data; len(d) >= 8; d = d[8:] {
		n := int64(binary.LittleEndian.Uint64(d))
		low, high = min(low, n), max(high, n)
	}
	c.span(low, high)
}

func (c *Collector) span(low, high int64) {
	if !c.some {
		c.least, c.greatest, c.some = low, high, true
		return
	}
	c.least, c.greatest = min(c.least, low), max(c.greatest, high)
}

func (c *Collector) floats(v *column.Values) {
	for d := v.Data; len(d) >= v.Width && v.Width >= 4; d = d[v.Width:] {
		var f float64
		if v.Width == 4 {
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(d)))
		} else {
			f = math.Float64frombits(binary.LittleEndian.Uint64(d))
		}
		switch {
		case f != f:
			c.nans++
		case !c.some:
			c.low, c.high, c.some = f, f, true
		case f < c.low:
			c.low = f
		case f > c.high:
			c.high = f
		}
	}
}

func (c *Collector) bytes(v *column.Values) {
	n := v.Len()
	if n == 0 {
		return
	}
	least, greatest := v.At(0), v.At(0)
	if c.column.kind == bigDecimal {
		for i := 1; i < n; i++ {
			switch b := v.At(i); {
			case c.compare(b, least) < 0:
				least = b
			case c.compare(b, greatest) > 0:
				greatest = b
			}
		}
	} else {
		least, greatest = ends(v, least, greatest)
	}
	c.keep(&c.first, least, -1)
	c.keep(&c.last, greatest, 1)
	c.some = true
}

// ends are the least and the greatest of bytes. Most values lie between those met
// so far and are told from both by their first bytes.
func ends(v *column.Values, least, greatest []byte) (low, high []byte) {
	lowHead, highHead := head(least), head(greatest)
	for i, n := 1, v.Len(); i < n; i++ {
		b := v.At(i)
		h := head(b)
		if h > lowHead && h < highHead {
			continue
		}
		if h <= lowHead && bytes.Compare(b, least) < 0 {
			least, lowHead = b, h
		} else if h >= highHead && bytes.Compare(b, greatest) > 0 {
			greatest, highHead = b, h
		}
	}
	return least, greatest
}

// head is the first 8 bytes as a number that orders as they do.
func head(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var h [8]byte
	copy(h[:], b)
	return binary.BigEndian.Uint64(h[:])
}

func (c *Collector) compare(a, b []byte) int {
	if c.column.kind == bigDecimal && len(a) > 0 && len(b) > 0 && (a[0]^b[0])&0x80 != 0 {
		return -bytes.Compare(a, b)
	}
	return bytes.Compare(a, b)
}

// keep takes over b if it lies beyond what is kept. Of values that are longer
// than any bound only the begin is kept, because that decides.
func (c *Collector) keep(k *keptBytes, b []byte, sign int) {
	limit := maxBound + 1
	if m := c.column.mode; m.kind == truncate {
		switch c.column.kind {
		case text:
			limit = min(limit, utf8.UTFMax*(m.length+1))
		case bytewise:
			limit = min(limit, m.length+1)
		}
	}
	cut := len(b) > limit
	b = b[:min(len(b), limit)]
	if c.some {
		order := c.compare(b, k.b) * sign
		if order == 0 && sign > 0 {
			k.cut = k.cut || cut
		}
		if order == 0 && sign < 0 {
			k.cut = k.cut && cut
		}
		if order <= 0 {
			return
		}
	}
	k.b, k.cut = append(nonNil(k.b)[:0], b...), cut
}

// Stats are those of everything added, exact but for bounds the mode cuts.
func (c *Collector) Stats() Stats {
	if !c.column.Reported() {
		return Stats{}
	}
	out := Stats{Values: count(c.values), Nulls: count(c.nulls)}
	if c.column.floating() {
		out.NaNs = count(c.nans)
	}
	if c.some {
		out.Lower, out.Upper = c.bounds()
	}
	return c.column.finish(out)
}

func (c *Collector) bounds() (lower, upper []byte) {
	t := c.column.leaf.Type
	switch c.column.kind {
	case small, large:
		return single(t, c.column.leaf.Node.Width(), c.least), single(t, c.column.leaf.Node.Width(), c.greatest)
	case float32s:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(c.low))),
			binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(c.high)))
	case float64s:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(c.low)),
			binary.LittleEndian.AppendUint64(nil, math.Float64bits(c.high))
	case bigDecimal:
		return slices.Clone(shortest(c.first.b)), slices.Clone(shortest(c.last.b))
	case text:
		lower, upper = c.first.b, c.last.b
		if !c.valid(c.first) {
			lower = nil
		}
		if !c.valid(c.last) {
			upper = nil
		}
		return lower, upper
	case bytewise, fixed:
		return c.first.b, c.last.b
	}
	return nil, nil
}

// valid reports whether what a bound of text is made of is UTF-8. Of a value
// that was cut the last code point may be incomplete; it is not used.
func (c *Collector) valid(k keptBytes) bool {
	if k.cut && c.column.mode.kind == truncate {
		return utf8.Valid(k.b[:prefix(k.b, c.column.mode.length)])
	}
	return utf8.Valid(k.b)
}

// single is a number in the single-value serialisation.
func single(t icego.Type, width int, n int64) []byte {
	if _, ok := t.(icego.DecimalType); ok {
		return slices.Clone(shortest(binary.BigEndian.AppendUint64(nil, uint64(n))))
	}
	switch width {
	case 1:
		return []byte{byte(n)}
	case 4:
		return binary.LittleEndian.AppendUint32(nil, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n))
}
