package expire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// TestP6ReplacedFilesAreFreed: the files that a compaction replaced go once no
// retained snapshot has them live, although the compaction's manifest with their
// DELETED entries is retained.
func TestP6ReplacedFilesAreFreed(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb := newTable(t, fl, model.Config{Version: version})
			var small []*model.File
			for i := range 4 {
				small = append(small, tb.File(tb.R(int64(i), "a")))
			}
			compacted := tb.Rewrite(small...)
			pass(fl, 30)
			finished(t, fl, fewest)
			require.Equal(t, []iceberg.SnapshotID{compacted}, retained(t, fl, tb.Table))
			dead := 0
			for _, m := range tb.Head("").Manifests {
				for _, e := range m.Entries {
					if !e.Live() {
						dead++
					}
				}
			}
			require.Equal(t, len(small), dead, "the manifest with the DELETED entries is there")
			gone(t, fl, paths(small...)...)
		})
	}
}

// TestKeepChangelog keeps what a retained snapshot deleted, but not what a
// compaction replaced.
func TestKeepChangelog(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	early := tb.File(tb.R(int64(0), "a"))
	late := tb.File(tb.R(int64(1), "a"))
	small := []*model.File{tb.File(tb.R(int64(2), "a")), tb.File(tb.R(int64(3), "a"))}
	tb.Overwrite(early.RowsAt(0))
	tb.Rewrite(small...)
	tb.Overwrite(late.RowsAt(0))
	pass(fl, 30)
	for _, x := range []struct {
		keep, changelog string
		stay, leave     []*model.File
	}{
		{"1", "true", []*model.File{late}, append(small, early)},
		{"1", "false", nil, append(small, early, late)},
		{"2", "true", []*model.File{late}, append(small, early)}, // late is live in the oldest
		{"3", "true", append(small, late, early), nil},
	} {
		t.Run(x.keep+" "+x.changelog, func(t *testing.T) {
			fl := fl.Fork()
			res := finished(t, fl, map[string]string{"max_snapshots_to_keep": x.keep, "keep_changelog": x.changelog})
			require.Equal(t, res.Predicted, *res.Actual, "O9")
			retained(t, fl, tb.Fork(fl))
			there(t, fl, paths(x.stay...)...)
			gone(t, fl, paths(x.leave...)...)
		})
	}
}

// TestF084OldSnapshotsCount: manifests embedded in v1 metadata count as
// references and as candidates, upgraded tables included.
func TestF084OldSnapshotsCount(t *testing.T) {
	for _, upgrade := range []bool{false, true} {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("upgrade=%v bare=%v", upgrade, bare), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				tb := newTable(t, fl, model.Config{Version: 1, EmbeddedManifests: true, BareV1: bare})
				lost := tb.File(tb.R(int64(0), "a"))
				kept := tb.File(tb.R(int64(1), "a"))
				tagged := tb.Head("").ID
				after := tb.File(tb.R(int64(2), "a"))
				tb.Overwrite(tb.By("id", int64(0)))
				if upgrade {
					tb.Do(tb.Upgrade(t.Context(), 2))
				}
				if !bare || upgrade {
					tb.Do(tb.CreateTag(t.Context(), "old", tagged, model.Retention{}))
				}
				tb.Overwrite(tb.By("id", int64(2)))
				pass(fl, 30)
				res, err := run(t.Context(), fl, map[string]string{"max_snapshots_to_keep": "1", "clean_expired_metadata": "true"})
				if bare && !upgrade && err != nil {
					// Without a uuid nothing tells this table from another of its name.
					require.Equal(t, fault.Unsupported, fault.Of(err))
					return
				}
				require.NoError(t, err)
				require.Equal(t, ops.Finished, res.Status, res.Message)
				require.Equal(t, res.Predicted.RemovedFiles, res.Actual.RemovedFiles, "O9")
				retained(t, fl, tb.Table)
				there(t, fl, kept.At)
				gone(t, fl, after.At)
				if len(tb.Refs()) > 1 {
					there(t, fl, lost.At)
				}
			})
		}
	}
}

// TestF104SpellingsMeanOneFile: an expiring snapshot and a retained one spell the
// same files in different ways, lists and manifests included.
func TestF104SpellingsMeanOneFile(t *testing.T) {
	all := []model.Spelling{model.S3, model.S3A, model.S3N, model.Absolute, model.BucketRelative, model.TableRelative}
	for _, before := range all {
		for _, after := range all {
			if before == after {
				continue
			}
			t.Run(fmt.Sprintf("%d to %d", before, after), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				tb := newTable(t, fl, model.Config{Spelling: before})
				appends(tb, 0, 3)
				// The last snapshot has the manifests of the one before it; now the
				// earlier ones name theirs in another spelling.
				respell(t, fl, tb, after)
				pass(fl, 30)
				res := finished(t, fl, fewest)
				require.Equal(t, res.Predicted, *res.Actual, "O9")
				there(t, fl, heads(tb)...)
				require.NoError(t, tb.Refresh(t.Context()))
				whole(t, fl, tb.Table)
			})
		}
	}
}

