package iceberg_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

const root = filer.Path("/buckets/lake/sales.daily/events-u")

func locator(t require.TestingT, fields map[string]any) *iceberg.Locator {
	set := map[string][]byte{iceberg.AttrMetadata: recordJSON("events", eventsV7, 7, nil)}
	r, err := iceberg.ParseRecord(&filer.Entry{Path: mustPath(events), IsDir: true, Extended: set})
	require.NoError(t, err)
	l, err := iceberg.NewLocator(events, r, parse(t, tableJSON(2, fields)))
	require.NoError(t, err)
	return l
}

func TestF104F105EverySpellingIsOneFile(t *testing.T) {
	l := locator(t, nil)
	for _, spelling := range []string{
		"s3://lake/sales.daily/events-u/data/a=1/f.parquet",
		"s3a://lake/sales.daily/events-u/data/a=1/f.parquet",
		"S3N://lake/sales.daily/events-u/data/a=1/f.parquet",
		"http://filer:8888/buckets/lake/sales.daily/events-u/data/a=1/f.parquet",
		"HTTPS://Filer.Example/buckets/lake/sales.daily/events-u/data/a=1/f.parquet",
		"seaweedfs://filer:8888/buckets/lake/sales.daily/events-u/data/a=1/f.parquet",
		"/buckets/lake/sales.daily/events-u/data/a=1/f.parquet",
		"//buckets/lake/sales.daily/events-u/data/a=1/f.parquet",
		"/lake/sales.daily/events-u/data/a=1/f.parquet",
		"lake/sales.daily/events-u/data/a=1/f.parquet",
		"data/a=1/f.parquet",
		"./data/a=1/f.parquet",
		"s3://lake//sales.daily/events-u///data/./a=1/f.parquet",
		"s3://lake/sales.daily/events-u/data/a%3D1/f.parquet",
	} {
		got, err := l.Candidates(spelling)
		require.NoError(t, err, spelling)
		require.Contains(t, got, root.Join("data/a=1/f.parquet"), spelling)
		if !strings.Contains(spelling, "%") {
			require.Equal(t, root.Join("data/a=1/f.parquet"), got[0], spelling)
			first, err := l.Resolve(spelling)
			require.NoError(t, err)
			require.Equal(t, got[0], first)
		}
	}
}

func TestF104WhatCannotBeToldIsRefused(t *testing.T) {
	l := locator(t, nil)
	for _, spelling := range []string{
		"", "hdfs://nn:8020/buckets/lake/x", "file:///buckets/lake/x", "gs://lake/x", "s3:/lake/x", "hdfs:/x",
		"s3://lake/../other/x", "data/../../x", "/etc/seaice/x", "/other/x", "http://s3:8333/lake/x", "http://filer", "s3://", "s3:///",
		"s3://lake/a\x00b", "/buckets", "/buckets/", "/buckets/..", "..", "s3://../x", "s3://./x/..",
	} {
		_, err := l.Candidates(spelling)
		requireKind(t, fault.Unsupported, err)
		_, err = l.Resolve(spelling)
		requireKind(t, fault.Unsupported, err)
	}
}

func TestF105FilesInOtherBuckets(t *testing.T) {
	l := locator(t, nil)
	p, err := l.Resolve("s3://other/ns/t/data/f.parquet")
	require.NoError(t, err)
	require.Equal(t, filer.Path("/buckets/other/ns/t/data/f.parquet"), p)
	require.True(t, l.Foreign(p))
	requireKind(t, fault.Unsupported, l.Readable(p), "other", "lake")
	require.False(t, l.Owned(p))
	require.NoError(t, l.Readable(root.Join("data/x")))
}

func TestF105RootIsWhereTheMetadataIs(t *testing.T) {
	l := locator(t, nil)
	require.Equal(t, root, l.Root())
	require.Equal(t, []iceberg.Root{{Kind: iceberg.RootRecord, Path: root}, {Kind: iceberg.RootWarehouse, Path: "/buckets/lake/sales.daily/events-w"}}, l.Roots())
	for location, want := range map[string]filer.Path{
		"s3://lake/sales.daily/t/metadata/x/metadata/v1.metadata.json": "/buckets/lake/sales.daily/t/metadata/x",
		"s3://lake/sales.daily/t/00000.metadata.json":                  "/buckets/lake/sales.daily/t",
		"s3://other/x/metadata/v1.metadata.json":                       "/buckets/lake/sales.daily/events-w",
		"":                                                             "/buckets/lake/sales.daily/events-w",
	} {
		set := map[string][]byte{iceberg.AttrMetadata: recordJSON("events", location, 7, nil)}
		r, err := iceberg.ParseRecord(&filer.Entry{Path: mustPath(events), Extended: set})
		require.NoError(t, err)
		l, err := iceberg.NewLocator(events, r, nil)
		require.NoError(t, err)
		require.Equal(t, want, l.Root(), location)
		require.Equal(t, want+"/metadata", l.Pointer())
	}
	bare := &iceberg.Record{Path: mustPath(events)}
	l, err := iceberg.NewLocator(events, bare, nil)
	require.NoError(t, err)
	require.Equal(t, mustPath(events), l.Root())
	_, err = iceberg.NewLocator(events, &iceberg.Record{Path: mustPath(events), MetadataLocation: "hdfs://x/y/metadata/v1.json"}, nil)
	requireKind(t, fault.Unsupported, err, "scheme")
}

