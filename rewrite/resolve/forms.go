package resolve

import (
	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/format"
)

// form is a physical form of decimals.
type form struct {
	typ    format.Type
	length int32
}

// forms are the physical forms of the decimals that all files agree on, by
// column. A decimal may be stored in more forms than the one that Iceberg's
// writers choose, readers take all of them, and pages in another form could not be
// moved as they are.
func forms(files []*format.Footer) map[iceberg.FieldID]form {
	out := map[iceberg.FieldID]form{}
	differ := map[iceberg.FieldID]bool{}
	for _, f := range files {
		for _, n := range f.Schema.Leaves {
			id := fieldID(n)
			if id < 0 || differ[id] {
				continue
			}
			x := form{typ: n.Type, length: n.TypeLength}
			switch s := shapeOf(n); {
			case s.meaning != decimal, n.Type == format.ByteArray:
				differ[id] = true
			case out[id] != form{} && out[id] != x:
				differ[id] = true
			default:
				out[id] = x
			}
		}
	}
	for id := range differ {
		delete(out, id)
	}
	return out
}

// take gives a decimal column the form that its files have, if it holds every
// value of the type.
func (x form) take(n *format.Node, t icego.DecimalType) {
	switch x.typ {
	case format.Int32:
		if t.Precision() > 9 {
			return
		}
	case format.Int64:
		if t.Precision() > 18 {
			return
		}
	case format.FixedLenByteArray:
		if int(x.length) < decimalBytes(t.Precision()) || x.length > 16 {
			return
		}
	default:
		return
	}
	n.Type, n.TypeLength = x.typ, 0
	if x.typ == format.FixedLenByteArray {
		n.TypeLength = x.length
	}
}
