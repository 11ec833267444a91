// Package movement says where each row of a unit's sources went. It is what
// lets deletes that others commit against a source follow its rows into the
// outputs, long after the rows were moved.
package movement

// Run is a range of consecutive rows of a source that went to consecutive rows
// of an output. Rows of a source that are in no run were dropped.
type Run struct {
	// From is the first row in the source, Rows how many.
	From, Rows int64
	// Output is the index of the output, To the first row in it.
	Output int32
	To     int64
}

// Source is where the rows of one source went.
type Source struct {
	Location string
	// Rows is the number of rows of the source, dropped ones included.
	Rows int64
	// Runs are in order of From and do not overlap.
	Runs []Run
}

// Output is an output of the unit.
type Output struct {
	Location string
	Rows     int64
}

// Map is the movement map of one unit.
type Map struct {
	Sources []Source
	Outputs []Output
}
