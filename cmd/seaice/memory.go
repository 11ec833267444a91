package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// limitMemory makes the garbage collector keep the process within the budget
// beyond what it took when it began. A limit that the environment sets stands.
func limitMemory() func(budget int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func(int64) {}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	idle := int64(m.Sys - m.HeapReleased)
	// The limit does not count the pages of the program that work brings in, and the
	// collector passes it by a little: an eighth is left for that.
	return func(budget int64) { debug.SetMemoryLimit(idle + budget - budget/8) }
}
