package journal_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
)

const (
	uuid = "0f4c8a52-6c0e-4c6f-9d2e-3f1d3c0b7a11"
	root = filer.Path("/buckets/lake/sales/orders-" + uuid)
)

func options(run string) journal.Options {
	return journal.Options{
		Table: iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}, UUID: uuid,
		Op: "compact", Run: run, PlanDigest: "d1", Base: "s3://lake/sales/orders/metadata/v1.metadata.json", Lease: 10 * time.Minute,
	}
}

func store(f *filertest.Filer) *journal.Store { return journal.New(f, f.Virtual()) }

func open(t testing.TB, f *filertest.Filer, run string) *journal.Run {
	t.Helper()
	r, err := store(f).Open(t.Context(), options(run))
	require.NoError(t, err)
	return r
}

// name is a data file that run may stage.
func name(r *journal.Run, i int) filer.Path {
	return root.Join("data", fmt.Sprintf("%05d-%s.parquet", i, r.Token()))
}

func load(t testing.TB, f *filertest.Filer, run string) *journal.State {
	t.Helper()
	st, err := store(f).Load(t.Context(), uuid, run)
	require.NoError(t, err)
	return st
}

func staged(t testing.TB, st *journal.State) []filer.Path {
	t.Helper()
	var out []filer.Path
	for p, err := range st.Staged(t.Context()) {
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

func removals(t testing.TB, st *journal.State) []journal.Removal {
	t.Helper()
	var out []journal.Removal
	for rm, err := range st.Removals(t.Context()) {
		require.NoError(t, err)
		out = append(out, rm)
	}
	return out
}

func is(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.Of(err), "kind of %v", err)
}

func TestRunIsReadBackWhole(t *testing.T) {
	f := filertest.New(filertest.Options{})
	ctx := t.Context()
	r := open(t, f, "run-1")
	out, mp := name(r, 1), journal.Maps.Join(uuid, "m-"+r.Token())
	require.NoError(t, r.Record(ctx, out, name(r, 2), mp))
	require.NoError(t, r.Record(ctx, name(r, 2), name(r, 3)))
	unit := journal.Unit{ID: "u1", Outputs: []filer.Path{out}, Map: mp, Payload: journal.Raw(`{"rows":5}`)}
	require.NoError(t, r.Finish(ctx, journal.Unit{ID: "u0"}))
	require.NoError(t, r.Finish(ctx, journal.Unit{ID: "u1"}))
	require.NoError(t, r.Finish(ctx, unit))
	f.Virtual().Advance(time.Minute)
	at := f.Virtual().Now()
	require.NoError(t, r.Decide(ctx, journal.Decision{SnapshotID: 7, MetadataLocation: "s3://lake/a"}))
	require.NoError(t, r.Decide(ctx, journal.Decision{SnapshotID: 8, MetadataLocation: "s3://lake/b"}))
	require.NoError(t, r.Decide(ctx, journal.Decision{SnapshotID: 8, MetadataLocation: "s3://lake/b"}))
	purge := at.Add(240 * time.Hour)
	rm := journal.Removal{
		File: journal.File{Path: root.Join("data/old.parquet"), Identity: "1-2.3-4", Reason: "expired"},
		To:   "/buckets/lake/.seaice-trash/run-1/x", PurgeAfter: purge, Move: "m1",
	}
	require.NoError(t, r.Removals(ctx, rm))
	require.NoError(t, r.Result(ctx, journal.Raw(`{"files":1}`)))
	require.NoError(t, r.Check(ctx))

	st := load(t, f, "run-1")
	require.Equal(t, "run-1", st.Run())
	require.Equal(t, r.Token(), st.Token())
	require.Equal(t, uuid, st.UUID())
	require.Equal(t, "lake/sales/orders", st.Table().String())
	require.Equal(t, "compact", st.Op())
	require.Equal(t, "d1", st.PlanDigest())
	require.Equal(t, "s3://lake/sales/orders/metadata/v1.metadata.json", st.Base())
	require.Equal(t, journal.Open, st.Phase())
	require.True(t, st.Live())
	require.WithinDuration(t, at.Add(10*time.Minute), st.Expires(), time.Millisecond, "deciding renews the lease")
	require.False(t, st.Expired(st.Expires().Add(-1)))
	require.True(t, st.Expired(st.Expires()))
	require.Empty(t, cmp.Diff([]journal.Decision{
		{SnapshotID: 7, MetadataLocation: "s3://lake/a", At: at}, {SnapshotID: 8, MetadataLocation: "s3://lake/b", At: at},
	}, st.Decisions(), cmpopts.EquateApproxTime(time.Millisecond)))
	require.Equal(t, []filer.Path{out, name(r, 2), mp, name(r, 3)}, staged(t, st))
	require.Empty(t, cmp.Diff([]journal.Removal{rm}, removals(t, st)))
	units, err := st.Units(ctx)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]journal.Unit{{ID: "u0"}, unit}, units))
	res, err := st.Result(ctx)
	require.NoError(t, err)
	require.JSONEq(t, `{"files":1}`, string(res))

	require.NoError(t, r.Close(ctx, journal.Committed))
	require.NoError(t, r.Close(ctx, journal.Committed), "closing again is the same")
	is(t, r.Close(ctx, journal.Refused), fault.Stale)
	st = load(t, f, "run-1")
	require.Equal(t, journal.Closed, st.Phase())
	require.Equal(t, journal.Committed, st.Outcome())
	require.WithinDuration(t, at, st.Closed(), time.Millisecond)
	require.False(t, st.Live())
	is(t, r.Check(ctx), fault.Stale)
	is(t, r.Record(ctx, name(r, 9)), fault.Stale)
	is(t, r.Decide(ctx, journal.Decision{MetadataLocation: "s3://lake/c"}), fault.Stale)
	require.Len(t, staged(t, load(t, f, "run-1")), 4)
}

