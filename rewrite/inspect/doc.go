// Package inspect compares what is in a file with what others say of it: the
// range of a column, as statistics have it, and the rows of a position delete
// file in their order.
package inspect