func TestPropertiesNameLocations(t *testing.T) {
	properties := map[string]any{
		"write.data.path": "s3://lake/other/d", "write.metadata.path": "s3a://lake/other/m/", "write.object-storage.path": "s3://lake/other/o",
		"write.folder-storage.path": "s3://lake/other/f",
	}
	l := locator(t, map[string]any{"properties": properties, "location": "s3a://lake/sales.daily/new"})
	require.Equal(t, filer.Path("/buckets/lake/other/d"), l.Data())
	require.Equal(t, filer.Path("/buckets/lake/other/m"), l.Metadata())
	require.Equal(t, root.Join("metadata"), l.Pointer())
	var kinds []iceberg.RootKind
	for _, r := range l.Roots() {
		kinds = append(kinds, r.Kind)
	}
	require.Equal(t, []iceberg.RootKind{iceberg.RootRecord, iceberg.RootWarehouse, iceberg.RootLocation, iceberg.RootFolders, iceberg.RootObjects, iceberg.RootData, iceberg.RootMetadata}, kinds)
	delete(properties, "write.data.path")
	require.Equal(t, filer.Path("/buckets/lake/other/f"), locator(t, map[string]any{"properties": properties}).Data())
	properties["write.object-storage.enabled"] = "TRUE"
	require.Equal(t, filer.Path("/buckets/lake/other/o"), locator(t, map[string]any{"properties": properties}).Data())
	require.Equal(t, root.Join("data"), locator(t, nil).Data())
	require.Equal(t, filer.Path("/buckets/lake/sales.daily/new/data"), locator(t, map[string]any{"location": "s3a://lake/sales.daily/new"}).Data())
}

func TestOwned(t *testing.T) {
	l := locator(t, map[string]any{"properties": map[string]any{"write.data.path": "s3://lake/other/d", "write.metadata.path": "s3://elsewhere/x/m"}})
	for p, want := range map[filer.Path]bool{
		root.Join("data/a.parquet"):              true,
		root.Join("x"):                           true,
		root:                                     false,
		root + "2/data/x":                        false,
		"/buckets/lake/other/d/a.parquet":        true,
		"/buckets/elsewhere/x/m/a":               false,
		"/buckets/lake/sales.daily/events-w/a":   true,
		"/buckets/lake/sales.daily/another/a":    false,
		"/buckets/lake/.seaice-trash/r/a":        false,
		"/buckets/lake/sales.daily/events/data/": false,
	} {
		require.Equal(t, want, l.Owned(p), p)
	}
	// F113: hostile or careless locations own nothing.
	for _, location := range []string{"s3://lake", "s3://lake/", "s3://lake/sales.daily", "s3://lake/ns2", "s3://lake/.seaice-trash/run", "s3://lake/.x/y"} {
		l := locator(t, map[string]any{"properties": map[string]any{"write.data.path": location}})
		for _, p := range []filer.Path{"/buckets/lake/ns2/t/data/a", "/buckets/lake/.seaice-trash/run/a/b", "/buckets/lake/.x/y/a", "/buckets/lake/sales.daily/events/data/x"} {
			require.False(t, l.Owned(p), "%s %s", location, p)
		}
	}
}

func TestF114BackslashIsOrdinary(t *testing.T) {
	l := locator(t, nil)
	p, err := l.Resolve(`s3://lake/sales.daily/events-u/data/a\..\b.parquet`)
	require.NoError(t, err)
	require.Equal(t, `a\..\b.parquet`, p.Name())
	require.Equal(t, root.Join("data"), p.Dir())
	require.Equal(t, `s3://lake/sales.daily/events-u/data/a\..\b.parquet`, l.Spelling(p))
}

