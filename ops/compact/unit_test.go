package compact

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
)

// failing are tools whose n-th merge fails with err.
func failing(n int64, err error) tools {
	tl := realTools()
	var calls atomic.Int64
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if calls.Add(1) == n {
			return rewrite.Result{}, err
		}
		return rewrite.Merge(ctx, q)
	}
	return tl
}

// What a failure means to its unit and to the others (architecture, "Error
// kinds").
func TestWhatAFailingUnitCosts(t *testing.T) {
	for _, c := range []struct {
		kind           fault.Kind
		dropped, units int64
		fails          bool
	}{
		{kind: fault.Unsupported, dropped: 1, units: 1},
		{kind: fault.Stale, dropped: 1, units: 1},
		{kind: fault.TooLarge, units: 2},  // tried again with all of the memory
		{kind: fault.Transient, units: 2}, // begun again
		{kind: fault.Corrupt, fails: true},
		{kind: fault.Halt, fails: true},
		{kind: fault.Unknown, fails: true},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb, _, _ := twoRegions(t, fl, 2)
			before := fl.Files(tb.Root)
			res, err := runTools(t.Context(), fl, failing(1, fault.New(c.kind, "boom")), map[string]string{"memory_budget_mb": "1024"})
			if c.fails {
				require.Equal(t, c.kind, fault.Of(err))
				require.Equal(t, ops.Failed, res.Status)
				require.Equal(t, before, fl.Files(tb.Root), "O5: nothing staged is left")
				sound(t, fl, tb.Table)
				return
			}
			require.NoError(t, err)
			require.Equal(t, ops.Finished, res.Status)
			require.Equal(t, c.units, res.Counters["units"])
			require.Equal(t, c.dropped, res.Counters["units-dropped"])
			if c.dropped > 0 {
				require.Contains(t, cause(t, res.Reasons, c.kind.String()).Text, "boom")
			}
			sound(t, fl, tb.Table)
			tidy(t, fl, tb.Table)
		})
	}
}

func TestPanicInAUnitStopsTheOperation(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	tl := realTools()
	tl.merge = func(context.Context, rewrite.Request) (rewrite.Result, error) { panic("x") }
	res, err := runTools(t.Context(), fl, tl, nil)
	require.Equal(t, fault.Halt, fault.Of(err))
	require.Equal(t, ops.Failed, res.Status)
	sound(t, fl, tb.Table)
	tidy(t, fl, tb.Table)
}

// F023, F001: rows in less rows deleted is rows out, in the engine's counts, in
// its map and in the stored files; an engine that says otherwise commits nothing.
func TestF001F023WrongCountsCommitNothing(t *testing.T) {
	for name, lie := range map[string]func(r *rewrite.Result){
		"rows read":        func(r *rewrite.Result) { r.Proof.RowsRead++ },
		"rows deleted":     func(r *rewrite.Result) { r.Proof.RowsDeleted++; r.Proof.RowsWritten-- },
		"records":          func(r *rewrite.Result) { r.Outputs[0].Records--; r.Proof.RowsWritten-- },
		"no map":           func(r *rewrite.Result) { r.Map = nil },
		"source left out":  func(r *rewrite.Result) { r.Map.Sources = r.Map.Sources[1:] },
		"rows dropped":     func(r *rewrite.Result) { r.Map.Sources[0].Runs = r.Map.Sources[0].Runs[:0] },
		"output forgotten": func(r *rewrite.Result) { r.Outputs = nil },
		"size":             func(r *rewrite.Result) { r.Outputs[0].Bytes++ },
		"another file":     func(r *rewrite.Result) { r.Outputs[0].At += "x" },
	} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			tb, eu, _ := twoRegions(t, fl, 2)
			tb.DeleteAt(eu[0], 1)
			tl := realTools()
			tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
				r, err := rewrite.Merge(ctx, q)
				if err == nil {
					lie(&r)
				}
				return r, err
			}
			res, err := runTools(t.Context(), fl, tl, nil)
			require.Equal(t, fault.Halt, fault.Of(err), "%v", err)
			require.Equal(t, ops.Failed, res.Status)
			sound(t, fl, tb.Table)
			tidy(t, fl, tb.Table)
		})
	}
}

