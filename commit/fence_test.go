package commit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
)

// A worker that slept past its lease finds itself fenced: by the lease, by the
// revoked journal, and, if it was past both checks, by the version token.
func TestSleeperIsFenced(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			for _, when := range []string{"before the fence", "behind the fence"} {
				f := newFixture(t, 2)
				a, err := begin(t, f.fl, "sleeper", commit.Options{Retries: 3}, change)
				require.NoError(t, err)
				record := f.table.Record()
				slept := false
				f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
					if slept || c.Path != record {
						return nil
					}
					if when == "behind the fence" && c.Op != filertest.OpUpdate || when == "before the fence" && c.Op != filertest.OpStat {
						return nil
					}
					slept = true
					f.fl.Virtual().Advance(time.Hour)
					other := f.fl.Reopen()
					store := journal.New(other, other.Virtual())
					st, err := store.Find(t.Context(), "sleeper")
					require.NoError(t, err)
					cm := commit.New(other, other.Virtual(), commit.Options{})
					res, err := store.Resolve(t.Context(), st, cm.Resolver(), a.tr, journal.ResolveOptions{OrphanAge: 24 * time.Hour})
					require.NoError(t, err)
					require.Equal(t, journal.Refused, res.Outcome)
					return nil
				})
				before := f.table.MetadataLocation()
				res, err := a.commit(t.Context())
				require.True(t, slept)
				require.Equal(t, commit.Refused, res.Outcome, when)
				require.Equal(t, fault.Stale, fault.Of(err), "%v", err)
				f.fl.OnCall(nil)
				require.NoError(t, f.table.Refresh(t.Context()))
				require.Equal(t, before, f.table.MetadataLocation())
				require.NoError(t, resolveAll(t, f.fl))
				verifyNothingLost(t, f.fl, expect(t, f.table))
			}
		})
	}
}

// The fence looks at every staged file again before the swap.
func TestFenceSeesLostAndReplacedFiles(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		f := newFixture(t, 2)
		a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, func(v *iceberg.View) commit.Change {
			ch := relist(v)
			inner := ch.Rebuild
			ch.Rebuild = func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
				next, err := inner(ctx, head, st)
				for _, s := range st.Files() {
					if replaced {
						f.fl.PutFile(s.Path, []byte("another"))
					} else {
						f.fl.RemoveAll(s.Path)
					}
				}
				return next, err
			}
			return ch
		})
		require.NoError(t, err)
		before := f.table.MetadataLocation()
		res, err := a.commit(t.Context())
		require.Equal(t, commit.Refused, res.Outcome)
		want := fault.Stale
		if replaced {
			want = fault.Halt
		}
		require.Equal(t, want, fault.Of(err), "%v", err)
		require.NoError(t, f.table.Refresh(t.Context()))
		require.Equal(t, before, f.table.MetadataLocation())
	}
}

// F118: the caller's context ends, and clean-up fails, right after the swap took
// effect. The commit stands and nothing of it is removed.
func TestF118TroubleAfterTheSwap(t *testing.T) {
	for name, change := range changes {
		f := newFixture(t, 2)
		a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, change)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		record := f.table.Record()
		swapped := false
		f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
			if c.Path == record && c.Op == filertest.OpUpdate && !swapped {
				swapped = true
				cancel()
				return &filertest.Fault{Mode: filertest.AfterEffect}
			}
			if swapped && strings.HasPrefix(string(c.Path), "/etc/seaice") {
				return &filertest.Fault{Mode: filertest.BeforeEffect}
			}
			return nil
		})
		res, err := a.commit(ctx)
		require.NoError(t, err, name)
		require.Equal(t, commit.Committed, res.Outcome)
		require.NotEmpty(t, res.Warnings)
		f.fl.OnCall(nil)
		f.rows()
	}
}