// heads are all files that the head reaches.
func heads(tb *model.Scene) []filer.Path {
	var out []filer.Path
	for _, m := range tb.Head("").Manifests {
		out = append(out, m.At)
		for _, e := range m.Entries {
			if e.Live() {
				out = append(out, e.File.At)
			}
		}
	}
	return out
}

// respell gives the expiring snapshots a copy of the head's list with other
// spellings, and one of them the head's own list under another name.
func respell(t *testing.T, fl *filertest.Filer, tb *model.Scene, as model.Spelling) {
	t.Helper()
	s := tb.Snapshots()
	at := tb.Root.Join("metadata", "respelled.avro")
	fl.PutFile(at, listOf(t, fl, func(p filer.Path) string { return as.Spell(tb.Root, p) }))
	headList := filer.Path("/buckets/" + strings.TrimPrefix(s[2].List, "s3://"))
	tb.Do(tb.Edit(t.Context(), func(m map[string]any) {
		all := m["snapshots"].([]any)
		all[0].(map[string]any)["manifest-list"] = "s3://" + at.Rel(filer.BucketsRoot)
		all[1].(map[string]any)["manifest-list"] = "s3a://" + headList.Rel(filer.BucketsRoot)
	}))
}

// TestF112FewBytesForEachFile states the bound that TestMillionCandidates
// measures: what is kept for a file is its hash, its size and where its path is.
func TestF112FewBytesForEachFile(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	synthetic(t, fl, model.SyntheticOptions{Manifests: 1, EntriesPerManifest: 10, Snapshots: 30, Churn: 200})
	pass(fl, 30)
	p := plan(t, runner(fl), nil)
	files := p.Head().Effects.RemovedFiles
	require.Greater(t, files, int64(4000))
	const reading = 16 << 20 // one manifest, whatever its files are
	require.Less(t, (p.Head().Effects.PeakMemoryBytes-reading)/files, int64(64))
}

// TestF113HintAndHiddenFilesAreNotTouched: expiry removes what snapshots named
// and nothing that merely lies there, not even if a manifest says it is a data
// file. A table that fills its bucket owns nothing.
func TestF113HintAndHiddenFilesAreNotTouched(t *testing.T) {
	t.Run("bystanders", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{})
		var mine []filer.Path
		for _, name := range []string{"metadata/version-hint.text", "_SUCCESS", ".tmp", "_delta_log/0.json", "data/stray.parquet"} {
			mine = append(mine, fl.PutFile(tb.Root.Join(name), []byte("x")).Path)
		}
		appends(tb, 0, 3)
		tb.Overwrite(tb.By("id", int64(0)))
		pass(fl, 30)
		finished(t, fl, fewest)
		there(t, fl, mine...)
		retained(t, fl, tb.Table)
	})
	t.Run("named as data", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{})
		appends(tb, 0, 3)
		statistics, err := tb.SetStatistics(t.Context(), tb.Head("").ID)
		require.NoError(t, err)
		hint := fl.PutFile(tb.Root.Join("metadata/version-hint.text"), []byte("4")).Path
		head := tb.Head("")
		protected := append([]filer.Path{hint, statistics, pathOf(head.List)}, heads(tb)...)
		v, err := iceberg.Load(t.Context(), fl, id)
		require.NoError(t, err)
		for _, e := range v.Metadata.MetadataLog {
			protected = append(protected, pathOf(e.MetadataFile))
		}
		plain := fl.PutFile(tb.Root.Join("data/plain.parquet"), []byte("x")).Path
		hostile(t, fl, tb, append(protected, plain)...)
		pass(fl, 30)
		finished(t, fl, fewest)
		there(t, fl, protected...)
		gone(t, fl, plain)
		retained(t, fl, tb.Table)
	})
	t.Run("another bucket's", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{})
		appends(tb, 0, 3)
		theirs := fl.PutFile("/buckets/other/ns/t/data/x.parquet", []byte("x")).Path
		hostile(t, fl, tb, theirs)
		pass(fl, 30)
		res := finished(t, fl, fewest)
		require.Equal(t, res.Predicted, *res.Actual, "O9")
		require.Empty(t, res.Warnings)
		there(t, fl, theirs)
	})
	t.Run("whole bucket", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{Location: "s3://lake"})
		appends(tb, 0, 3)
		pass(fl, 30)
		all := fl.Files("/buckets/lake")
		res := finished(t, fl, fewest)
		require.Zero(t, res.Actual.RemovedFiles)
		require.NotEmpty(t, res.Warnings)
		there(t, fl, all...)
		require.Len(t, retained(t, fl, tb.Table), 1)
	})
}

