// Testreport reads the events of "go test -json" and prints what a person
// wants to read: a line for each package, the whole output of whatever failed,
// how many tests were skipped and why, and as its last line the counts.
//
// It exits with 1 if anything failed, or if no test ran at all.
package main

import (
	"fmt"
	"os"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "read test events:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}
