package check_test

import (
	"encoding/binary"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

// fault breaks one thing of a clean table and says what must be found, and that
// nothing else may be.
type fault struct {
	name    string
	version int
	harm    func(w *world)
	want    []string
}

// codes are the different findings as "severity code".
func codes(rep *check.Report) []string {
	set := map[string]bool{}
	for _, f := range rep.Findings {
		set[string(f.Severity)+" "+string(f.Code)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func long(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// file edits the data_file of the first live data file.
func file(f func(file object)) func(w *world) {
	return func(w *world) { w.live(false, func(_, df object) { f(df) }) }
}

func entry(f func(e object)) func(w *world) {
	return func(w *world) { w.live(false, func(e, _ object) { f(e) }) }
}

func deleted(f func(df object)) func(w *world) {
	return func(w *world) { w.live(true, func(_, df object) { f(df) }) }
}

// vector edits the first live deletion vector of the head.
func vector(f func(df object)) func(w *world) {
	return func(w *world) {
		for _, m := range w.Head("").Manifests {
			for _, e := range m.Entries {
				if !e.Live() || e.File.Format != "PUFFIN" {
					continue
				}
				w.manifestAt(m.Path, func(entries []object) []object {
					f(entries[0]["data_file"].(object))
					return entries
				})
				return
			}
		}
		w.t.Fatal("no vector")
	}
}

func listed(deletes bool, f func(m object)) func(w *world) {
	return func(w *world) { w.list(deletes, f) }
}

func edited(f func(w *world, m object)) func(w *world) {
	return func(w *world) { w.edit(func(m map[string]any) { f(w, m) }) }
}

// summary changes an entry of the head's summary.
func summary(key, value string) func(w *world) {
	return edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["summary"].(object)[key] = value
	})
}

func cloneObject(o object) object {
	out := object{}
	for k, v := range o {
		if inner, ok := v.(object); ok {
			v = cloneObject(inner)
		}
		out[k] = v
	}
	return out
}

var faults = []fault{
	// The record.
	{"no version token", 2, func(w *world) { w.record(func(m object) { m["versionToken"] = "" }) }, []string{"error record-token"}},
	{"metadata file gone", 2, func(w *world) { w.fl.RemoveAll(w.at(w.MetadataLocation())) }, []string{"error metadata-missing"}},
	{"metadata file is no json", 2, func(w *world) { w.fl.PutFile(w.at(w.MetadataLocation()), []byte("{")) }, []string{"error metadata-unreadable"}},
	{"metadata file differs from the record", 2, func(w *world) {
		p := w.at(w.MetadataLocation())
		b := slices.Clone(w.fl.Content(p))
		at := slices.Index(b, '5')
		b[at] = '6'
		w.fl.PutFile(p, b)
	}, []string{"error record-copy"}},

	{"record of another table", 2, func(w *world) {
		w.record(func(m object) {
			m["metadata"].(object)["iceberg"].(object)["tableUuid"] = "11111111-2222-3333-4444-555555555555"
		})
	}, []string{"error record-uuid"}},
	{"location in another bucket", 2, edited(func(_ *world, m object) { m["location"] = "s3://other/t" }),
		[]string{"warning record-location"}},

	// Metadata.
	{"F121 snapshot id twice", 2, edited(func(_ *world, m object) {
		all := m["snapshots"].([]any)
		m["snapshots"] = append(all, all[0])
	}), []string{"error metadata-unreadable"}},
	{"last column id too low", 2, edited(func(_ *world, m object) { m["last-column-id"] = 2 }), []string{"error metadata-last"}},
	{"last partition id too low", 2, edited(func(_ *world, m object) { m["last-partition-id"] = 999 }), []string{"error metadata-last"}},
	{"F070 one partition field with two ids", 2, edited(func(_ *world, m object) {
		m["partition-specs"] = append(m["partition-specs"].([]any), object{"spec-id": 7, "fields": []any{
			object{"source-id": 2, "field-id": 1005, "name": "again", "transform": "identity"},
		}})
		m["last-partition-id"] = 1005
	}), []string{"warning metadata-partition-fields"}},
	{"sequence numbers run backwards", 2, edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["sequence-number"] = 1
	}), []string{"error list-sequence", "error metadata-sequence", "warning list-added-snapshot"}},
	{"snapshot older than its parent", 2, edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["timestamp-ms"] = 1000
	}), []string{"warning metadata-time"}},
	{"snapshot newer than the table", 2, edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["timestamp-ms"] = int64(4102444800000)
	}), []string{"warning metadata-time"}},
	{"snapshot of no schema", 2, edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["schema-id"] = 77
	}), []string{"error metadata-schema"}},
	{"row ids of a snapshot pass the table's", 3, edited(func(w *world, m object) {
		snapshotDoc(m, w.Head("").ID)["added-rows"] = 1_000_000
	}), []string{"error metadata-row-ids"}},
	{"snapshot log names another head", 2, edited(func(_ *world, m object) {
		all := m["snapshot-log"].([]any)
		m["snapshot-log"] = all[:len(all)-1]
	}), []string{"warning metadata-log"}},
	{"logged metadata gone", 2, func(w *world) {
		before := w.MetadataLocation()
		w.edit(func(map[string]any) {})
		w.fl.RemoveAll(w.at(before))
	}, []string{"warning metadata-log-file"}},
	{"statistics gone", 2, func(w *world) {
		p, err := w.SetStatistics(w.t.Context(), w.Head("").ID)
		require.NoError(w.t, err)
		w.fl.RemoveAll(p)
	}, []string{"error statistics-missing"}},
	{"statistics cut", 2, func(w *world) {
		p, err := w.SetStatistics(w.t.Context(), w.Head("").ID)
		require.NoError(w.t, err)
		w.fl.PutFile(p, w.fl.Content(p)[1:])
	}, []string{"error statistics-size"}},

	{"statistics of no snapshot", 2, func(w *world) {
		_, err := w.SetStatistics(w.t.Context(), w.Head("").ID)
		require.NoError(w.t, err)
		w.edit(func(m map[string]any) {
			m["statistics"].([]any)[0].(object)["snapshot-id"] = 4711
		})
	}, []string{"warning statistics-snapshot"}},
	{"spec with one field id twice", 2, edited(func(_ *world, m object) {
		m["partition-specs"] = append(m["partition-specs"].([]any), object{"spec-id": 7, "fields": []any{
			object{"source-id": 4, "field-id": 1001, "name": "p", "transform": "identity"},
			object{"source-id": 3, "field-id": 1001, "name": "q", "transform": "void"},
		}})
	}), []string{"error metadata-unreadable"}},
	{"F121 snapshot id below zero", 2, edited(func(w *world, m object) {
		s := cloneObject(snapshotDoc(m, w.Head("").ID))
		s["snapshot-id"], s["sequence-number"] = -5, 7
		delete(s, "parent-snapshot-id")
		m["snapshots"], m["last-sequence-number"] = append(m["snapshots"].([]any), s), 7
	}), []string{"warning metadata-ids"}},

	// Lists.
	{"list gone", 2, func(w *world) { w.fl.RemoveAll(w.at(w.Head("").List)) }, []string{"error list-missing"}},
	{"list cut", 2, func(w *world) {
		p := w.at(w.Head("").List)
		b := w.fl.Content(p)
		w.fl.PutFile(p, b[:len(b)-20])
	}, []string{"error list-unreadable"}},
	{"manifest twice in a list", 2, func(w *world) {
		w.avro(w.at(w.Head("").List), func(r []object) []object { return append(r, w.pick(r, false)) })
	}, []string{"error list-twice"}},
	{"wrong length", 2, listed(false, func(m object) { m["manifest_length"] = int64(9) }), []string{"error list-length"}},
	{"wrong number of files", 2, listed(false, func(m object) { m["added_files_count"] = int32(9) }), []string{"error list-counts"}},
	{"F077 deletes said to be none", 2, listed(true, func(m object) { m["added_files_count"], m["existing_files_count"] = int32(0), int32(0) }), []string{"error list-counts"}},
	{"wrong number of rows", 1, listed(false, func(m object) { m["added_rows_count"] = int64(99) }), []string{"error list-counts"}},
	{"F085 least sequence number too high", 2, listed(false, func(m object) { m["min_sequence_number"] = number(m["min_sequence_number"]) + 1 }), []string{"error list-min-sequence"}},
	{"F085 least sequence number too low", 2, listed(false, func(m object) { m["min_sequence_number"] = int64(0) }), []string{"warning list-min-sequence"}},
	{"sequence number of a manifest above its snapshot's", 2, listed(false, func(m object) { m["sequence_number"] = int64(50) }), []string{"error list-sequence", "warning list-added-snapshot", "warning list-min-sequence"}},
	{"summary does not cover a partition", 2, listed(false, func(m object) {
		s := m["partitions"].([]any)[0].(object)
		s["lower_bound"] = []byte{90, 0, 0, 0}
		s["upper_bound"] = []byte{91, 0, 0, 0}
	}), []string{"error list-summaries"}},
	{"summary without its bounds", 2, listed(false, func(m object) {
		s := m["partitions"].([]any)[0].(object)
		s["lower_bound"], s["upper_bound"] = nil, nil
	}), []string{"error list-summaries"}},
	{"empty text summarised as null", 2, func(w *world) {
		w.Respec("part")
		w.Append(w.R(40, "", 1.0, "x"))
		w.list(false, func(m object) {
			s := m["partitions"].([]any)[0].(object)
			s["lower_bound"], s["upper_bound"] = nil, nil
		})
	}, []string{"warning list-summaries"}},
	{"row id range past the table's", 3, listed(false, func(m object) { m["first_row_id"] = int64(1 << 40) }), []string{"error entry-row-ids", "error list-row-ids"}},
	{"row id ranges overlap", 3, listed(false, func(m object) { m["first_row_id"] = int64(0) }), []string{"error entry-row-ids", "error list-row-ids"}},

	{"lists that disagree on who added a manifest", 2, func(w *world) {
		w.avro(w.at(w.Head("").List), func(records []object) []object {
			for _, r := range records {
				if number(r["sequence_number"]) == 2 {
					r["added_snapshot_id"] = int64(4711)
				}
			}
			return records
		})
	}, []string{"warning list-changed"}},

	// Manifests and entries.
	{"manifest gone", 2, func(w *world) { w.fl.RemoveAll(w.Head("").Manifests[0].At) }, []string{"error manifest-missing"}},
	{"manifest cut", 2, func(w *world) {
		m := w.Head("").Manifests[0]
		b := w.fl.Content(m.At)
		w.fl.PutFile(m.At, b[:len(b)-30])
	}, []string{"error list-length", "error manifest-unreadable"}},
	{"file twice in a manifest", 2, func(w *world) {
		w.manifest(false, func(e []object) []object { return append(e, e[0]) })
		w.list(false, func(m object) { m["added_files_count"], m["added_rows_count"] = int32(2), int64(2) })
	}, []string{"error entry-twice", "warning summary-changes", "warning summary-totals"}},
	{"file twice in two manifests", 2, func(w *world) {
		other := w.Head("").DataFiles()
		w.live(false, func(e, df object) {
			last := other[len(other)-1].File
			df["file_path"], df["file_size_in_bytes"] = last.Path, last.Size
		})
	}, []string{"error entry-twice", "warning summary-totals"}},
	{"data sequence number above the manifest's", 2, entry(func(e object) { e["sequence_number"] = int64(60) }), []string{"error entry-sequence", "warning list-min-sequence"}},
	{"file sequence number above the manifest's", 2, entry(func(e object) { e["file_sequence_number"] = int64(60) }), []string{"error entry-sequence"}},
	{"F086 removed entry names another snapshot", 2, func(w *world) {
		for _, m := range w.Head("").Manifests {
			for i, e := range m.Entries {
				if !e.Live() {
					w.manifestAt(m.Path, func(entries []object) []object {
						entries[i]["snapshot_id"] = int64(e.Snapshot) - 1
						return entries
					})
					return
				}
			}
		}
	}, []string{"warning entry-snapshot", "warning summary-changes"}},
	{"manifest of no spec", 2, edited(func(_ *world, m object) {
		specs := m["partition-specs"].([]any)
		m["partition-specs"] = specs[1:]
	}), []string{"error manifest-spec"}},

	// Files.
	{"data file gone", 2, func(w *world) { w.fl.RemoveAll(w.dataFile()) }, []string{"error file-missing"}},
	{"data file of an old snapshot gone", 2, func(w *world) {
		live := map[filer.Path]bool{}
		for _, e := range w.Head("").DataFiles() {
			live[e.File.At] = true
		}
		for _, s := range w.Snapshots() {
			for _, e := range s.DataFiles() {
				if !live[e.File.At] {
					w.fl.RemoveAll(e.File.At)
					return
				}
			}
		}
	}, []string{"error file-missing"}},
	{"data file cut", 2, func(w *world) {
		p := w.dataFile()
		w.fl.PutFile(p, w.fl.Content(p)[4:])
	}, []string{"error file-size"}},
	{"delete file gone", 2, func(w *world) { w.fl.RemoveAll(w.deleteFile()) }, []string{"error file-missing"}},
	{"F124 relative path", 2, file(func(df object) {
		df["file_path"] = "data" + after(df["file_path"].(string), "/data")
	}), []string{"note file-relative"}},
	{"path that leads nowhere", 2, file(func(df object) { df["file_path"] = "hdfs://x/y" }), []string{"error file-path"}},
	{"file of another bucket", 2, file(func(df object) { df["file_path"] = "s3://other/x.parquet" }), []string{"warning file-foreign"}},
	{"file outside of the table", 2, func(w *world) {
		to := filer.Path("/buckets/lake/elsewhere/x.parquet")
		w.fl.PutFile(to, w.fl.Content(w.dataFile()))
		w.live(false, func(_, df object) { df["file_path"] = "s3://lake/elsewhere/x.parquet" })
		for _, e := range w.Head("").DataFiles()[:1] {
			w.live(false, func(_, df object) { df["file_size_in_bytes"] = e.File.Size })
		}
	}, []string{"note file-outside"}},
	{"unknown format", 2, file(func(df object) { df["file_format"] = "vortex" }), []string{"error file-format"}},
	{"bound of the wrong length", 2, file(func(df object) {
		df["lower_bounds"].([]any)[0].(object)["value"] = []byte{1, 2, 3}
	}), []string{"error file-bounds"}},
	{"lower bound above the upper", 2, file(func(df object) {
		df["lower_bounds"].([]any)[0].(object)["value"] = long(1 << 40)
	}), []string{"error file-bounds"}},
	{"F045 bound is no text", 2, file(func(df object) {
		df["upper_bounds"].([]any)[3].(object)["value"] = []byte("six\xe2\x80")
	}), []string{"warning file-bounds-text"}},
	{"bound of an unknown column", 2, file(func(df object) {
		df["lower_bounds"] = append(df["lower_bounds"].([]any), object{"key": int32(404), "value": []byte{1}})
	}), []string{"note file-unknown-column"}},
	{"more nulls than values", 2, file(func(df object) {
		df["null_value_counts"].([]any)[0].(object)["value"] = int64(50)
	}), []string{"error file-counts"}},
	{"more NaN than values", 2, file(func(df object) {
		df["nan_value_counts"].([]any)[0].(object)["value"] = int64(50)
	}), []string{"error file-counts"}},
	{"split offsets past the end", 2, file(func(df object) { df["split_offsets"] = []any{int64(4), int64(1 << 30)} }), []string{"warning file-split-offsets"}},
	{"encrypted", 2, file(func(df object) { df["key_metadata"] = []byte{1} }), []string{"note file-encrypted"}},
	{"equality delete by no column", 2, deleted(func(df object) { df["equality_ids"] = []any{int32(405)} }), []string{"error delete-equality-ids"}},
	{"vector past the end of its file", 3, vector(func(df object) { df["content_offset"] = int64(1 << 30) }), []string{"error vector-fields"}},
	{"F020 two vectors for a data file", 3, func(w *world) {
		var path string
		for _, m := range w.Head("").Manifests {
			if m.Deletes && m.Entries[0].File.Format == "PUFFIN" {
				path = m.Path
			}
		}
		w.manifestAt(path, func(entries []object) []object {
			second := cloneObject(entries[0])
			second["data_file"].(object)["content_offset"] = int64(0)
			return append(entries, second)
		})
		for _, s := range w.Snapshots() {
			w.avro(w.at(s.List), func(records []object) []object {
				for _, r := range records {
					if r["manifest_path"] == path {
						r["added_files_count"], r["added_rows_count"] = int32(2), int64(2)
					}
				}
				return records
			})
		}
	}, []string{"error vector-twice", "note summary-totals", "warning summary-changes", "warning summary-totals"}},

	{"F132 dangling delete", 2, func(w *world) {
		target := w.target()
		for _, e := range w.Head("").DataFiles() {
			if e.File.Path == target {
				_, err := w.RemoveFiles(w.t.Context(), []*model.File{e.File}, model.Options{})
				require.NoError(w.t, err)
			}
		}
	}, []string{"note delete-dangling"}},
	{"delete manifest labelled data", 2, func(w *world) {
		style := model.Style{DeletesAsData: true}
		_, err := w.PositionDelete(w.t.Context(), w.By("id", 3), model.PerFile, model.Options{Style: &style})
		require.NoError(w.t, err)
	}, []string{"note manifest-label"}},

	// Summaries.
	{"F128 wrong total", 2, summary("total-records", "999"), []string{"warning summary-totals"}},
	{"F128 total is no number", 2, summary("total-data-files", "many"), []string{"warning summary-totals"}},
	{"F128 wrong number of added files", 2, summary("added-data-files", "77"), []string{"warning summary-changes"}},
}