func TestCandidates(t *testing.T) {
	l := locator(t, nil)
	for spelling, want := range map[string][]filer.Path{
		"data/a%20b":         {root.Join("data/a%20b"), root.Join("data/a b")},
		"data/a%zz":          {root.Join("data/a%zz")},
		"data/a+b":           {root.Join("data/a+b")},
		"data/a%2Fb":         {root.Join("data/a%2Fb"), root.Join("data/a/b")},
		"data/%2e%2e/x":      {root.Join("data/%2e%2e/x")},
		"data/a%00b":         {root.Join("data/a%00b")},
		"data/a%25b":         {root.Join("data/a%25b"), root.Join("data/a%b")},
		"lake/x":             {"/buckets/lake/x", root.Join("lake/x")},
		"lake":               {root.Join("lake")},
		"odd/x":              {root.Join("odd/x")},
		"http://h/buckets/b": {"/buckets/b"},
	} {
		got, err := l.Candidates(spelling)
		require.NoError(t, err, spelling)
		require.Equal(t, want, got, spelling)
	}
	// A bucket may be called like a table's directory.
	id := iceberg.TableID{Bucket: "data", Namespace: "ns", Name: "t"}
	odd, err := iceberg.NewLocator(id, &iceberg.Record{Path: mustPath(id)}, nil)
	require.NoError(t, err)
	got, err := odd.Candidates("data/x")
	require.NoError(t, err)
	require.Equal(t, []filer.Path{"/buckets/data/ns/t/data/x", "/buckets/data/x"}, got)
}

// TestFilesAreOpenedWhereTheyAre: by the first candidate that is a file, with the
// errors of Find.
func TestFilesAreOpenedWhereTheyAre(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	l := locator(t, nil)
	fl.PutFile(root.Join("data/a b"), []byte("second"))
	fl.PutFile(root.Join("data/c%20d"), []byte("first"))
	fl.PutFile(root.Join("data/c d"), []byte("second"))
	fl.PutFile(root.Join("data/e%20f/x"), []byte("within"))
	fl.PutFile(root.Join("data/e f"), []byte("behind a directory"))
	fl.PutFile(root.Join("data/g/x"), []byte("within"))
	for spelling, want := range map[string]string{"data/a%20b": "second", "data/c%20d": "first", "data/e%20f": "behind a directory"} {
		o, err := l.Open(t.Context(), fl, spelling)
		require.NoError(t, err, spelling)
		got := make([]byte, o.Size())
		_, err = o.ReadAt(got, 0)
		require.NoError(t, err, spelling)
		require.Equal(t, want, string(got), spelling)
		require.NoError(t, o.Close())
	}
	for _, spelling := range []string{"data/g", "data/h", "data/h%20i"} {
		_, want := l.Find(t.Context(), fl, spelling)
		_, err := l.Open(t.Context(), fl, spelling)
		require.Error(t, err, spelling)
		require.Equal(t, want, err, spelling)
		require.True(t, filer.NotFound(err), "%v", err)
	}
}

func TestF124SpellingIsTheTablesOwn(t *testing.T) {
	for location, want := range map[string]string{
		"s3://lake/sales.daily/events-u":                       "s3://lake/sales.daily/events-u/data/x",
		"s3a://lake/sales.daily/events-u/":                     "s3a://lake/sales.daily/events-u/data/x",
		"http://filer:8888/buckets/lake/sales.daily/events-u/": "http://filer:8888/buckets/lake/sales.daily/events-u/data/x",
		"/buckets/lake/sales.daily/events-u":                   "s3://lake/sales.daily/events-u/data/x",
		"lake/sales.daily/events-u":                            "s3://lake/sales.daily/events-u/data/x",
	} {
		require.Equal(t, want, locator(t, map[string]any{"location": location}).Spelling(root.Join("data/x")), location)
	}
}

// TestSpellingResolvesBack draws names of any bytes a filer takes.
func TestSpellingResolvesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := locator(t, map[string]any{"location": rapid.SampledFrom([]string{
			"s3://lake/sales.daily/events-u", "s3a://lake/x/y", "http://f:8888/buckets/lake/sales.daily/events-u"}).Draw(t, "location")})
		name := rapid.OneOf(rapid.StringMatching(`[a-z%25=+?#&\\: .]{1,12}`), rapid.String()).Draw(t, "name")
		p, err := filer.ParsePath(root.String() + "/data/" + name)
		if err != nil || !p.Within(root.Join("data")) {
			return
		}
		back, err := l.Resolve(l.Spelling(p))
		require.NoError(t, err)
		require.Equal(t, p, back)
	})
}