func TestOpenRefuses(t *testing.T) {
	for what, change := range map[string]func(*journal.Options){
		"uuid with a slash": func(o *journal.Options) { o.UUID = "a/../b" },
		"no uuid":           func(o *journal.Options) { o.UUID = "" },
		"run with a dot":    func(o *journal.Options) { o.Run = "a.1" },
		"run with a slash":  func(o *journal.Options) { o.Run = "a/b" },
		"no run":            func(o *journal.Options) { o.Run = "" },
		"no operation":      func(o *journal.Options) { o.Op = "" },
		"no lease":          func(o *journal.Options) { o.Lease = 0 },
		"no table":          func(o *journal.Options) { o.Table = iceberg.TableID{} },
	} {
		f := filertest.New(filertest.Options{})
		o := options("r")
		change(&o)
		_, err := store(f).Open(t.Context(), o)
		require.Error(t, err, what)
		require.Equal(t, fault.Unsupported, fault.Of(err), what)
		require.Empty(t, f.Files("/etc"), what)
	}
	f := filertest.New(filertest.Options{Capabilities: &filer.Capabilities{}})
	_, err := store(f).Open(t.Context(), options("r"))
	is(t, err, fault.Unsupported)
	require.Empty(t, f.Files("/etc"))

	f = filertest.New(filertest.Options{})
	o := options("r")
	o.UUID = strings.ToUpper(uuid)
	r, err := store(f).Open(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, uuid, r.UUID())
}

// F119: of several runs that want one name exactly one gets it, and the others
// leave its entry alone.
func TestF119OneRunOfAName(t *testing.T) {
	f := filertest.New(filertest.Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var won []*journal.Run
	for range 6 {
		wg.Go(func() {
			r, err := store(f).Open(t.Context(), options("r"))
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, r)
				return
			}
			if fault.Of(err) != fault.Stale {
				t.Errorf("loser: %v", err)
			}
		})
	}
	wg.Wait()
	require.Len(t, won, 1)
	require.Equal(t, won[0].Token(), load(t, f, "r").Token())
	require.NoError(t, won[0].Check(t.Context()))
}