func after(s, part string) string {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return s[i+len(part):]
		}
	}
	return s
}

func TestF021F045F070F077F085F086F121F124F128PlantedFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t, f.version)
			f.harm(w)
			rep, err := check.Named(t.Context(), w.fl, tableID, check.Options{})
			require.NoError(t, err)
			require.Equal(t, f.want, codes(rep), dump(rep))
		})
	}
}

// TestLargeTablesAreListed finds the same where files are not looked up one by
// one.
func TestLargeTablesAreListed(t *testing.T) {
	check.Limit(t, 0, 100)
	for _, f := range faults {
		if strings.Contains(f.name, "file") {
			t.Run(f.name, func(t *testing.T) {
				w := newWorld(t, f.version)
				f.harm(w)
				rep, err := check.Named(t.Context(), w.fl, tableID, check.Options{})
				require.NoError(t, err)
				require.Equal(t, f.want, codes(rep), dump(rep))
			})
		}
	}
}

func TestManyDeletesAreNotRemembered(t *testing.T) {
	check.Limit(t, 100, 1)
	w := newWorld(t, 2)
	require.Equal(t, []string{"note delete-not-looked-at"}, codes(deepCheck(t, w.fl, tableID)))
}

func TestChangeDuringTheCheckIsNoted(t *testing.T) {
	w := newWorld(t, 2)
	v, err := iceberg.Load(t.Context(), w.fl, tableID)
	require.NoError(t, err)
	w.Append(w.R(30, "z", 1.0, "late"))
	rep, err := check.Table(t.Context(), w.fl, v, check.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"note record-moved"}, codes(rep))
	require.True(t, rep.Clean())
}

