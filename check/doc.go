// Package check is the read-only fsck of a table: it reads everything a table
// refers to, from the catalog record to the data files, and reports what
// contradicts the specification, itself or the files that are there.
//
// It changes nothing and decides nothing. Every finding has a stable code;
// docs/design/check.md lists them.
package check
