package deletes

import (
	"bytes"
	"encoding/binary"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
)

// limit is between which values a key column of the data files lies. A key with a
// value outside, which is neither null nor NaN, can hit nothing. Only types whose
// bounds every writer orders alike have limits: whole numbers and what is stored
// as such, text and bytes.
type limit struct {
	known bool
	text  bool
	// least and greatest are of numbers, low and high of text.
	least, greatest int64
	low, high       []byte
}

// bounded is a data file's bounds as its manifest entry has them.
type bounded interface {
	bounds(id iceberg.FieldID) (lower, upper []byte, ok bool)
}

// limitOf is the limit of a column over data files; unknown unless all of them
// have bounds that can be read.
func limitOf[B bounded](id iceberg.FieldID, typ icego.Type, files []B) limit {
	l := limit{}
	switch typ.(type) {
	case icego.StringType, icego.BinaryType:
		l.text = true
	case icego.Int32Type, icego.Int64Type, icego.DateType, icego.TimeType,
		icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
	default:
		return l
	}
	for i, f := range files {
		lower, upper, ok := f.bounds(id)
		if !ok {
			return limit{}
		}
		a, err := iceberg.DecodeBound(typ, lower)
		if err != nil {
			return limit{}
		}
		b, err := iceberg.DecodeBound(typ, upper)
		if err != nil {
			return limit{}
		}
		if n, err := a.Compare(b); err != nil || n > 0 {
			return limit{} // bounds that cannot be are not relied upon
		}
		l.add(a.Bytes(), b.Bytes(), i == 0)
	}
	l.known = len(files) > 0
	return l
}

func (l *limit) add(low, high []byte, first bool) {
	if l.text {
		if first || bytes.Compare(low, l.low) < 0 {
			l.low = low
		}
		if first || bytes.Compare(high, l.high) > 0 {
			l.high = high
		}
		return
	}
	a, b := whole(low), whole(high)
	if first || a < l.least {
		l.least = a
	}
	if first || b > l.greatest {
		l.greatest = b
	}
}

// whole is a number of 4 or 8 bytes, little endian.
func whole(b []byte) int64 {
	if len(b) == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// outside reports whether no data file can have the value, in its physical form.
func (l *limit) outside(value []byte) bool {
	if !l.known {
		return false
	}
	if l.text {
		// A greatest value that was cut and not raised still is a prefix.
		return bytes.Compare(value, l.low) < 0 || bytes.Compare(value, l.high) > 0 && !bytes.HasPrefix(value, l.high)
	}
	v := whole(value)
	return v < l.least || v > l.greatest
}
