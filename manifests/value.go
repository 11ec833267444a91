package manifests

import (
	"fmt"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// cursor decodes the values of one record. Its position is -1 once something
// did not decode; every function is safe to call then and yields zero values.
type cursor struct {
	b []byte
	p int
	// what names the first field that did not decode.
	what string
}

func (c *cursor) bad(what string) {
	if c.what == "" {
		c.what = what
	}
	c.p = -1
}

// value steps into n: through the branch of a union to its type. It returns
// nil for null.
func (c *cursor) value(n *avro.Node) *avro.Node {
	if n.Kind == avro.Union {
		n, c.p = avro.ReadBranch(n, c.b, c.p)
		if c.p < 0 {
			return nil
		}
	}
	if n.Kind == avro.Null {
		return nil
	}
	return n
}

func (c *cursor) skip(n *avro.Node) { c.p = avro.Skip(n, c.b, c.p) }

func (c *cursor) long() (v int64) {
	v, c.p = avro.ReadLong(c.b, c.p)
	return v
}

func (c *cursor) bytes(n *avro.Node) (v []byte) {
	switch n.Kind {
	case avro.Fixed:
		v, c.p = avro.ReadFixed(c.b, c.p, n.Size)
	case avro.Enum:
		i := c.long()
		if c.p < 0 || i < 0 || i >= int64(len(n.Symbols)) {
			c.p = -1
			return nil
		}
		v = []byte(n.Symbols[i])
	default:
		v, c.p = avro.ReadBytes(c.b, c.p)
	}
	return v
}

func (c *cursor) optLong(n *avro.Node) Opt[int64] {
	if c.value(n) == nil {
		return Opt[int64]{}
	}
	v := c.long()
	return Some(v)
}

func (c *cursor) optBool(n *avro.Node) Opt[bool] {
	if c.value(n) == nil {
		return Opt[bool]{}
	}
	var v bool
	v, c.p = avro.ReadBool(c.b, c.p)
	return Some(v)
}

// optBytes returns nil for null and a slice that is not nil otherwise. It
// aliases the block.
func (c *cursor) optBytes(n *avro.Node) []byte {
	if n = c.value(n); n == nil {
		return nil
	}
	v := c.bytes(n)
	if v == nil {
		v = []byte{}
	}
	return v
}

func (c *cursor) int32(what string, v int64) int32 {
	if v < math.MinInt32 || v > math.MaxInt32 {
		c.bad(what)
		return 0
	}
	return int32(v)
}

// each calls f for every element of an array, positioned at it.
func (c *cursor) each(n *avro.Node, f func()) {
	for c.p >= 0 {
		var count int64
		count, c.p = avro.ReadBlock(c.b, c.p, n.Items.MinSize())
		if c.p < 0 || count == 0 {
			return
		}
		for ; count > 0 && c.p >= 0; count-- {
			f()
		}
	}
}

// pairs says how the records of Iceberg's maps are laid out: key first unless
// swapped.
type pairs struct {
	key, value *avro.Node
	swapped    bool
}

// counts decodes a map of numbers into buf, which is reused.
func (c *cursor) counts(n *avro.Node, m pairs, buf Counts) Counts {
	if n = c.value(n); n == nil {
		return nil
	}
	if buf == nil {
		buf = make(Counts, 0, 8)
	}
	buf = buf[:0]
	c.each(n, func() {
		var k, v int64
		if m.swapped {
			v = c.long()
			k = c.long()
		} else {
			k = c.long()
			v = c.long()
		}
		if c.p >= 0 {
			buf = append(buf, Count{Column: iceberg.FieldID(c.int32("a column id", k)), N: v})
		}
	})
	return buf
}

// bounds decodes a map of bytes into buf, which is reused. The values alias
// the block.
func (c *cursor) bounds(n *avro.Node, m pairs, buf Bounds) Bounds {
	if n = c.value(n); n == nil {
		return nil
	}
	if buf == nil {
		buf = make(Bounds, 0, 8)
	}
	buf = buf[:0]
	c.each(n, func() {
		var k int64
		var v []byte
		if m.swapped {
			v = c.bytes(m.value)
			k = c.long()
		} else {
			k = c.long()
			v = c.bytes(m.value)
		}
		if c.p >= 0 {
			buf = append(buf, Bound{Column: iceberg.FieldID(c.int32("a column id", k)), Value: v})
		}
	})
	return buf
}

// The checks below are made once for each schema, so that decoding need not
// look at types again.

func isNumber(n *avro.Node) bool { return n.Kind == avro.Int || n.Kind == avro.Long }

func isText(n *avro.Node) bool {
	return n.Kind == avro.String || n.Kind == avro.Bytes || n.Kind == avro.Fixed || n.Kind == avro.Enum
}

func isBlob(n *avro.Node) bool {
	return n.Kind == avro.Bytes || n.Kind == avro.String || n.Kind == avro.Fixed
}

func isBool(n *avro.Node) bool { return n.Kind == avro.Boolean }

func isNumberList(n *avro.Node) bool { return n.Kind == avro.Array && isNumber(n.Items) }

func isRecord(n *avro.Node) bool { return n.Kind == avro.Record }

// fits reports whether every branch of n but null passes the test.
func fits(n *avro.Node, test func(*avro.Node) bool) bool {
	if n.Kind != avro.Union {
		return n.Kind == avro.Null || test(n)
	}
	for _, b := range n.Branches {
		if b.Kind != avro.Null && !test(b) {
			return false
		}
	}
	return true
}

// only is the one branch of n that is not null.
func only(n *avro.Node) (*avro.Node, bool) {
	if n.Kind != avro.Union {
		return n, n.Kind != avro.Null
	}
	var found *avro.Node
	for _, b := range n.Branches {
		if b.Kind == avro.Null {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = b
	}
	return found, found != nil
}

// mapOf reads the layout of a map with int keys whose values pass the test.
func mapOf(n *avro.Node, test func(*avro.Node) bool) (pairs, bool) {
	v, ok := only(n)
	if !ok || v.Kind != avro.Array || v.Items.Kind != avro.Record || len(v.Items.Fields) != 2 {
		return pairs{}, false
	}
	a, b := v.Items.Fields[0], v.Items.Fields[1]
	m := pairs{key: a.Type, value: b.Type}
	if a.Name == "value" && b.Name == "key" {
		m = pairs{key: b.Type, value: a.Type, swapped: true}
	}
	return m, isNumber(m.key) && test(m.value)
}

func corrupt(name, text string) error {
	return fault.New(fault.Corrupt, name+": "+text)
}

func wrongType(name, field string, n *avro.Node) error {
	return corrupt(name, fmt.Sprintf("field %s is of type %.200s", field, n.JSON()))
}
