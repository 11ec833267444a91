// Package thrift reads and writes Thrift's compact protocol, which Parquet's
// metadata is written in. A Reader goes over the bytes without allocating, a
// Writer appends to them, and a Struct is a tree that keeps every field in the
// order it was stored, known or not.
//
// Sizes, counts and depth are checked against the bytes that are there before
// anything is allocated for them.
package thrift

import (
	"fmt"

	"github.com/seaice/seaice/fault"
)

// Kind is a type of the compact protocol by its number.
type Kind uint8

// The kinds. A field of a boolean has its value in its kind.
const (
	True   Kind = 1
	False  Kind = 2
	I8     Kind = 3
	I16    Kind = 4
	I32    Kind = 5
	I64    Kind = 6
	Double Kind = 7
	Binary Kind = 8
	List   Kind = 9
	Set    Kind = 10
	Map    Kind = 11
	Group  Kind = 12 // a struct
	UUID   Kind = 13
)

// MaxDepth is how deep values may be nested. Parquet's own structures need 8.
const MaxDepth = 32

// ErrShort says that the bytes end within a value; with more of them it may be
// whole. It is fault.Corrupt.
var ErrShort = fault.New(fault.Corrupt, "it ends within a value")

func depthError() error {
	return fault.New(fault.Corrupt, fmt.Sprintf("values are nested deeper than %d", MaxDepth))
}

func kindError(got Kind, want string) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("there is a value of kind %d where %s is needed", got, want))
}
