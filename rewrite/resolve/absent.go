package resolve

import (
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// absent resolves a column the file lacks: the value of its identity partition,
// else its initial default, else null (semantics of columns; F055, F057). The
// write default is never used: it is for new rows.
func (r *resolver) absent(f *field, l level) error {
	if f.kind == leafKind {
		b, err := r.constant(f)
		if err != nil {
			return err
		}
		if b == nil && f.must {
			return f.unsupported("is required, the file lacks it and it has no default")
		}
		s := r.synthetic(f, l)
		if b != nil {
			s.Constant, s.Level = b, byte(s.target.MaxDef)
		}
		s.Lineage = f.lineage
		s.raise(l.base)
		r.add(s)
		return nil
	}
	there, err := f.emptyDefault()
	if err != nil {
		return err
	}
	if !there && f.must {
		return f.unsupported("is required, the file lacks it and it has no default")
	}
	if there && f.node.Repetition == format.Optional {
		l = l.deeper()
	}
	if there && f.kind == structKind {
		for _, c := range f.children {
			if err := r.absent(c, l); err != nil {
				return err
			}
		}
		return nil
	}
	return r.nothing(f, l)
}

// nothing makes all leaves of a column null, or its list or map empty.
func (r *resolver) nothing(f *field, l level) (err error) {
	f.leaves(func(c *field, _ *format.Node) {
		if v, ok := r.identity[c.id]; ok && !v.IsNull() {
			err = c.unsupported("has a value by the partition but the file lacks the column around it")
		}
		s := r.synthetic(c, l)
		s.raise(l.base)
		r.add(s)
	})
	return err
}

// constant is the value of an absent primitive column, or nil for null.
func (r *resolver) constant(f *field) ([]byte, error) {
	if v, ok := r.identity[f.id]; ok {
		return physical(f, v)
	}
	if f.initial == nil {
		return nil, nil
	}
	v, err := defaultValue(f.typ, f.initial)
	if err != nil {
		return nil, fault.In("read the initial default of column "+f.name, err)
	}
	return physical(f, v)
}

// emptyDefault reports whether the default of a nested column is there: an empty
// struct, list or map. Fields of structs have defaults of their own.
func (f *field) emptyDefault() (bool, error) {
	switch v := f.initial.(type) {
	case nil:
		return false, nil
	case map[string]any:
		switch f.kind {
		case structKind:
			if len(v) == 0 {
				return true, nil
			}
		case mapKind:
			keys, _ := v["keys"].([]any)
			values, _ := v["values"].([]any)
			if len(keys) == 0 && len(values) == 0 {
				return true, nil
			}
		}
	case []any:
		if f.kind == listKind && len(v) == 0 {
			return true, nil
		}
	}
	return false, f.unsupported("has an initial default that is not empty")
}

// deeper is l where a column that is optional in the target is there.
func (l level) deeper() level {
	l.def = slices.Clone(l.def)
	for d, t := range l.def {
		if int(t) == l.base {
			l.def[d]++
		}
	}
	l.base++
	return l
}

// synthetic is the source of the next leaf without values in the file.
func (r *resolver) synthetic(f *field, l level) Source {
	return Source{
		Leaf: l.leaf, Synthetic: true, Level: byte(l.base), Def: slices.Clone(l.def), Rep: l.rep,
		target: r.target.Leaves[r.next].Node, name: f.name, required: l.required,
	}
}

// raise gives the entries whose enclosing column is there the level of the
// source.
func (s *Source) raise(base int) {
	for d, t := range s.Def {
		if int(t) == base {
			s.Def[d] = int8(s.Level)
		}
	}
	s.prepare()
}