// A damaged output is found before it is committed.
func TestOutputsAreReadBack(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	tl := realTools()
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		r, err := rewrite.Merge(ctx, q)
		if err == nil {
			fl.LoseChunks(r.Outputs[0].At)
			fl.PutFile(r.Outputs[0].At, make([]byte, r.Outputs[0].Bytes))
		}
		return r, err
	}
	_, err := runTools(t.Context(), fl, tl, nil)
	require.Equal(t, fault.Halt, fault.Of(err))
	sound(t, fl, tb.Table)
}

// F019: vectors of several data files in one Puffin file; that of the file that
// is not rewritten stays, and the Puffin file with it.
func TestF019VectorsThatShareAFile(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 3, Spec: "region"})
	eu := small(tb, 1, 2, 4, "eu")
	us := small(tb, 100, 1, 4, "us")
	d := tb.Delete(eu[0].RowsAt(1)[0], eu[1].RowsAt(2)[0], us[0].RowsAt(3)[0])
	res := done(t, fl, nil)
	sound(t, fl, tb.Table)
	require.Equal(t, int64(2), res.Counters["delete-files-removed"])
	left := deleteFiles(tb.Table)
	require.Len(t, left, 1)
	require.Equal(t, us[0].Path, left[0].File.Referenced)
	require.Equal(t, d.Path, left[0].File.Path)
	require.True(t, fl.Exists(d.At))
}

// A run that is stopped keeps what it finished, and the next one commits it.
func TestStoppedRunIsResumed(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb, _, _ := twoRegions(t, fl, 2)
	ctx, cancel := context.WithCancel(t.Context())
	tl := realTools()
	var merges atomic.Int64
	release := make(chan struct{})
	tl.merge = func(mctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		if merges.Add(1) == 2 {
			<-release
			cancel()
			<-mctx.Done()
			return rewrite.Result{}, mctx.Err()
		}
		return rewrite.Merge(mctx, q)
	}
	go func() {
		// The other unit is whole once its journal segment is there.
		for {
			for st, err := range journal.New(fl, fl.Virtual()).List(t.Context()) {
				if err != nil {
					continue
				}
				if units, err := st.Units(t.Context()); err == nil && len(units) == 1 {
					close(release)
					return
				}
			}
		}
	}()
	res, err := runTools(ctx, fl, tl, map[string]string{"memory_budget_mb": "1024"})
	require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
	require.Equal(t, ops.Failed, res.Status)
	again, n := resumed(t, fl, tb.Table)
	require.Equal(t, int64(1), n)
	require.Equal(t, int64(1), again.Counters["units-resumed"])
}

// A record of the journal is read as any file: what does not fit is refused.
func TestRecordsThatDoNotFitAreRefused(t *testing.T) {
	good := record{
		Format: recordFormat, Base: commit.Base{Table: tableID}, Unit: Unit{ID: "u", Inputs: []Input{{Path: "p", Records: 3}}, TargetBytes: 1}, Manifests: []string{"m"},
		Outputs: []output{{Output: rewrite.Output{Stored: rewrite.Stored{At: "/buckets/b/o"}, Records: 2}}},
		Map:     stored{At: "/etc/seaice/maps/m"}, Proof: rewrite.Proof{Counts: rewrite.Counts{RowsRead: 3, RowsDeleted: 1, RowsWritten: 2}},
	}
	encode := func(r record) journal.Unit {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		return journal.Unit{ID: "u", Outputs: []filer.Path{"/buckets/b/o"}, Map: "/etc/seaice/maps/m", Payload: raw}
	}
	got, err := readRecord(encode(good))
	require.NoError(t, err)
	require.Equal(t, good, got)
	for name, spoil := range map[string]func(r *record, u *journal.Unit){
		"rows":      func(r *record, _ *journal.Unit) { r.Proof.RowsWritten = 3 },
		"inputs":    func(r *record, _ *journal.Unit) { r.Unit.Inputs[0].Records = 4 },
		"no inputs": func(r *record, _ *journal.Unit) { r.Unit.Inputs = nil },
		"manifest":  func(r *record, _ *journal.Unit) { r.Unit.Inputs[0].Manifest = 1 },
		"delete":    func(r *record, _ *journal.Unit) { r.Unit.Deletes = []Applied{{Delete: 0}} },
		"id":        func(r *record, _ *journal.Unit) { r.Unit.ID = "v" },
		"map":       func(_ *record, u *journal.Unit) { u.Map = "/etc/seaice/maps/n" },
		"outputs":   func(_ *record, u *journal.Unit) { u.Outputs = nil },
		"format":    func(r *record, _ *journal.Unit) { r.Format = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			r.Unit.Inputs = []Input{good.Unit.Inputs[0]}
			u := encode(r)
			spoil(&r, &u)
			u.Payload = encode(r).Payload
			_, err := readRecord(u)
			require.Contains(t, []fault.Kind{fault.Corrupt, fault.Unsupported}, fault.Of(err), "%v", err)
		})
	}
	_, err = readRecord(journal.Unit{ID: "u", Payload: json.RawMessage(`[]`)})
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