// F118: a panic of the operation is a failure of the operation, before the swap.
func TestF118PanicInRebuild(t *testing.T) {
	f := newFixture(t, 2)
	a, err := begin(t, f.fl, "r1", commit.Options{}, func(*iceberg.View) commit.Change {
		return commit.Change{Operation: "test", Rebuild: func(context.Context, *iceberg.View, *commit.Stage) (commit.Next, error) {
			panic("out of memory")
		}}
	})
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.Equal(t, commit.Refused, res.Outcome)
	require.Equal(t, fault.Halt, fault.Of(err))
	f.rows()
}

// F119: a dead worker left a metadata file of the next version. It blocks nobody
// and is not touched.
func TestF119LeftoverMetadataFile(t *testing.T) {
	f := newFixture(t, 2)
	v, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
	require.NoError(t, err)
	var left []filer.Path
	for n := v.Record.MetadataVersion; n < v.Record.MetadataVersion+3; n++ {
		p := v.Locations.Pointer().Join("v" + string(rune('0'+n)) + ".metadata.json")
		if !f.fl.Exists(p) {
			f.fl.PutFile(p, []byte("{}"))
			left = append(left, p)
		}
	}
	require.NotEmpty(t, left)
	a, err := begin(t, f.fl, "r1", commit.Options{}, relist)
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Committed, res.Outcome)
	for _, p := range left {
		require.True(t, f.fl.Exists(p))
	}
	f.rows()
}

// F119: two committers from one base, the second's swap between every two calls
// of the first. Both changes are in the table afterwards.
func TestF119TwoCommitters(t *testing.T) {
	var want model.Rows
	tally := filertest.EveryGap(t, filertest.Scenario{
		Start: func(t testing.TB, fl *filertest.Filer) { want = expect(t, fill(t, fl, 2).table) },
		Run: func(t testing.TB, fl *filertest.Filer) error {
			a, err := begin(t, fl, "r1", commit.Options{Retries: 4}, relist)
			if err != nil {
				return err
			}
			_, err = a.commit(context.WithoutCancel(t.Context()))
			return err
		},
		Recover: resolveAll,
		Verify: func(t testing.TB, fl *filertest.Filer, in filertest.Injection) {
			require.NoError(t, in.Err)
			verifyNothingLost(t, fl, want)
			v, err := iceberg.Load(t.Context(), fl, iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"})
			require.NoError(t, err)
			if in.Peer {
				require.Equal(t, "1", v.Metadata.Properties["seaice.test"])
			}
			require.Len(t, v.Metadata.Snapshots, 3)
		},
	}, func(t testing.TB, peer *filertest.Filer) {
		a, err := begin(t, peer, "peer", commit.Options{Retries: 4}, setProperty)
		require.NoError(t, err)
		_, err = a.commit(context.WithoutCancel(t.Context()))
		require.NoError(t, err)
	})
	require.Positive(t, tally.Fired)
}

// F121: ids are random, positive and unused, also when the source of random
// numbers repeats itself.
func TestF121SnapshotIDs(t *testing.T) {
	f := newFixture(t, 2)
	taken := uint64(f.table.Head("").ID)
	draws := []uint64{taken << 1, 0, 1, taken<<1 | 1, 84}
	i := 0
	a, err := begin(t, f.fl, "r1", commit.Options{Draw: func() uint64 { i++; return draws[min(i, len(draws))-1] }}, relist)
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, iceberg.SnapshotID(42), res.Snapshot)
	f.rows()

	b, err := begin(t, f.fl, "r2", commit.Options{Draw: func() uint64 { return 84 }}, relist)
	require.NoError(t, err)
	res, err = b.commit(t.Context())
	require.Equal(t, commit.Refused, res.Outcome)
	require.Equal(t, fault.Halt, fault.Of(err))
}

