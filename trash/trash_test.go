package trash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

const (
	uuid  = "0f4c8a52-6c0e-4c6f-9d2e-3f1d3c0b7a11"
	root  = filer.Path("/buckets/lake/sales/orders-" + uuid)
	grace = 240 * time.Hour
)

// bed is a bucket with a table's directory, an open run and a trash.
type bed struct {
	testing.TB
	f   *filertest.Filer
	run *journal.Run
	tr  *trash.Trash
}

func newBed(t testing.TB) *bed { return bedOn(t, filertest.New(filertest.Options{}), grace) }

func bedOn(t testing.TB, f *filertest.Filer, g time.Duration) *bed {
	t.Helper()
	f.Mkdir("/buckets/lake", nil)
	r, err := journal.New(f, f.Virtual()).Open(t.Context(), optionsOf("r"))
	require.NoError(t, err)
	return &bed{TB: t, f: f, run: r, tr: newTrash(t, f, g)}
}

func newTrash(t testing.TB, f *filertest.Filer, g time.Duration) *trash.Trash {
	t.Helper()
	tr, err := trash.New(f, f.Virtual(), trash.Options{Grace: g, Concurrency: 1})
	require.NoError(t, err)
	return tr
}

func optionsOf(run string) journal.Options {
	return journal.Options{
		Table: iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}, UUID: uuid,
		Op: "expire_snapshots", Run: run, Lease: 10 * time.Minute,
	}
}

// strike fails one call of ten, by the seed and the number of the call.
func strike(seed uint64, c filertest.Call) *filertest.Fault {
	if rand.New(rand.NewPCG(seed, uint64(c.N))).IntN(10) > 0 {
		return nil
	}
	if !c.Op.Writes() {
		return &filertest.Fault{Mode: filertest.BeforeEffect}
	}
	return &filertest.Fault{Mode: filertest.Ambiguous}
}

func path(i int) filer.Path {
	return root.Join("data", fmt.Sprintf("p=%d", i%2), fmt.Sprintf("f-%d %%2F\\.parquet", i))
}

// big is content that is stored in chunks.
func big(i int) []byte { return slices.Repeat([]byte{byte(i), byte(i >> 8), 7}, filer.InlineLimit/2) }

func (b *bed) put(p filer.Path, content []byte) journal.File {
	return journal.File{Path: p, Identity: b.f.PutFile(p, content).Identity(), Reason: "expired"}
}

func inTable(p filer.Path) error {
	if !p.Within(root) {
		return fault.New(fault.Unsupported, fmt.Sprintf("%s is not the table's", p))
	}
	return nil
}

func (b *bed) remove(files ...journal.File) trash.Report {
	b.Helper()
	rep, err := b.tr.Remove(b.Context(), b.run, trash.Batch{Files: files, Allowed: inTable})
	require.NoError(b, err)
	return rep
}

func (b *bed) entry(p filer.Path) *filer.Entry {
	b.Helper()
	e, err := b.f.Reopen().Stat(b.Context(), p)
	require.NoError(b, err)
	return e
}

func (b *bed) items(s trash.Selection) []trash.Item {
	b.Helper()
	s.Bucket = "lake"
	var out []trash.Item
	for it, err := range b.tr.Select(b.Context(), s) {
		require.NoError(b, err)
		out = append(out, it)
	}
	return out
}

func outcomes(rep trash.Report) []string {
	var out []string
	for _, r := range rep.Results {
		out = append(out, r.Path.Name()+" "+string(r.Outcome))
	}
	return out
}

func is(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.Of(err), "kind of %v", err)
}

// references is a Checker over a set.
type references map[filer.Path]bool

func (r references) Referenced(_ context.Context, p filer.Path) (bool, error) { return r[p], nil }

type unreadable struct{ err error }

func (u unreadable) Referenced(context.Context, filer.Path) (bool, error) { return true, u.err }

var lake = trash.Selection{Bucket: "lake"}