// Where data files go: as iceberg-go's providers say where they are right, and
// as Java's do.
func TestPlacesOfDataFiles(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	for _, c := range []struct {
		name  string
		props map[string]string
		spec  string
		file  string
		want  string // below the table's root, or absolute
	}{
		{name: "plain", file: "a.parquet", want: "data/a.parquet"},
		{name: "partitioned", spec: "region", file: "a.parquet", want: "data/region=eu%2Fw/a.parquet"},
		{name: "data path", props: map[string]string{"write.data.path": "s3://lake/elsewhere/d"}, spec: "region", file: "a.parquet", want: "/buckets/lake/elsewhere/d/region=eu%2Fw/a.parquet"},
		{name: "folder path", props: map[string]string{"write.folder-storage.path": "s3://lake/elsewhere/f"}, file: "a.parquet", want: "/buckets/lake/elsewhere/f/a.parquet"},
		// The example of Iceberg's documentation of the layout hashes the whole name.
		{name: "hashed", props: map[string]string{propObjects: "true"}, file: "test.parquet", want: "data/" + spread("test.parquet") + "/test.parquet"},
		{name: "hashed, partition in front", props: map[string]string{propObjects: "true"}, spec: "region", file: "a.parquet",
			want: "data/" + spread("region=eu%2Fw/a.parquet") + "/region=eu%2Fw/a.parquet"},
		{name: "hashed without partitions", props: map[string]string{propObjects: "TRUE", propPartitioned: "false"}, spec: "region", file: "a.parquet",
			want: "data/" + spread("a.parquet") + "-a.parquet"},
		{name: "hashed elsewhere", props: map[string]string{propObjects: "true", "write.object-storage.path": "s3://lake/shared"}, file: "a.parquet",
			want: "/buckets/lake/shared/" + spread("a.parquet") + "/ns/t/a.parquet"},
		{name: "not hashed, path unused", props: map[string]string{"write.object-storage.path": "s3://lake/shared"}, file: "a.parquet", want: "data/a.parquet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fl := fl.Fork()
			tb := model.NewScene(t, fl, model.Config{
				ID: tableID, Schema: model.Columns(t, "id long!, region string"), Spec: c.spec, Properties: c.props, Seed: 1, Location: "s3://lake/ns/t",
			})
			v, err := iceberg.Load(t.Context(), fl, tableID)
			require.NoError(t, err)
			p, err := newPlacement(v)
			require.NoError(t, err)
			pt, err := v.Metadata.PartitionType(v.Metadata.DefaultSpecID)
			require.NoError(t, err)
			tuple, err := pt.TupleAt(func(int) any { return "eu/w" })
			require.NoError(t, err)
			want := filer.Path(c.want)
			if c.want[0] != '/' {
				want = tb.Root.Join(c.want)
			}
			require.Equal(t, want, p.file(pt, tuple, c.file))
		})
	}
	_, err := newPlacement(foreign(t))
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

func foreign(t *testing.T) *iceberg.View {
	fl := filertest.New(filertest.Options{})
	scene(t, fl, model.Config{Properties: map[string]string{"write.data.path": "s3://other/d"}})
	v, err := iceberg.Load(t.Context(), fl, tableID)
	require.NoError(t, err)
	return v
}

// The hash is the one of iceberg-go's provider, for any name.
func TestHashedDirectoriesAreIcebergs(t *testing.T) {
	p, err := icetable.LoadLocationProvider("s3://b/t", map[string]string{propObjects: "true"})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_=.-]{1,40}x`).Draw(t, "name")
		require.Equal(t, p.NewDataLocation(name), "s3://b/t/data/"+spread(name)+"/"+name)
	})
	// What Java's provider makes of these names.
	for name, want := range map[string]string{
		"a": "0101/0110/1001/10110010", "b": "1110/0111/1110/00000011", "c": "0010/1101/0110/01011111", "d": "1001/0001/0100/01110011",
	} {
		require.Equal(t, want, spread(name))
	}
}
