package manifests

import (
	"slices"
)

// Tuple is a partition tuple: one value for each field of the spec.
type Tuple []Value

// Value is one partition value in Iceberg's single-value encoding; nil is null.
type Value []byte

// Clone returns a copy that shares nothing.
func (t Tuple) Clone() Tuple {
	c := slices.Clone(t)
	for i := range c {
		c[i] = slices.Clone(c[i])
	}
	return c
}