func TestRemoveMovesAndRestoreBringsBack(t *testing.T) {
	b := newBed(t)
	for i, content := range [][]byte{nil, []byte("small"), big(2), big(3)} {
		b.put(path(i), content)
	}
	b.f.SetAttributes(path(1), map[string][]byte{"user": []byte("u")})
	before := b.f.Dump()
	var files []journal.File
	for i := range 3 {
		files = append(files, journal.File{Path: path(i), Identity: b.entry(path(i)).Identity(), Reason: "expired with snapshot 7"})
	}
	now := b.f.Virtual().Now()
	rep := b.remove(append(files, files[0])...)
	require.Equal(t, 3, rep.Count(trash.Moved), "a path named twice is moved once: %v", rep)
	require.EqualValues(t, 5+len(big(2)), rep.Bytes(trash.Moved))
	require.Empty(t, rep.Problems())
	require.NoError(t, rep.Err())
	require.Len(t, before.Changes(b.f.Dump(), "/buckets/lake/.seaice-trash", "/etc/seaice"), 3, "O10: nothing else changed")

	items := b.items(trash.Selection{})
	require.Len(t, items, 3)
	for i, it := range items {
		require.Equal(t, trash.Place("r", it.Origin), it.Path)
		require.Equal(t, filer.Path("/buckets/lake/.seaice-trash/r").Join(it.Origin.Rel("/buckets/lake")), it.Path)
		require.Equal(t, "r", it.Run)
		require.Equal(t, uuid, it.Table)
		require.Equal(t, "expired with snapshot 7", it.Reason)
		require.WithinDuration(t, now, it.RemovedAt, time.Second)
		require.Equal(t, it.RemovedAt.Add(grace), it.PurgeAfter)
		require.Empty(t, it.Problem)
		require.Equal(t, []byte(it.Origin), b.entry(it.Path).Extended["seaice.origin"], i)
	}
	require.Equal(t, []byte("u"), b.entry(trash.Place("r", path(1))).Extended["user"])
	require.Len(t, b.items(trash.Selection{Run: "r", Table: strings.ToUpper(uuid), Paths: []filer.Path{root.Join("data/p=1")}}), 1)
	require.Empty(t, b.items(trash.Selection{Run: "other"}))
	require.Empty(t, b.items(trash.Selection{Table: "x"}))

	rep, err := b.tr.Restore(t.Context(), trash.Selection{Bucket: "lake", Paths: []filer.Path{path(0), trash.Place("r", path(2))}})
	require.NoError(t, err)
	require.Equal(t, 2, rep.Count(trash.Restored))
	rep, err = b.tr.RestoreRun(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, 1, rep.Count(trash.Restored))
	require.Equal(t, 2, rep.Count(trash.Present))
	require.Empty(t, b.items(trash.Selection{}))
	require.Empty(t, before.Changes(b.f.Dump(), "/buckets/lake/.seaice-trash", "/etc/seaice"), "all is as before, attributes too")
	require.Equal(t, big(2), b.f.Content(path(2)))
}

// Every removal is journalled, with its path, reason and purge time, before the
// first file moves.
func TestRemovalsAreJournalledFirst(t *testing.T) {
	b := newBed(t)
	files := []journal.File{b.put(path(1), big(1)), b.put(path(2), nil)}
	moves := 0
	b.f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpMove {
			moves++
			st, err := journal.New(b.f.Reopen(), b.f.Virtual()).Find(t.Context(), "r")
			require.NoError(t, err)
			var got []journal.File
			for rm, err := range st.Removals(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, trash.Place("r", rm.Path), rm.To)
				require.WithinDuration(t, b.f.Virtual().Now().Add(grace), rm.PurgeAfter, time.Minute)
				got = append(got, rm.File)
			}
			require.Equal(t, files, got)
		}
		return nil
	})
	b.remove(files...)
	require.Equal(t, 2, moves)

	// A run that cannot journal any more moves nothing.
	b.f.Virtual().Advance(time.Hour)
	js := journal.New(b.f.Reopen(), b.f.Virtual())
	st, err := js.Find(t.Context(), "r")
	require.NoError(t, err)
	require.NoError(t, js.Revoke(t.Context(), st))
	f := b.put(path(3), nil)
	_, err = b.tr.Remove(t.Context(), b.run, trash.Batch{Files: []journal.File{f}, Allowed: inTable})
	is(t, err, fault.Stale)
	require.True(t, b.f.Exists(path(3)))
}

