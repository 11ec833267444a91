// Package model is the simulated world that tests measure this program
// against. It keeps tables as plain data: schemas, specs, snapshots and, per
// snapshot, exactly which rows there are and which data file holds which row at
// which position. It writes them as real Iceberg tables into a filer, and it
// reads tables back with iceberg-go's scanner, which shares no code with ours.
//
// The model is told what an operation means (these rows come, those go) and
// separately writes files that are supposed to mean it. A table is right when
// three answers agree: Expect, from the row sets; Physical, from the files and
// the delete rules of the specification; and ReadRows, from the reader.
//
// Only tests and benchmarks import this package. Nothing in it reads the machine's clock or a
// random source: one seed and one clock.Virtual give the same bytes each time.
package model
