package check_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table/dv"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// deletedRow is a row of a position delete file, which may be wrong.
type deletedRow struct {
	Path string `parquet:"file_path,id(2147483546)"`
	Pos  *int64 `parquet:"pos,id(2147483545),optional"`
}

func at(n int64) *int64 { return &n }

// positions replaces the position delete file of the table and what its manifest
// says of its size.
func positions(rows func(target string) []deletedRow) func(w *world) {
	return func(w *world) {
		for _, m := range w.Head("").Manifests {
			for i, e := range m.Entries {
				if !e.Live() || e.File.Content != model.PositionDeletes {
					continue
				}
				var out bytes.Buffer
				made := rows(w.target())
				require.NoError(w.t, parquet.Write(&out, made))
				w.fl.PutFile(e.File.At, out.Bytes())
				w.manifestAt(m.Path, func(entries []object) []object {
					df := entries[i]["data_file"].(object)
					df["file_size_in_bytes"], df["split_offsets"] = int64(out.Len()), nil
					df["record_count"], df["referenced_data_file"] = int64(len(made)), nil
					df["lower_bounds"], df["upper_bounds"] = nil, nil
					return entries
				})
				for _, s := range w.Snapshots() {
					w.avro(w.at(s.List), func(records []object) []object {
						for _, r := range records {
							if r["manifest_path"] == m.Path {
								r["added_rows_count"] = int64(len(made))
							}
						}
						return records
					})
				}
				return
			}
		}
		w.t.Fatal("no position delete file")
	}
}

// target is the data file with three rows.
func (w *world) target() string {
	for _, e := range w.Head("").DataFiles() {
		if e.File.Records == 3 {
			return e.File.Path
		}
	}
	w.t.Fatal("no file of three rows")
	return ""
}

// targetEntry edits the data_file of the file with three rows.
func targetEntry(f func(df object)) func(w *world) {
	return func(w *world) {
		target := w.target()
		for _, m := range w.Head("").Manifests {
			for i, e := range m.Entries {
				if e.File.Path == target {
					w.manifestAt(m.Path, func(entries []object) []object {
						f(entries[i]["data_file"].(object))
						return entries
					})
				}
			}
		}
	}
}

// blob replaces the deletion vector.
func blob(bits ...uint64) func(w *world) {
	return func(w *world) {
		bm := dv.NewRoaringPositionBitmap()
		for _, b := range bits {
			bm.Set(b)
		}
		raw, err := dv.SerializeDV(bm)
		require.NoError(w.t, err)
		for _, m := range w.Head("").Manifests {
			for _, e := range m.Entries {
				if e.Live() && e.File.Content == model.Vector {
					file := slices.Concat(w.fl.Content(e.File.At)[:e.File.Offset], raw)
					w.fl.PutFile(e.File.At, file)
					w.manifestAt(m.Path, func(entries []object) []object {
						df := entries[0]["data_file"].(object)
						df["content_size_in_bytes"], df["file_size_in_bytes"] = int64(len(raw)), int64(len(file))
						return entries
					})
				}
			}
		}
	}
}

var deepFaults = []fault{
	{"nothing", 2, func(*world) {}, []string{}},
	{"another number of rows", 2, targetEntry(func(df object) { df["record_count"] = int64(2) }),
		[]string{"error deep-rows", "error list-counts"}},
	{"lower bound above the data", 2, targetEntry(func(df object) {
		df["lower_bounds"].([]any)[0].(object)["value"] = long(2)
	}), []string{"error deep-bounds"}},
	{"upper bound below the data", 2, targetEntry(func(df object) {
		df["upper_bounds"].([]any)[0].(object)["value"] = long(2)
	}), []string{"error deep-bounds"}},
	{"text bound below the data", 2, targetEntry(func(df object) {
		df["upper_bounds"].([]any)[3].(object)["value"] = []byte("one")
	}), []string{"warning deep-bounds"}},
	{"file is no parquet", 2, func(w *world) {
		p := w.at(w.target())
		w.fl.PutFile(p, bytes.Repeat([]byte{7}, len(w.fl.Content(p))))
	}, []string{"error deep-unreadable"}},
	{"files without field ids", 2, func(w *world) {
		w.FileWith(model.Options{Layout: model.Layout{NoFieldIDs: true}}, w.R(20, "q", 1.0, "x"))
	}, []string{"error deep-field-ids"}},
	{"files without field ids and a name mapping", 2, func(w *world) {
		require.NoError(w.t, w.SetNameMapping(w.t.Context()))
		w.FileWith(model.Options{Layout: model.Layout{NoFieldIDs: true}}, w.R(20, "q", 1.0, "x"))
	}, []string{}},

	{"data file in another format", 2, targetEntry(func(df object) { df["file_format"] = "orc" }), []string{"note unsupported"}},

	// F021.
	{"good position delete", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, at(1)}} }), []string{}},
	{"null position", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, nil}} }), []string{"error deep-positions"}},
	{"negative position", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, at(-1)}} }), []string{"error deep-positions"}},
	{"position past the rows", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, at(3)}} }), []string{"error deep-positions"}},
	{"positions in disorder", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, at(2)}, {target, at(1)}} }),
		[]string{"warning deep-order"}},
	{"position twice", 2, positions(func(target string) []deletedRow { return []deletedRow{{target, at(1)}, {target, at(1)}} }),
		[]string{}},
	{"vector with another number of positions", 3, blob(0, 1), []string{"error deep-vector"}},
	{"vector past the rows", 3, blob(3), []string{"error deep-positions"}},
	{"vector damaged", 3, func(w *world) {
		for _, e := range w.Head("").DeleteFiles() {
			if e.File.Content == model.Vector {
				b := slices.Clone(w.fl.Content(e.File.At))
				b[e.File.Offset+20] ^= 1
				w.fl.PutFile(e.File.At, b)
			}
		}
	}, []string{"error deep-vector"}},
}

func TestF021DeepFaultsAreFound(t *testing.T) {
	for _, f := range deepFaults {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t, f.version)
			f.harm(w)
			rep, err := check.Named(t.Context(), w.fl, tableID, check.Options{Deep: true})
			require.NoError(t, err)
			// Another size or number of rows is another total.
			got := slices.DeleteFunc(codes(rep), func(s string) bool { return strings.Contains(s, " summary-") })
			require.ElementsMatch(t, f.want, got, dump(rep))
			require.Positive(t, rep.Stats.Opened)
		})
	}
}

// TestDeepReadsEachFileOnce counts the reads of a table whose files are live in
// several snapshots and manifests.
func TestDeepReadsEachFileOnce(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := scene(t, fl, 2, model.Plain)
	fl = fl.Reopen()
	rep := deepCheck(t, fl, tableID)
	require.Equal(t, rep.Stats.Files, rep.Stats.Opened)
	counts := fl.ReadCounts()
	for _, snap := range s.Snapshots() {
		for _, m := range snap.Manifests {
			require.Equal(t, 1, counts[m.At].Opens, m.At)
		}
	}
}
