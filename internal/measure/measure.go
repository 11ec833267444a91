// Package measure looks at the memory that something takes, for tests that bound
// it: in a process of its own, which has done nothing else, with large inputs on
// this machine's disk.
package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// variable has, in a child's environment, the directory that was prepared.
const variable = "SEAICE_TEST_MEMORY_DIR"

// Plain runs a test in a program without the race detector, if this one has it, and
// reports whether it did: it is for tests of memory, and for those that need many
// repetitions. It must be the first that the test calls, but for skips.
func Plain(t *testing.T) bool {
	t.Helper()
	if !Race {
		return false
	}
	bin := filepath.Join(t.TempDir(), "plain.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	said := run(t, bin)
	require.Contains(t, said, "--- PASS: "+t.Name()+" ")
	t.Log(said)
	return true
}

// Rounds is n, of repetitions that each try something else, or with -short a sixth of
// it, but one at least.
func Rounds(n int) int {
	if testing.Short() {
		return max(1, n/6)
	}
	return n
}

// run runs this test in a program of its own and returns what it said.
func run(t *testing.T, bin string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Child runs a test's work in a process of its own, without the race detector, and
// requires that what work gives to peak takes less than bound bytes of resident
// memory above what was resident before. First, prepare fills a directory in the
// process before. It must be the first that the test calls, but for skips. It is
// skipped where the system does not tell (Linux does).
func Child(t *testing.T, bound int64, prepare func(dir string), work func(dir string, peak func(func()))) {
	t.Helper()
	resident(t)
	if dir := os.Getenv(variable); dir != "" {
		work(dir, func(f func()) {
			idle, most := Peak(t, f)
			t.Logf("memory idle %d peak %d", idle, most)
		})
		return
	}
	if Plain(t) {
		return
	}
	dir := t.TempDir()
	prepare(dir)
	out := run(t, os.Args[0], variable+"="+dir)
	_, said, ok := strings.Cut(out, "memory idle ")
	require.True(t, ok, "%s", out)
	var idle, most int64
	_, err := fmt.Sscanf(said, "%d peak %d", &idle, &most)
	require.NoError(t, err, "%s", out)
	t.Logf("idle %d MiB, peak %d MiB", idle>>20, most>>20)
	require.Less(t, most-idle, bound)
}

// Peak is the most memory in bytes that was resident in this process before f, and
// while it ran.
func Peak(t testing.TB, f func()) (before, during int64) {
	t.Helper()
	debug.FreeOSMemory()
	// 5 begins the peak anew: it was that of making the inputs.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Logf("the peak so far counts as idle: %v", err)
	}
	before = resident(t)
	f()
	return before, resident(t)
}

// resident is VmHWM in bytes.
func resident(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("the system does not tell the peak of memory: " + err.Error())
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	if !ok {
		t.Skip("no VmHWM in /proc/self/status")
	}
	var kb int64
	_, err = fmt.Sscan(rest, &kb)
	require.NoError(t, err)
	return kb << 10
}
