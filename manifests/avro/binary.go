package avro

import (
	"encoding/binary"
	"math"
	"strconv"
)

// The functions below decode at position p of b and return the position
// behind the value, or -1 when b does not hold one.

// ReadLong decodes a long or, in range, an int.
func ReadLong(b []byte, p int) (int64, int) {
	if p < 0 || p >= len(b) {
		return 0, -1
	}
	if c := b[p]; c < 0x80 {
		return int64(c>>1) ^ -int64(c&1), p + 1
	}
	u, n := binary.Uvarint(b[p:])
	if n <= 0 {
		return 0, -1
	}
	return int64(u>>1) ^ -int64(u&1), p + n
}

// ReadBytes decodes bytes or a string. The result aliases b.
func ReadBytes(b []byte, p int) ([]byte, int) {
	n, p := ReadLong(b, p)
	if p < 0 || n < 0 || n > int64(len(b)-p) {
		return nil, -1
	}
	end := p + int(n)
	return b[p:end:end], end
}

// ReadFixed decodes size bytes. The result aliases b.
func ReadFixed(b []byte, p, size int) ([]byte, int) {
	if p < 0 || size < 0 || size > len(b)-p {
		return nil, -1
	}
	return b[p : p+size : p+size], p + size
}

// ReadBool decodes a boolean.
func ReadBool(b []byte, p int) (bool, int) {
	if p < 0 || p >= len(b) || b[p] > 1 {
		return false, -1
	}
	return b[p] == 1, p + 1
}

// ReadFloat decodes a float.
func ReadFloat(b []byte, p int) (float32, int) {
	f, p := ReadFixed(b, p, 4)
	if p < 0 {
		return 0, -1
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(f)), p
}

// ReadDouble decodes a double.
func ReadDouble(b []byte, p int) (float64, int) {
	f, p := ReadFixed(b, p, 8)
	if p < 0 {
		return 0, -1
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(f)), p
}

// ReadBranch decodes the position of a union's branch and returns the branch.
func ReadBranch(n *Node, b []byte, p int) (*Node, int) {
	i, p := ReadLong(b, p)
	if p < 0 || i < 0 || i >= int64(len(n.Branches)) {
		return nil, -1
	}
	return n.Branches[i], p
}

// ReadBlock decodes the count that begins a block of an array or map, whose
// elements take at least least bytes each; 0 ends the sequence.
func ReadBlock(b []byte, p, least int) (int64, int) {
	n, p := ReadLong(b, p)
	if p < 0 {
		return 0, -1
	}
	if n < 0 {
		var size int64
		size, p = ReadLong(b, p)
		if p < 0 || size < 0 || size > int64(len(b)-p) || n == math.MinInt64 {
			return 0, -1
		}
		n = -n
	}
	if n > int64((len(b)-p)/max(least, 1)) {
		return 0, -1
	}
	return n, p
}

func skipVarint(b []byte, p int) int {
	for i := 0; i < binary.MaxVarintLen64 && p < len(b); i++ {
		if b[p] < 0x80 {
			return p + 1
		}
		p++
	}
	return -1
}

// Skip returns the position behind one value of type n at p, or -1.
func Skip(n *Node, b []byte, p int) int {
	if p < 0 {
		return -1
	}
	switch n.Kind {
	case Null:
		return p
	case Boolean:
		_, p = ReadBool(b, p)
		return p
	case Int, Long:
		return skipVarint(b, p)
	case Enum:
		i, p := ReadLong(b, p)
		if p < 0 || i < 0 || i >= int64(len(n.Symbols)) {
			return -1
		}
		return p
	case Float, Double, Fixed:
		if n.minSize > len(b)-p {
			return -1
		}
		return p + n.minSize
	case Bytes, String:
		_, p = ReadBytes(b, p)
		return p
	case Union:
		branch, p := ReadBranch(n, b, p)
		if p < 0 {
			return -1
		}
		return Skip(branch, b, p)
	case Record:
		for i := range n.Fields {
			if p = Skip(n.Fields[i].Type, b, p); p < 0 {
				return -1
			}
		}
		return p
	default:
		return skipBlocks(n, b, p)
	}
}

func skipBlocks(n *Node, b []byte, p int) int {
	least := n.Items.minSize
	if n.Kind == Map {
		least++
	}
	for {
		var count int64
		if count, p = ReadBlock(b, p, least); p < 0 || count == 0 {
			return p
		}
		for ; count > 0 && p >= 0; count-- {
			switch n.shape {
			case shapeVarints:
				p = skipVarint(b, p)
			case shapeVarintPairs:
				if p = skipVarint(b, p); p >= 0 {
					p = skipVarint(b, p)
				}
			case shapeVarintBytes:
				if p = skipVarint(b, p); p >= 0 {
					_, p = ReadBytes(b, p)
				}
			default:
				if n.Kind == Map {
					_, p = ReadBytes(b, p)
				}
				p = Skip(n.Items, b, p)
			}
		}
		if p < 0 {
			return -1
		}
	}
}

// AppendLong appends a long or an int.
func AppendLong(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v<<1)^uint64(v>>63))
}

// AppendBytes appends bytes or a string.
func AppendBytes[T []byte | string](b []byte, v T) []byte {
	return append(AppendLong(b, int64(len(v))), v...)
}

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendFloat appends a float.
func AppendFloat(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

// AppendDouble appends a double.
func AppendDouble(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// SameEncoding reports whether every value of a is also, byte for byte, the
// same value of b: equal structure, field ids, widths and units.
func SameEncoding(a, b *Node) bool { return same(a, b, true) }

// SameBytes is SameEncoding without a look at field ids and names, for types
// that are known by the field they belong to.
func SameBytes(a, b *Node) bool { return same(a, b, false) }

func same(a, b *Node, ids bool) bool {
	if a == b {
		return true
	}
	if a.Kind != b.Kind || a.Size != b.Size || unit(a) != unit(b) ||
		len(a.Fields) != len(b.Fields) || len(a.Branches) != len(b.Branches) || len(a.Symbols) != len(b.Symbols) {
		return false
	}
	switch a.Kind {
	case Enum:
		for i := range a.Symbols {
			if a.Symbols[i] != b.Symbols[i] {
				return false
			}
		}
	case Array, Map:
		return same(a.Items, b.Items, ids)
	case Union:
		for i := range a.Branches {
			if !same(a.Branches[i], b.Branches[i], ids) {
				return false
			}
		}
	case Record:
		for i := range a.Fields {
			x, y := &a.Fields[i], &b.Fields[i]
			if ids && (x.ID != y.ID || x.ID == NoID && x.Name != y.Name) || !same(x.Type, y.Type, ids) {
				return false
			}
		}
	}
	return true
}

// unit is what of a logical type changes the meaning of the bytes. A plain
// int is a date to Iceberg and a plain long its microseconds.
func unit(n *Node) string {
	switch n.Logical {
	case "decimal":
		return "decimal" + strconv.Itoa(n.Scale)
	case "time-millis", "timestamp-millis", "timestamp-nanos", "local-timestamp-millis", "local-timestamp-nanos":
		return n.Logical
	}
	return ""
}