// F096, F098, O8: a commit changes the fields it owns and keeps every other byte,
// the retention of refs and what nobody knows included.
func TestF096F098OnlyOwnedFieldsChange(t *testing.T) {
	for name, change := range changes {
		f := newFixture(t, 2)
		require.NoError(t, f.table.Edit(t.Context(), func(m map[string]any) {
			m["acme-top"] = map[string]any{"x": json.Number("1.50")}
			main := m["refs"].(map[string]any)["main"].(map[string]any)
			main["min-snapshots-to-keep"], main["acme-ref"] = 5, true
			first := m["snapshots"].([]any)[0].(map[string]any)
			first["acme-snapshot"] = "y"
			first["summary"].(map[string]any)["operation"] = "acme-merge"
		}))
		before, err := f.table.MetadataJSON()
		require.NoError(t, err)
		a, err := begin(t, f.fl, "r1", commit.Options{}, change)
		require.NoError(t, err)
		_, err = a.commit(t.Context())
		require.NoError(t, err)
		v, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
		require.NoError(t, err)
		owned := map[string]bool{"last-updated-ms": true, "metadata-log": true}
		if name == "property" {
			owned["properties"] = true
		} else {
			for _, k := range []string{"snapshots", "refs", "current-snapshot-id", "snapshot-log", "last-sequence-number"} {
				owned[k] = true
			}
		}
		old, now := fields(t, before), fields(t, v.Metadata.Raw())
		require.Equal(t, len(old), len(now))
		for k, raw := range old {
			if !owned[k] {
				require.Equal(t, string(raw), string(now[k]), "%s: %s", name, k)
			}
		}
		ref := v.Metadata.Refs["main"]
		require.NotNil(t, ref.MinSnapshotsToKeep)
		require.Equal(t, int64(5), *ref.MinSnapshotsToKeep)
		require.Contains(t, string(now["refs"]), "acme-ref")
		require.Contains(t, string(now["snapshots"]), "acme-snapshot")
		require.Contains(t, string(now["snapshots"]), "acme-merge")
	}
}

func fields(t *testing.T, raw []byte) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// P3: another branch has the table's last sequence number.
func TestP3SequenceNumberIsTheTables(t *testing.T) {
	f := newFixture(t, 2)
	require.NoError(t, f.table.CreateBranch(t.Context(), "dev", 0, model.Retention{}))
	r, err := f.table.Row(int64(77), "dev")
	require.NoError(t, err)
	_, err = f.table.Append(t.Context(), []model.Row{r}, model.Options{Branch: "dev"})
	require.NoError(t, err)
	a, err := begin(t, f.fl, "r1", commit.Options{}, relist)
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Committed, res.Outcome)
	f.rows()
}

// P5: the metadata file of a registered table has no number in its name.
func TestP5RegisteredTable(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	schema, err := model.ParseSchema("id long!, name string")
	require.NoError(t, err)
	tb, err := model.NewTable(t.Context(), fl, model.Config{
		ID: iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}, Schema: schema, Seed: 5, Clock: fl.Virtual(), Registered: true,
	})
	require.NoError(t, err)
	f := &fixture{t: t, fl: fl, table: tb}
	a, err := begin(t, fl, "r1", commit.Options{}, setProperty)
	require.NoError(t, err)
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Committed, res.Outcome)
	f.rows()
}

// P17: the worker's clock is an hour behind the table's last change; time never
// goes back.
func TestP17TimeNeverGoesBack(t *testing.T) {
	f := newFixture(t, 2)
	v, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
	require.NoError(t, err)
	a, err := begin(t, f.fl, "r1", commit.Options{}, relist)
	require.NoError(t, err)
	a.c = commit.New(f.fl, clock.NewVirtual(f.fl.Virtual().Now().Add(-time.Hour)), commit.Options{})
	a.st = a.c.Stage(a.run, v)
	_, err = a.commit(t.Context())
	require.NoError(t, err)
	now, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
	require.NoError(t, err)
	require.Equal(t, v.Metadata.LastUpdatedMs, now.Metadata.LastUpdatedMs)
	require.Equal(t, v.Metadata.LastUpdatedMs, now.Metadata.Current().TimestampMs)
	f.rows()
}
