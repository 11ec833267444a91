//go:build race

package rewritemanifests_test

// raced: this binary is built with the race detector, which takes several times
// the memory.
const raced = true