func pathOf(s3 string) filer.Path { return filer.Path("/buckets/" + strings.TrimPrefix(s3, "s3://")) }

// TestF122OldMetadataGoesAfterTheCommit: only what the committed edit took out
// of the log, only once the swap happened, and only if the table wants it.
func TestF122OldMetadataGoesAfterTheCommit(t *testing.T) {
	for _, wanted := range []string{"", "false", "true"} {
		t.Run("enabled="+wanted, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			props := map[string]string{"write.metadata.previous-versions-max": "3"}
			if wanted != "" {
				props["write.metadata.delete-after-commit.enabled"] = wanted
			}
			tb := newTable(t, fl, model.Config{})
			appends(tb, 0, 6)
			tb.Do(tb.SetProperties(t.Context(), props))
			v, err := iceberg.Load(t.Context(), fl, id)
			require.NoError(t, err)
			log := v.Metadata.MetadataLog
			pass(fl, 30)
			// A peer commits between the attempts, so one of them is lost.
			moved := false
			fl.OnCall(func(c filertest.Call) *filertest.Fault {
				if c.Op == filertest.OpUpdate && c.Path == tb.Record() && !moved {
					moved = true
					there(t, fl, pathOf(log[0].MetadataFile))
					peer := tb.Fork(fl.Reopen())
					require.NoError(t, peer.SetProperties(t.Context(), map[string]string{"peer": "1"}))
				}
				return nil
			})
			res := finished(t, fl, fewest)
			require.True(t, moved)
			require.Equal(t, 2, res.Commit.Attempts)
			v, err = iceberg.Load(t.Context(), fl, id)
			require.NoError(t, err)
			require.Len(t, v.Metadata.MetadataLog, 3)
			for _, e := range v.Metadata.MetadataLog {
				there(t, fl, pathOf(e.MetadataFile))
			}
			for _, location := range res.Commit.TrimmedLog {
				require.Equal(t, wanted != "true", fl.Exists(pathOf(location)), location)
			}
			require.NotEmpty(t, res.Commit.TrimmedLog)
			retained(t, fl, tb.Table)
		})
	}
	t.Run("swap fails", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{Properties: map[string]string{
			"write.metadata.delete-after-commit.enabled": "TRUE", "write.metadata.previous-versions-max": "2",
		}})
		appends(tb, 0, 6)
		pass(fl, 30)
		before := fl.Dump()
		peer := tb.Fork(fl.Reopen())
		fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Op == filertest.OpUpdate && c.Path == tb.Record() {
				require.NoError(t, peer.SetProperties(t.Context(), map[string]string{"peer": fmt.Sprint(fl.Count())}))
			}
			return nil
		})
		_, err := run(t.Context(), fl, fewest)
		require.Error(t, err)
		fl.OnCall(nil)
		for p, was := range before {
			if p.Within(tb.Root) {
				require.Equal(t, was, fl.Dump()[p], p)
			}
		}
	})
	t.Run("predicted", func(t *testing.T) {
		fl := filertest.New(filertest.Options{})
		tb := newTable(t, fl, model.Config{})
		appends(tb, 0, 6)
		tb.Do(tb.SetProperties(t.Context(), map[string]string{
			"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2",
		}))
		pass(fl, 30)
		res := finished(t, fl, fewest)
		require.Equal(t, res.Predicted, *res.Actual, "O9")
		require.NotEmpty(t, res.Commit.TrimmedLog)
	})
}

// TestF128NoSnapshotNoSummary: expiry adds no snapshot and leaves the summaries
// of the others as they were, broken ones too.
func TestF128NoSnapshotNoSummary(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	appends(tb, 0, 4)
	tb.Do(tb.Edit(t.Context(), func(m map[string]any) {
		all := m["snapshots"].([]any)
		all[3].(map[string]any)["summary"] = map[string]any{
			"operation": "acme-merge", "total-records": "-5", "total-data-files": "9999999999999999999999", "total-files-size": "junk", "note": "kept",
		}
	}))
	pass(fl, 30)
	was, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	res := finished(t, fl, fewest)
	require.Zero(t, res.Commit.Snapshot)
	require.Zero(t, res.Actual.After.Rows)
	is, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	require.Len(t, is.Metadata.Snapshots, 1)
	require.Equal(t, string(was.Metadata.Current().Raw()), string(is.Metadata.Current().Raw()))
	require.Equal(t, was.Metadata.LastSequenceNumber, is.Metadata.LastSequenceNumber)
}

