package manifests

// Origin says where a value comes from.
type Origin uint8

const (
	// Absent: the field is null or missing and nothing gives it a value.
	Absent Origin = iota
	// Stored: the file holds the value.
	Stored
	// Inherited: the file holds null, and the spec's inheritance gives the value.
	Inherited
)

// Opt is a value that a manifest may leave out, with where it came from.
// Null, zero and inherited stay three different things (F077, F085).
type Opt[T comparable] struct {
	Value T
	From  Origin
}

// Some is a value that is written as such.
func Some[T comparable](v T) Opt[T] { return Opt[T]{Value: v, From: Stored} }

// Known reports whether there is a value, stored or inherited.
func (o Opt[T]) Known() bool { return o.From != Absent }

// Get returns the value and whether there is one.
func (o Opt[T]) Get() (T, bool) { return o.Value, o.From != Absent }

// Or returns the value, or the other when there is none.
func (o Opt[T]) Or(other T) T {
	if o.From == Absent {
		return other
	}
	return o.Value
}

// Is reports whether there is a value and it equals v.
func (o Opt[T]) Is(v T) bool { return o.From != Absent && o.Value == v }

// inherit gives an absent value the inherited one.
func (o *Opt[T]) inherit(v T) {
	if o.From == Absent {
		*o = Opt[T]{Value: v, From: Inherited}
	}
}

// stored drops what was inherited, leaving what the file held.
func (o Opt[T]) stored() Opt[T] {
	if o.From != Stored {
		return Opt[T]{}
	}
	return o
}
