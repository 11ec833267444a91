package iceberg_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaweedfs/seaweedfs/weed/util/wildcard"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

func walk(t *testing.T, r filer.Reader, f iceberg.Filter) []string {
	t.Helper()
	var out []string
	for found, err := range iceberg.Discover(t.Context(), r, f) {
		require.NoError(t, err)
		out = append(out, found.ID.String()+" "+found.State.String())
	}
	return out
}

// zoo has every kind of record there is.
func zoo() *filertest.Filer {
	f := world()
	f.Mkdir("/buckets/plain/ns/t", map[string][]byte{iceberg.AttrMetadata: []byte(`{}`)}) // no table bucket
	bucket(f, "lake2")
	namespace(f, "lake2", "ns")
	add := func(bucket, ns, name string, set map[string][]byte) {
		id := iceberg.TableID{Bucket: bucket, Namespace: ns, Name: name}
		putTable(f, id, eventsV7, nil)
		f.SetAttributes(mustPath(id), set)
	}
	add("lake", "sales.daily", "events", nil)
	add("lake", "sales.daily", "a-view", map[string][]byte{iceberg.AttrEntryType: []byte("view")})
	add("lake", "sales.daily", "broken", map[string][]byte{iceberg.AttrMetadata: []byte(`{"metadataVersion":"x"}`)})
	add("lake", "sales.daily", "deleting", map[string][]byte{iceberg.AttrDeleting: []byte("delete")})
	add("lake", "sales.daily", "renaming", map[string][]byte{iceberg.AttrDeleting: []byte("rename")})
	add("lake", "sales.daily", "creating", map[string][]byte{iceberg.AttrDeleting: []byte("create")})
	add("lake", "sales.daily", "moving", map[string][]byte{iceberg.AttrMoving: []byte(`{}`)})
	add("lake", "sales.daily", "lance", map[string][]byte{iceberg.AttrMetadata: []byte(`{"format":"LANCE"}`)})
	add("lake", "sales.daily", "fresh", map[string][]byte{iceberg.AttrMetadata: []byte(`{"format":"ICEBERG"}`)})
	f.Mkdir("/buckets/lake/sales.daily/events-u/data", nil) // a data directory
	f.PutFile("/buckets/lake/sales.daily/file", nil)
	f.PutFile("/buckets/lake/a-file", nil)
	add("lake", "gone", "left", nil)                  // no namespace
	add("lake", ".seaice-trash", "t", nil)            // not the catalog's
	add("lake2", "ns", "events", nil)                 // another bucket
	f.Mkdir("/buckets/lake/young", map[string][]byte{ // a namespace being created
		iceberg.AttrMetadata: []byte(`{}`), iceberg.AttrDeleting: []byte("create")})
	add("lake", "young", "t", nil)
	return f
}

var zooRecords = []string{
	"lake/gone/left hidden", "lake/sales.daily/a-view view", "lake/sales.daily/broken broken", "lake/sales.daily/creating creating",
	"lake/sales.daily/deleting deleting", "lake/sales.daily/events table", "lake/sales.daily/fresh empty", "lake/sales.daily/lance foreign",
	"lake/sales.daily/moving moving", "lake/sales.daily/renaming renaming", "lake/young/t hidden", "lake2/ns/events table",
}

func TestDiscoverFindsEveryRecord(t *testing.T) {
	f := zoo()
	require.Equal(t, zooRecords, walk(t, f, iceberg.Filter{}))
	for found, err := range iceberg.Discover(t.Context(), f, iceberg.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, mustPath(found.ID), found.Path)
		require.Equal(t, found.Path, found.Entry.Path)
		require.Equal(t, found.ID.Bucket, found.Bucket.Path.Name())
		if found.State == iceberg.StateTable {
			require.NoError(t, found.Maintainable())
		} else {
			require.Error(t, found.Maintainable())
		}
		require.Equal(t, found.State == iceberg.StateBroken, found.Record == nil)
	}
}

func TestDiscoverFilters(t *testing.T) {
	f := zoo()
	for _, c := range []struct{ bucket, ns, table, want string }{
		{"lake2", "", "", "[lake2/ns/events table]"},
		{"lake*", "", "eve*,x", "[lake/sales.daily/events table lake2/ns/events table]"},
		{"", " sales.? , sales.daily", "*in?", "[lake/sales.daily/creating creating lake/sales.daily/deleting deleting lake/sales.daily/moving moving lake/sales.daily/renaming renaming]"},
		{"none", "", "", "[]"},
		{"", "none", "", "[]"},
		{"", "", "LANCE", "[]"},
	} {
		got := walk(t, f, iceberg.Filter{Buckets: iceberg.ParsePatterns(c.bucket), Namespaces: iceberg.ParsePatterns(c.ns), Tables: iceberg.ParsePatterns(c.table)})
		require.Equal(t, c.want, fmt.Sprint(got))
	}
}

func TestDiscoverResumesAnywhere(t *testing.T) {
	f := zoo()
	var ids []iceberg.TableID
	for found, err := range iceberg.Discover(t.Context(), f, iceberg.Filter{}) {
		require.NoError(t, err)
		ids = append(ids, found.ID)
	}
	for i, id := range ids {
		require.Equal(t, zooRecords[i+1:], append([]string{}, walk(t, f, iceberg.Filter{After: id})...), id)
	}
	gone := iceberg.TableID{Bucket: "lake", Namespace: "sales.daily", Name: "f"}
	require.Equal(t, zooRecords[6:], walk(t, f, iceberg.Filter{After: gone}))
	require.Equal(t, zooRecords[10:], walk(t, f, iceberg.Filter{After: iceberg.TableID{Bucket: "lake", Namespace: "sales.daily2", Name: "f"}}))
	require.Equal(t, zooRecords[11:], walk(t, f, iceberg.Filter{After: iceberg.TableID{Bucket: "lake1", Namespace: "a", Name: "f"}}))
	require.Equal(t, zooRecords, walk(t, f, iceberg.Filter{After: iceberg.TableID{Bucket: "lake"}}))
	for _, err := range iceberg.Discover(t.Context(), f, iceberg.Filter{After: iceberg.TableID{Bucket: "../x"}}) {
		requireKind(t, fault.Unsupported, err)
	}
}

func TestDiscoverStopsWhenTold(t *testing.T) {
	f := zoo()
	for i := range zooRecords {
		n := 0
		for _, err := range iceberg.Discover(t.Context(), f, iceberg.Filter{}) {
			require.NoError(t, err)
			if n++; n > i {
				break
			}
		}
		require.Equal(t, i+1, n)
	}
}

func TestDiscoverPassesWhatCannotBeListed(t *testing.T) {
	f := zoo()
	total := len(walk(t, f, iceberg.Filter{}))
	calls := f.Count()
	require.Greater(t, calls, 5)
	for k := range calls {
		g := f.Reopen()
		g.Fail(filertest.Fault{Call: k + 1})
		errs, found := 0, 0
		for _, err := range iceberg.Discover(t.Context(), g, iceberg.Filter{}) {
			if err != nil {
				require.Equal(t, fault.Transient, fault.Of(err))
				errs++
				continue
			}
			found++
		}
		require.Equal(t, 1, errs)
		require.Less(t, found, total)
	}
}

func TestPatternsMatchLikeTheBuiltInWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?, ]{0,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "name")
		want := wildcard.MatchesAnyWildcard(wildcard.CompileWildcardMatchers(pattern), name)
		require.Equal(t, want, iceberg.ParsePatterns(pattern).Match(name))
	})
}