// TestF138RemovalsAreSettledOneByOne: files that cannot be removed are named,
// the others go, a directory is never removed, and nothing is tried again by the
// next run.
func TestF138RemovalsAreSettledOneByOne(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := newTable(t, fl, model.Config{})
	var old []*model.File
	for i := range 4 {
		old = append(old, tb.File(tb.R(int64(i), "a")))
	}
	tb.Overwrite(tb.By("id", int64(0), int64(1), int64(2), int64(3)), tb.R(int64(9), "a"))
	fl.RemoveAll(old[0].At)
	fl.PutFile(old[0].At.Join("inside"), []byte("x"))
	pass(fl, 30)
	tries := 0
	fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpMove && c.Path == old[1].At {
			tries++
			return &filertest.Fault{Mode: filertest.BeforeEffect, Kind: fault.Unsupported}
		}
		require.False(t, (c.Op == filertest.OpMove || c.Op == filertest.OpDelete || c.Op == filertest.OpUnlink) && c.Path == old[0].At, "%s", c)
		return nil
	})
	res := finished(t, fl, fewest)
	there(t, fl, old[0].At.Join("inside"), old[1].At)
	gone(t, fl, paths(old[2:]...)...)
	require.True(t, slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, old[1].At.String()) }), "%v", res.Warnings)
	require.LessOrEqual(t, tries, 3)
	tries = 0
	again, err := run(t.Context(), fl, fewest)
	require.NoError(t, err)
	require.Equal(t, ops.NothingToDo, again.Status)
	require.Zero(t, tries)
	retained(t, fl, tb.Table)
}

// TestUnreadableSnapshots: what cannot be read of an expiring snapshot is no
// hindrance, removing it is the cure; of a retained one it stops every removal.
func TestUnreadableSnapshots(t *testing.T) {
	spoil := map[string]func(fl *filertest.Filer, p filer.Path){
		"missing": func(fl *filertest.Filer, p filer.Path) { fl.RemoveAll(p) },
		"no chunks": func(fl *filertest.Filer, p filer.Path) {
			c := fl.Content(p)
			fl.RemoveAll(p)
			up, err := fl.Create(t.Context(), p, filer.CreateOptions{})
			require.NoError(t, err)
			_, err = up.Write(c)
			require.NoError(t, err)
			_, err = up.Commit(t.Context())
			require.NoError(t, err)
			fl.LoseChunks(p)
		},
		"cut": func(fl *filertest.Filer, p filer.Path) {
			c := fl.Content(p)
			fl.RemoveAll(p)
			fl.PutFile(p, c[:len(c)/2])
		},
	}
	for how, spoil := range spoil {
		for _, of := range []string{"list", "manifest"} {
			for _, who := range []string{"expiring", "retained", "tagged meanwhile"} {
				t.Run(fmt.Sprintf("%s %s of %s", how, of, who), func(t *testing.T) {
					fl := filertest.New(filertest.Options{})
					tb := newTable(t, fl, model.Config{})
					lost := tb.File(tb.R(int64(0), "a"))
					s := tb.Head("")
					other := tb.File(tb.R(int64(1), "a"))
					tb.Overwrite(tb.By("id", int64(0)))
					tb.Overwrite(tb.By("id", int64(1)), tb.R(int64(2), "a"))
					at := pathOf(s.List)
					if of == "manifest" {
						at = s.Manifests[0].At
					}
					if who == "retained" {
						tb.Do(tb.CreateTag(t.Context(), "old", s.ID, model.Retention{}))
					}
					pass(fl, 30)
					spoil(fl, at)
					before := fl.Files(tb.Root)
					q := request(fewest)
					if who == "tagged meanwhile" {
						q.Planned = func(ops.Plan) error { return tb.CreateTag(t.Context(), "old", s.ID, model.Retention{}) }
					}
					res, err := first(runner(fl).Run(t.Context(), q))
					require.NoError(t, err)
					require.Equal(t, ops.Finished, res.Status, res.Message)
					v, err := iceberg.Load(t.Context(), fl, id)
					require.NoError(t, err)
					if who == "expiring" {
						require.Len(t, v.Metadata.Snapshots, 1)
						reason(t, res.Reasons, "unreadable-expiring-"+of)
						gone(t, fl, other.At)
						if of == "manifest" {
							there(t, fl, lost.At) // nothing says that it is free
						}
						require.NoError(t, model.Check(t.Context(), tb.Table))
						return
					}
					require.Len(t, v.Metadata.Snapshots, 2)
					require.NotEmpty(t, res.Warnings)
					if who == "retained" {
						reason(t, res.Reasons, "removal-blocked")
						require.Zero(t, res.Predicted.RemovedFiles)
					}
					require.Zero(t, res.Actual.RemovedFiles)
					there(t, fl, before...)
				})
			}
		}
	}
}