func TestRemoveRefuses(t *testing.T) {
	odd := root.Join("data/odd.parquet")
	attr := func(name, value string) func(b *bed) {
		return func(b *bed) { b.f.SetAttributes(odd, map[string][]byte{name: []byte(value)}) }
	}
	for what, c := range map[string]struct {
		make func(b *bed)
		path filer.Path
		want trash.Outcome
	}{
		"a directory":               {func(b *bed) { b.f.Mkdir(root.Join("data/dir"), nil) }, root.Join("data/dir"), trash.Refused},
		"an empty directory (F138)": {func(b *bed) { b.f.RemoveAll(odd); b.f.Mkdir(odd, nil) }, odd, trash.Refused},
		"a version tree":            {func(b *bed) { b.f.PutVersions(odd, []byte("1")) }, odd + ".versions", trash.Refused},
		"a version":                 {func(b *bed) { b.f.PutVersions(odd, []byte("1")) }, (odd + ".versions").Join("v_0000000000000001"), trash.Refused},
		"SSE chunks":                {func(b *bed) { b.f.MarkEncrypted(odd, filer_pb.SSEType_SSE_KMS) }, odd, trash.Refused},
		"SSE inline":                {attr("x-seaweedfs-sse-c-iv", "iv"), odd, trash.Refused},
		"remote":                    {func(b *bed) { b.f.RemoveAll(odd); b.f.PutRemote(odd, 5, []byte("there")) }, odd, trash.Refused},
		"object lock":               {attr("Seaweed-X-Amz-Object-Lock-Mode", "GOVERNANCE"), odd, trash.Refused},
		"retention":                 {attr("Seaweed-X-Amz-Retention-Until-Date", "1"), odd, trash.Refused},
		"legal hold":                {attr("Seaweed-X-Amz-Legal-Hold", "ON"), odd, trash.Refused},
		"legal hold off":            {attr("Seaweed-X-Amz-Legal-Hold", "OFF"), odd, trash.Moved},
		"write once": {func(b *bed) {
			pb := b.entry(odd).PB
			pb.WormEnforcedAtTsNs = 1
			b.f.SetEntry(odd.Dir(), pb)
		}, odd, trash.Refused},
		"hard link": {func(b *bed) {
			pb := b.entry(odd).PB
			pb.HardLinkId, pb.HardLinkCounter = []byte{1}, 2
			b.f.SetEntry(odd.Dir(), pb)
		}, odd, trash.Refused},
		"not the table's":   {func(b *bed) { b.put("/buckets/lake/other/f", nil) }, "/buckets/lake/other/f", trash.Refused},
		"another bucket":    {func(b *bed) { b.put("/buckets/other/f", nil) }, "/buckets/other/f", trash.Refused},
		"no bucket":         {func(b *bed) { b.put("/etc/f", nil) }, "/etc/f", trash.Refused},
		"the bucket":        {func(*bed) {}, "/buckets/lake", trash.Refused},
		"the trash":         {func(b *bed) { b.put("/buckets/lake/.seaice-trash/x/f", nil) }, "/buckets/lake/.seaice-trash/x/f", trash.Refused},
		"an upload":         {func(b *bed) { b.put("/buckets/lake/.uploads/x/f", nil) }, "/buckets/lake/.uploads/x/f", trash.Refused},
		"no clean path":     {func(*bed) {}, root.Join("data") + "/../data/odd.parquet", trash.Refused},
		"written again":     {func(b *bed) { b.put(odd, []byte("newer")) }, odd, trash.Stale},
		"gone":              {func(b *bed) { b.f.RemoveAll(odd) }, odd, trash.Gone},
		"place taken":       {func(b *bed) { b.put(trash.Place("r", odd), []byte("else")) }, odd, trash.Conflict},
		"attributes change": {attr("user", "u"), odd, trash.Moved},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			id := b.put(odd, big(1)).Identity
			c.make(b)
			f := journal.File{Path: c.path, Identity: id, Reason: "x"}
			if e, err := b.f.Stat(t.Context(), c.path); err == nil && c.want != trash.Stale {
				f.Identity = e.Identity()
			}
			// Ownership is judged after the fixed rules, which hold for any table.
			allowed := func(p filer.Path) error {
				if strings.HasPrefix(what, "not the table's") {
					return inTable(p)
				}
				return nil
			}
			before := b.f.Dump()
			rep, err := b.tr.Remove(t.Context(), b.run, trash.Batch{Files: []journal.File{f}, Allowed: allowed})
			require.NoError(t, err)
			require.Len(t, rep.Results, 1)
			got := rep.Results[0]
			require.Equal(t, c.want, got.Outcome, got.Detail)
			if c.want == trash.Moved || c.want == trash.Gone {
				return
			}
			require.NotEmpty(t, got.Detail)
			require.Len(t, rep.Problems(), 1)
			require.NoError(t, rep.Err(), "nothing to try again")
			require.Empty(t, before.Changes(b.f.Dump(), "/etc/seaice"))
		})
	}
}

