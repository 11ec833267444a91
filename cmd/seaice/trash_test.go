package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// trashed makes a table and expires its snapshots.
func trashed(t *testing.T) *world {
	w := newWorld(t)
	w.old(8)
	w.done("run", "expire_snapshots", "--table", events, "--yes")
	return w
}

func TestTrashListGolden(t *testing.T) {
	w := trashed(t)
	w.same(func() {
		golden(t, "trash-list", w.done("trash", "list", "--bucket", "lake"))
		golden(t, "trash-list-fields", fieldNames(document(t, w.done("trash", "list", "--bucket", "lake", "--json"))))
		require.Contains(t, w.done("trash", "list", "--bucket", "lake", "--run", "other-run"), "\n0 files")
		require.Contains(t, w.done("trash", "list", "--bucket", "lake", "--path", "/buckets/lake/none"), "\n0 files")
		w.fails(exitError, []string{"lakes", "hint: "}, "trash", "list", "--bucket", "lakes")
		w.fails(exitUsage, []string{`"bucket"`}, "trash", "list")
		w.fails(exitUsage, []string{"relative"}, "trash", "list", "--bucket", "lake", "--path", "relative")
	})
}

func origins(t *testing.T, w *world) []filer.Path {
	t.Helper()
	var out []filer.Path
	for _, it := range document(t, w.done("trash", "list", "--bucket", "lake", "--json"))["items"].([]any) {
		out = append(out, filer.Path(it.(map[string]any)["origin"].(string)))
	}
	require.NotEmpty(t, out)
	return out
}

func TestTrashRestore(t *testing.T) {
	w := trashed(t)
	all := origins(t, w)
	restore := []string{"trash", "restore", "--bucket", "lake"}
	w.same(func() {
		w.fails(exitUsage, []string{"nobody to ask", "--yes"}, restore...)
		w.attended, w.in = true, strings.NewReader("n\n")
		o := w.fails(exitError, []string{string(all[0]), "Bring 15 files back? [y/N]", "not executed"}, restore...)
		require.Empty(t, o.out)
	})
	// A file that somebody put there meanwhile is not overwritten.
	w.fl.PutFile(all[0], []byte("new"))
	w.attended = false
	o := w.fails(exitStale, []string{"1 file of bucket lake"}, append(restore, "--yes")...)
	golden(t, "trash-restore", o.out)
	require.Equal(t, "new", string(w.fl.Content(all[0])))
	for _, p := range all[1:] {
		require.True(t, w.fl.Exists(p), p)
	}
	require.Len(t, origins(t, w), 1)
	w.fl.RemoveAll(all[0])
	doc := document(t, w.done(append(restore, "--yes", "--json")...))
	require.Len(t, doc["results"], 1)
	require.Equal(t, []any{}, document(t, w.done(append(restore, "--yes", "--json")...))["results"])
	w.fails(exitError, []string{"bucket lake is what was named", "hint: seaice trash list"}, append(restore, "--yes", "--run", "other-run")...)
}

func TestTrashPurge(t *testing.T) {
	w := trashed(t)
	all := origins(t, w)
	purge := []string{"trash", "purge", "--bucket", "lake"}
	w.same(func() {
		require.Equal(t, "nothing to do\n15 files not due yet\n", w.done(append(purge, "--yes")...))
	})
	w.pass(11 * day)
	w.same(func() {
		out := w.done(purge...)
		require.Contains(t, out, "15 files, ")
		require.Contains(t, out, "nothing was deleted: add --yes")
		require.Len(t, document(t, w.done(append(purge, "--json")...))["items"], len(all))
	})
	require.Equal(t, "15 files purged\n", w.done(append(purge, "--yes")...))
	require.Equal(t, []any{}, document(t, w.done(append(purge, "--yes", "--json")...))["results"])
	w.done("check", "--table", events)
}
