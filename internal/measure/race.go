//go:build race

package measure

// Race reports that the program has the race detector, which takes several times
// the memory and the time.
const Race = true
