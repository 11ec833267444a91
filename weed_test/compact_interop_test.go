package weed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

// foreign reads the table of a metadata file with a reader that is not ours.
func (l *lake) foreign(t *testing.T, reader, location string) ([]string, error) {
	t.Helper()
	python := os.Getenv("SEAICE_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("SEAICE_PYTHON names no Python with the foreign readers")
		}
		t.Skip("SEAICE_PYTHON names no Python with the foreign readers; make readers installs them")
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py", reader, location, l.S3)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, errors.New(strings.Join(lines[max(0, len(lines)-4):], " "))
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, canonicalJSON(t, strings.TrimSpace(line)))
	}
	slices.Sort(rows)
	return rows, nil
}

// canonicalJSON has its keys in order and its numbers as they were.
func canonicalJSON(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), text)
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// interopTable is a random table of a format version, compacted. Its paths are
// plain, because the S3 gateway refuses others.
func interopTable(t *testing.T, fl *filertest.Filer, version int, seed uint64) *model.Table {
	t.Helper()
	id := iceberg.TableID{Bucket: lakeBucket, Namespace: lakeNamespace, Name: fmt.Sprintf("interop-%d-%d", version, seed)}
	g, err := model.Random(t.Context(), fl, seed, model.RandomOptions{
		Versions: []int{version}, Steps: 14, Rows: 25, Varied: true, PlainStyle: true, Unpartitioned: true, Without: []string{"spec", "rollback", "stage"},
		Config: model.Config{ID: id, Clock: fl.Virtual()},
	})
	require.NoError(t, err)
	r := worker.New(worker.Options{Filer: fl, Clock: fl.Virtual(), Registry: ops.NewRegistry(compact.New(nil)), Tenancy: trash.NewReferences(fl)})
	results, err := r.Run(t.Context(), worker.Request{Table: id, Only: []ops.Kind{config.Compact}, Layers: config.Layers{Flags: map[string]string{
		"min_input_files": "2", "rewrite_all": "true",
	}}})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.NoError(t, g.Refresh(t.Context()))
	require.NoError(t, model.Check(t.Context(), g.Table))
	return g.Table
}

// copied puts the files of a table into the lake, where they are in fl.
func (l *lake) copied(t *testing.T, fl *filertest.Filer, tb *model.Table) {
	t.Helper()
	for _, p := range fl.Files(tb.Root) {
		content, _, err := filer.ReadAll(t.Context(), fl, p, 1<<30)
		require.NoError(t, err)
		_, err = l.fl.Put(t.Context(), p, content, filer.CreateOptions{})
		require.NoError(t, err)
	}
}

// unable is what the readers say of types that they do not know; see
// docs/readers.md.
var unable = map[string]string{
	"pyiceberg": "ArrowNotImplementedError: extension", // uuids within structs, where a file has no such column
	"duckdb":    "Unrecognized primitive type: timestamptz_ns",
}

// TestInteropCompactedTables: other readers find in compacted tables of every
// format version, with nested columns, after deletes and changes of the schema,
// the rows that the model has.
func TestInteropCompactedTables(t *testing.T) {
	l := proofLake(t)
	const seeds = 6
	read := map[string]int{}
	for version := 1; version <= 3; version++ {
		for seed := range uint64(seeds) {
			fl := filertest.New(filertest.Options{})
			tb := interopTable(t, fl, version, seed)
			if tb.Head("") == nil {
				continue
			}
			l.copied(t, fl, tb)
			var want []string
			for _, row := range tb.PortableRows("") {
				b, err := json.Marshal(row)
				require.NoError(t, err)
				want = append(want, canonicalJSON(t, string(b)))
			}
			slices.Sort(want)
			for _, reader := range []string{"pyiceberg", "duckdb"} {
				t.Run(fmt.Sprintf("v%d %d %s", version, seed, reader), func(t *testing.T) {
					got, err := l.foreign(t, reader, tb.MetadataLocation())
					if err != nil && strings.Contains(err.Error(), unable[reader]) {
						t.Skipf("%s cannot: %v", reader, err)
					}
					require.NoError(t, err)
					require.Equal(t, want, got)
					read[fmt.Sprintf("%s v%d", reader, version)]++
				})
			}
		}
	}
	t.Logf("tables read: %v", read)
	for version := 1; version <= 3; version++ {
		require.NotZero(t, read[fmt.Sprintf("pyiceberg v%d", version)])
		require.NotZero(t, read[fmt.Sprintf("duckdb v%d", version)])
	}
}