func TestRecordRefusesForeignNames(t *testing.T) {
	f := filertest.New(filertest.Options{})
	r := open(t, f, "r")
	tok := r.Token()
	for what, p := range map[string]filer.Path{
		"no token":               root.Join("data/a.parquet"),
		"token in the directory": root.Join(tok, "a.parquet"),
		"another bucket":         filer.Path("/buckets/other/x/" + tok),
		"no bucket":              filer.Path("/tmp/" + tok),
		"home but no map":        filer.Path("/etc/seaice/index/" + tok),
		"not clean":              filer.Path("/buckets/lake/../other/" + tok),
		"relative":               filer.Path("data/" + tok),
	} {
		is(t, r.Record(t.Context(), name(r, 1), p), fault.Unsupported)
		require.Empty(t, staged(t, load(t, f, "r")), what)
	}
	is(t, r.Finish(t.Context(), journal.Unit{ID: "u", Outputs: []filer.Path{name(r, 1)}}), fault.Unsupported)
	is(t, r.Finish(t.Context(), journal.Unit{}), fault.Unsupported)
	is(t, r.Removals(t.Context(), journal.Removal{File: journal.File{Path: "/buckets/other/f", Identity: "i"}, To: "/buckets/lake/t", PurgeAfter: filertest.Epoch}), fault.Unsupported)
	is(t, r.Close(t.Context(), journal.NoOutcome), fault.Unknown)
	is(t, r.Close(t.Context(), journal.Adopted), fault.Unknown)
	require.NoError(t, r.Check(t.Context()))
}

// A hundred thousand names cost a hundred small entries, each read by the
// listing itself.
func TestJournalScales(t *testing.T) {
	f := filertest.New(filertest.Options{})
	r := open(t, f, "r")
	const n = 100_000
	names := make([]filer.Path, n)
	for i := range names {
		names[i] = name(r, i)
	}
	before := f.Count()
	require.NoError(t, r.Record(t.Context(), names...))
	require.Less(t, f.Count()-before, 300)
	before = f.Count()
	require.Equal(t, names, staged(t, load(t, f, "r")))
	require.Less(t, f.Count()-before, 5)
	for _, p := range f.Files(journal.Root) {
		e, err := f.Stat(t.Context(), p)
		require.NoError(t, err)
		require.Less(t, e.Size, int64(filer.InlineLimit))
	}
}