func TestRemoveRefusesTheWholeBatch(t *testing.T) {
	for what, c := range map[string]struct {
		make func(b *bed, batch *trash.Batch)
		kind fault.Kind
	}{
		"nobody owns": {func(_ *bed, batch *trash.Batch) { batch.Allowed = nil }, fault.Halt},
		"bucket lock": {func(b *bed, _ *trash.Batch) {
			b.f.Mkdir("/buckets/lake", map[string][]byte{"Seaweed-X-Amz-Object-Lock-Enabled": []byte("Enabled")})
		}, fault.Unsupported},
		"default lock": {func(b *bed, _ *trash.Batch) {
			b.f.Mkdir("/buckets/lake", map[string][]byte{"Lock-Default-Mode": []byte("COMPLIANCE")})
		}, fault.Unsupported},
		"run closed": {func(b *bed, _ *trash.Batch) { require.NoError(b, b.run.Close(b.Context(), journal.Refused)) }, fault.Stale},
		"clock untrusted": {func(b *bed, _ *trash.Batch) {
			var err error
			fast := filertest.New(filertest.Options{}).Virtual()
			fast.Advance(time.Hour)
			b.tr, err = trash.New(b.f, fast, trash.Options{Grace: grace})
			require.NoError(b, err)
		}, fault.Halt},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			batch := trash.Batch{Files: []journal.File{b.put(path(1), nil)}, Allowed: inTable}
			c.make(b, &batch)
			_, err := b.tr.Remove(t.Context(), b.run, batch)
			is(t, err, c.kind)
			require.True(t, b.f.Exists(path(1)))
			require.Empty(t, b.items(trash.Selection{}))
		})
	}
	b := newBed(t)
	rep := b.remove(journal.File{Path: path(1), Reason: "no identity"})
	require.Equal(t, 1, rep.Count(trash.Refused))
	for _, o := range []trash.Options{{Grace: -1}, {Concurrency: -1}, {Concurrency: 1000}} {
		_, err := trash.New(b.f, b.f.Virtual(), o)
		is(t, err, fault.Unsupported)
	}
}

// F138: results come file by file, one that fails does not keep the others, and
// nothing is sent over and over.
func TestF138ResultsPerPath(t *testing.T) {
	b := newBed(t)
	var files []journal.File
	for i := range 5 {
		files = append(files, b.put(path(i), big(i)))
	}
	moves := map[filer.Path]int{}
	b.f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op != filertest.OpMove {
			return nil
		}
		moves[c.Path]++
		switch c.Path {
		case path(1):
			return &filertest.Fault{Mode: filertest.BeforeEffect}
		case path(2):
			return &filertest.Fault{Mode: filertest.BeforeEffect, Kind: fault.Unsupported}
		case path(3):
			return &filertest.Fault{Mode: filertest.AfterEffect}
		}
		return nil
	})
	rep := b.remove(files...)
	require.Equal(t, 3, rep.Count(trash.Moved))
	require.Equal(t, 2, rep.Count(trash.Failed))
	require.Error(t, rep.Err())
	require.Len(t, rep.Problems(), 2)
	require.Equal(t, map[filer.Path]int{path(0): 1, path(1): 3, path(2): 1, path(3): 1, path(4): 1}, moves)
	for _, i := range []int{1, 2} {
		require.Equal(t, big(i), b.f.Content(path(i)))
	}
	b.f.OnCall(nil)
	require.Equal(t, []string{path(2).Name() + " moved", path(1).Name() + " moved"}, outcomes(b.remove(files[1], files[2])), "a later run tries again")
}