// TestHeadOnly does not see what is wrong with older snapshots.
func TestHeadOnly(t *testing.T) {
	w := newWorld(t, 2)
	w.fl.RemoveAll(w.at(w.Snapshots()[0].List))
	rep, err := check.Named(t.Context(), w.fl, tableID, check.Options{Snapshots: check.HeadOnly})
	require.NoError(t, err)
	require.Empty(t, codes(rep))
	require.Equal(t, int64(1), rep.Stats.Snapshots)
	rep, err = check.Named(t.Context(), w.fl, tableID, check.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"error list-missing"}, codes(rep))
}

// TestFindingsAreBounded counts what it leaves out.
func TestFindingsAreBounded(t *testing.T) {
	w := newWorld(t, 2)
	for _, e := range w.Head("").DataFiles() {
		w.fl.RemoveAll(e.File.At)
	}
	rep, err := check.Named(t.Context(), w.fl, tableID, check.Options{MaxFindings: 2})
	require.NoError(t, err)
	require.Equal(t, int64(len(w.Head("").DataFiles())), rep.Errors)
	require.Equal(t, rep.Errors, rep.Omitted+int64(len(rep.Findings)))
	require.Len(t, rep.Findings, 1)
}

// TestAFilerThatFailsIsNoFinding fails at every call: the check says so, or finds
// nothing.
func TestAFilerThatFailsIsNoFinding(t *testing.T) {
	w := newWorld(t, 3)
	probe := w.fl.Reopen()
	require.Empty(t, codes(deepCheck(t, probe, tableID)))
	for n := 1; n <= probe.Count(); n++ {
		fl := w.fl.Reopen()
		fl.Fail(filertest.Fault{Call: n, Mode: filertest.BeforeEffect})
		rep, err := check.Named(t.Context(), fl, tableID, check.Options{Deep: true})
		if err == nil {
			require.Empty(t, codes(rep), "call %d", n)
		}
	}
}

// TestEveryCodeIsMetAndDescribed: each code is planted in a test of this package
// and is in the table of docs/design/check.md.
func TestEveryCodeIsMetAndDescribed(t *testing.T) {
	source, err := os.ReadFile("codes.go")
	require.NoError(t, err)
	doc, err := os.ReadFile("../docs/design/check.md")
	require.NoError(t, err)
	met := map[string]bool{"record-moved": true, "delete-not-looked-at": true} // the tests above
	for _, f := range slices.Concat(faults, deepFaults) {
		for _, w := range f.want {
			_, code, _ := strings.Cut(w, " ")
			met[code] = true
		}
	}
	all := regexp.MustCompile(`Code = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, all)
	for _, m := range all {
		require.True(t, met[m[1]], "no test plants %s", m[1])
		require.Contains(t, string(doc), "`"+m[1]+"`")
	}
}