func TestRunIsUsedByManyGoroutines(t *testing.T) {
	f := filertest.New(filertest.Options{})
	r := open(t, f, "r")
	var wg sync.WaitGroup
	want := make([]filer.Path, 40)
	for i := range want {
		want[i] = name(r, i)
		wg.Go(func() {
			for _, err := range []error{
				r.Record(t.Context(), want[i]), r.Renew(t.Context()), r.Finish(t.Context(), journal.Unit{ID: fmt.Sprint(i), Outputs: want[i : i+1]}), r.Check(t.Context()),
			} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	st := load(t, f, "r")
	got := staged(t, st)
	slices.Sort(got)
	require.Equal(t, want, got)
	units, err := st.Units(t.Context())
	require.NoError(t, err)
	require.Len(t, units, len(want))
}

func TestCheckIsTheFence(t *testing.T) {
	for what, c := range map[string]struct {
		then func(t *testing.T, f *filertest.Filer, r *journal.Run)
		kind fault.Kind
	}{
		"at once":        {func(*testing.T, *filertest.Filer, *journal.Run) {}, fault.None},
		"just in time":   {func(_ *testing.T, f *filertest.Filer, _ *journal.Run) { f.Virtual().Advance(10*time.Minute - 1) }, fault.None},
		"lease over":     {func(_ *testing.T, f *filertest.Filer, _ *journal.Run) { f.Virtual().Advance(10 * time.Minute) }, fault.Stale},
		"lease released": {func(t *testing.T, _ *filertest.Filer, r *journal.Run) { require.NoError(t, r.Release(t.Context())) }, fault.Stale},
		"renewed late": {func(t *testing.T, f *filertest.Filer, r *journal.Run) {
			f.Virtual().Advance(time.Hour)
			require.NoError(t, r.Renew(t.Context()))
			f.Virtual().Advance(9 * time.Minute)
		}, fault.None},
		"revoked": {func(t *testing.T, f *filertest.Filer, _ *journal.Run) {
			f.Virtual().Advance(time.Hour)
			require.NoError(t, store(f).Revoke(t.Context(), load(t, f, "r")))
		}, fault.Stale},
		"entry gone":    {func(_ *testing.T, f *filertest.Filer, r *journal.Run) { f.RemoveAll(r.Path()) }, fault.Stale},
		"entry damaged": {func(_ *testing.T, f *filertest.Filer, r *journal.Run) { f.PutFile(r.Path(), []byte("{")) }, fault.Corrupt},
		"entry of another": {func(t *testing.T, f *filertest.Filer, r *journal.Run) {
			f.RemoveAll(r.Path())
			open(t, f, "r")
		}, fault.Stale},
	} {
		t.Run(what, func(t *testing.T) {
			f := filertest.New(filertest.Options{})
			r := open(t, f, "r")
			c.then(t, f, r)
			err := r.Check(t.Context())
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
		})
	}
}

func TestRevokeWaitsForTheFilersClock(t *testing.T) {
	f := filertest.New(filertest.Options{Skew: 4 * time.Minute})
	r := open(t, f, "r")
	f.Virtual().Advance(10*time.Minute - 1)
	is(t, store(f).Revoke(t.Context(), load(t, f, "r")), fault.Stale)
	require.NoError(t, r.Check(t.Context()))
	f.Virtual().Advance(1)
	require.NoError(t, store(f).Revoke(t.Context(), load(t, f, "r")))
	require.NoError(t, store(f).Revoke(t.Context(), load(t, f, "r")), "revoking again is the same")
	require.Equal(t, journal.Revoked, load(t, f, "r").Phase())
	is(t, r.Renew(t.Context()), fault.Stale)
	is(t, r.Decide(t.Context(), journal.Decision{}), fault.Stale)
	is(t, r.Close(t.Context(), journal.Committed), fault.Stale)

	for _, skew := range []time.Duration{6 * time.Minute, -6 * time.Minute} {
		f := filertest.New(filertest.Options{Skew: skew})
		r := open(t, f, "r")
		f.Virtual().Advance(time.Hour)
		is(t, store(f).Revoke(t.Context(), load(t, f, "r")), fault.Halt)
		require.NoError(t, r.Renew(t.Context()), "the owner goes by the filer's clock alone")
	}
}

func TestListsFindEveryJournal(t *testing.T) {
	f := filertest.New(filertest.Options{})
	a, b := open(t, f, "a"), open(t, f, "b")
	o := options("c")
	o.UUID = "11111111-2222-3333-4444-555555555555"
	_, err := store(f).Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, a.Record(t.Context(), name(a, 1)))
	require.NoError(t, b.Close(t.Context(), journal.Refused))
	f.PutFile(journal.Root.Join("README"), []byte("x"))
	f.Mkdir(journal.Root.Join("Not A Table"), nil)

	collect := func(seq func(func(*journal.State, error) bool)) []string {
		var out []string
		for st, err := range seq {
			if err != nil {
				out = append(out, fault.Of(err).String()+" "+err.Error())
				continue
			}
			out = append(out, st.Run()+" "+string(st.Phase()))
		}
		return out
	}
	require.Equal(t, []string{"a open", "b closed", "c open"}, collect(store(f).List(t.Context())))
	require.Equal(t, []string{"a open"}, collect(store(f).OpenRuns(t.Context(), strings.ToUpper(uuid))))
	st, err := store(f).Find(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, o.UUID, st.UUID())
	_, err = store(f).Find(t.Context(), "d")
	is(t, err, fault.Stale)
	require.ErrorIs(t, err, filer.ErrNotFound)
	_, err = store(f).Load(t.Context(), uuid, "d")
	require.ErrorIs(t, err, filer.ErrNotFound)
	_, err = store(f).Load(t.Context(), uuid, "../x")
	is(t, err, fault.Unsupported)

	f.PutFile(journal.Root.Join(uuid, "d.json"), []byte("{"))
	got := collect(store(f).List(t.Context()))
	require.Len(t, got, 4)
	require.Contains(t, got[2], "corrupt")
	require.Contains(t, got[2], uuid+"/d.json")
	require.Equal(t, "c open", got[3], "the listing goes on")
	require.Contains(t, collect(store(f).OpenRuns(t.Context(), uuid))[1], "d.json", "damage counts as open")
}

// Whatever happens to the bytes of a journal, it is named as damaged (or as of
// a newer format), and nothing touches it.
func TestDamageIsReportedAndLeftAlone(t *testing.T) {
	var f *filertest.Filer
	var r *journal.Run
	seg := func(n int) filer.Path { return journal.Root.Join(uuid, "segments", fmt.Sprintf("r.%08d", n)) }
	edit := func(p filer.Path, fn func(m map[string]any)) {
		e, err := f.Stat(t.Context(), p)
		require.NoError(t, err)
		m := map[string]any{}
		require.NoError(t, json.Unmarshal(f.Content(p), &m))
		fn(m)
		b, err := json.Marshal(m)
		require.NoError(t, err)
		f.PutFile(p, b)
		f.SetAttributes(p, e.Extended)
	}
	for what, c := range map[string]struct {
		damage func()
		kind   fault.Kind
	}{
		"head empty":             {func() { f.PutFile(r.Path(), nil) }, fault.Corrupt},
		"head cut":               {func() { b := f.Content(r.Path()); f.PutFile(r.Path(), b[:len(b)-2]) }, fault.Corrupt},
		"head altered":           {func() { edit(r.Path(), func(m map[string]any) { m["op"] = "expire_snapshots" }) }, fault.Corrupt},
		"head without stamp":     {func() { f.SetAttributes(r.Path(), map[string][]byte{"seaice.journal.stamp": nil}) }, fault.Corrupt},
		"head with a bad stamp":  {func() { f.SetAttributes(r.Path(), map[string][]byte{"seaice.journal.stamp": []byte("x-y-z")}) }, fault.Corrupt},
		"head huge":              {func() { f.PutFile(r.Path(), make([]byte, 1<<20)) }, fault.Corrupt},
		"head newer":             {func() { edit(r.Path(), func(m map[string]any) { m["format"] = 2 }) }, fault.Unsupported},
		"head of format 0":       {func() { edit(r.Path(), func(m map[string]any) { m["format"] = 0 }) }, fault.Corrupt},
		"head is a directory":    {func() { f.RemoveAll(r.Path()); f.Mkdir(r.Path(), nil) }, fault.Corrupt},
		"segment missing":        {func() { f.RemoveAll(seg(1)) }, fault.Corrupt},
		"last segment missing":   {func() { f.RemoveAll(seg(3)) }, fault.Corrupt},
		"all segments missing":   {func() { f.RemoveAll(seg(1).Dir()) }, fault.Corrupt},
		"segment cut":            {func() { b := f.Content(seg(2)); f.PutFile(seg(2), b[:9]) }, fault.Corrupt},
		"segment altered":        {func() { edit(seg(1), func(m map[string]any) { m["names"] = []string{"/buckets/lake/x"} }) }, fault.Corrupt},
		"segment newer":          {func() { edit(seg(2), func(m map[string]any) { m["format"] = 9 }) }, fault.Unsupported},
		"segment of another run": {func() { f.Rename(seg(2), seg(5)); f.Rename(seg(1), seg(2)); f.Rename(seg(5), seg(1)) }, fault.Corrupt},
	} {
		t.Run(what, func(t *testing.T) {
			f = filertest.New(filertest.Options{})
			r = open(t, f, "r")
			f.PutFile(name(r, 1), []byte("data"))
			require.NoError(t, r.Record(t.Context(), name(r, 1)))
			require.NoError(t, r.Finish(t.Context(), journal.Unit{ID: "u", Outputs: []filer.Path{name(r, 1)}}))
			require.NoError(t, r.Record(t.Context(), name(r, 2)))
			require.NoError(t, r.Decide(t.Context(), journal.Decision{MetadataLocation: "x"}))
			c.damage()
			before := f.Dump()

			st, err := store(f).Load(t.Context(), uuid, "r")
			if err == nil {
				_, err = st.Units(t.Context())
			}
			is(t, err, c.kind)
			require.Contains(t, err.Error(), uuid, "the entry is named")
			f.Virtual().Advance(1000 * time.Hour)
			pruned, err := store(f).Prune(t.Context(), erase(f), journal.PruneOptions{})
			require.NoError(t, err)
			require.Zero(t, pruned.Removed)
			require.Empty(t, before.Changes(f.Dump()))
			if st == nil {
				return
			}
			w := newWorld(t, f)
			_, err = store(f).Resolve(t.Context(), st, w, w.trash, journal.ResolveOptions{})
			is(t, err, c.kind)
			require.Empty(t, before.Changes(f.Dump(), r.Path(), seg(1).Dir()), "no file of the table is touched")
			require.NotEqual(t, journal.Closed, load(t, f, "r").Phase())
		})
	}
}
