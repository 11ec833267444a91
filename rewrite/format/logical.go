package format

import (
	"slices"

	"github.com/seaice/seaice/rewrite/thrift"
)

// parseLogical reads a LogicalType, a union.
func parseLogical(r *thrift.Reader, k thrift.Kind) *Logical {
	from := r.At()
	r.Struct(k)
	l := new(Logical)
	fields, raw := 0, false
	for f := (thrift.Field{}); r.Next(&f); fields++ {
		l.Kind = LogicalKind(f.ID)
		if f.Kind != thrift.Group {
			raw = true
			r.Skip(f.Kind)
			continue
		}
		r.Struct(f.Kind)
		if !l.parse(r) {
			raw = true
		}
	}
	if r.Err() != nil {
		return nil
	}
	if raw || fields != 1 {
		// A union of several fields means what only its writer knows.
		kind := l.Kind
		if fields != 1 {
			kind = 0
		}
		return &Logical{Kind: kind, Raw: slices.Clone(r.Between(from, r.At()))}
	}
	return l
}

// parse reads the fields of the kind. It is false if there are any that are not
// known, so that the raw form must be kept.
func (l *Logical) parse(r *thrift.Reader) bool {
	known := l.Kind >= LogicalString && l.Kind <= LogicalGeography && l.Kind != 9
	for f := (thrift.Field{}); r.Next(&f); {
		if !l.field(r, f) {
			known = false
			r.Skip(f.Kind)
		}
	}
	return known
}

// field reads a field of the kind, or reads nothing and says false.
func (l *Logical) field(r *thrift.Reader, f thrift.Field) bool {
	switch l.Kind {
	case LogicalDecimal:
		return l.decimal(r, f)
	case LogicalTime, LogicalTimestamp:
		switch f.ID {
		case 1:
			l.UTC = r.Bool(f.Kind)
			return true
		case 2:
			l.Unit = parseUnit(r, f.Kind)
			return true
		}
	case LogicalInteger:
		switch f.ID {
		case 1:
			l.BitWidth = int8(r.Int32(f.Kind))
			return true
		case 2:
			l.Signed = r.Bool(f.Kind)
			return true
		}
	case LogicalVariant:
		if f.ID == 1 {
			l.SpecVersion = ptr(int8(r.Int32(f.Kind)))
			return true
		}
	case LogicalGeometry, LogicalGeography:
		switch {
		case f.ID == 1:
			l.CRS = r.Text(f.Kind)
			return true
		case f.ID == 2 && l.Kind == LogicalGeography:
			l.Algorithm = ptr(r.Int32(f.Kind))
			return true
		}
	}
	return false
}

func (l *Logical) decimal(r *thrift.Reader, f thrift.Field) bool {
	switch f.ID {
	case 1:
		l.Scale = r.Int32(f.Kind)
	case 2:
		l.Precision = r.Int32(f.Kind)
	default:
		return false
	}
	return true
}

// parseUnit reads a TimeUnit; an unknown one is 0.
func parseUnit(r *thrift.Reader, k thrift.Kind) TimeUnit {
	var unit TimeUnit
	r.Struct(k)
	for f := (thrift.Field{}); r.Next(&f); {
		if f.ID >= int16(Millis) && f.ID <= int16(Nanos) {
			unit = TimeUnit(f.ID)
		}
		r.Skip(f.Kind)
	}
	return unit
}

// write appends the LogicalType.
func (l *Logical) write(w *thrift.Writer) {
	if l.Raw != nil {
		w.Raw(l.Raw)
		return
	}
	w.Begin()
	w.Struct(int16(l.Kind))
	switch l.Kind {
	case LogicalDecimal:
		w.Int32(1, l.Scale)
		w.Int32(2, l.Precision)
	case LogicalTime, LogicalTimestamp:
		w.Bool(1, l.UTC)
		w.Struct(2)
		if l.Unit != 0 {
			w.Struct(int16(l.Unit))
			w.End()
		}
		w.End()
	case LogicalInteger:
		w.Int8(1, l.BitWidth)
		w.Bool(2, l.Signed)
	case LogicalVariant:
		if l.SpecVersion != nil {
			w.Int8(1, *l.SpecVersion)
		}
	case LogicalGeometry, LogicalGeography:
		if l.CRS != "" {
			w.Text(1, l.CRS)
		}
		if l.Algorithm != nil {
			w.Int32(2, *l.Algorithm)
		}
	}
	w.End()
	w.End()
}
