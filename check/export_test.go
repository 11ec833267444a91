package check

import "testing"

// Limit lowers the numbers of files and deletes at which a table counts as large,
// for the time of a test.
func Limit(t *testing.T, files, deletes int) {
	t.Helper()
	f, d := fewFiles, maxDangling
	fewFiles, maxDangling = files, deletes
	t.Cleanup(func() { fewFiles, maxDangling = f, d })
}
