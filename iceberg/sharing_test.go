package iceberg_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

func sharing(t *testing.T, f *filertest.Filer) *iceberg.Sharing {
	t.Helper()
	s := &iceberg.Sharing{}
	for found, err := range iceberg.Discover(t.Context(), f, iceberg.Filter{}) {
		require.NoError(t, err)
		s.Add(found)
	}
	return s
}

func table(name string) iceberg.TableID {
	return iceberg.TableID{Bucket: "lake", Namespace: "sales.daily", Name: name}
}

// put makes a table with its own uuid directory and the given properties.
func put(f *filertest.Filer, name, dir string, properties map[string]any) {
	location := "s3://lake/sales.daily/" + dir
	f.Mkdir(mustPath(table(name)), map[string][]byte{iceberg.AttrMetadata: []byte(fmt.Sprintf(
		`{"name":%q,"format":"ICEBERG","metadataVersion":1,"metadataLocation":"%s/metadata/v1.metadata.json","metadata":{"fullMetadata":%s}}`,
		name, location, tableJSON(2, map[string]any{"location": location, "properties": properties})))})
}

func TestP10SharedLocationsAreFound(t *testing.T) {
	f := world()
	put(f, "a", "a-u", nil)
	put(f, "ab", "a-u2", nil)
	put(f, "b", "b-u", map[string]any{"write.data.path": "s3://lake/shared/b"})
	put(f, "c", "c-u", map[string]any{"write.data.path": "s3a://lake/shared/b/deeper"})
	put(f, "d", "a", nil) // renamed away from a: its files are where a's record is
	f.Mkdir(mustPath(table("v")), map[string][]byte{iceberg.AttrEntryType: []byte("view"),
		iceberg.AttrMetadata: []byte(`{"metadataLocation":"s3://lake/sales.daily/e-u/metadata/v1.json"}`)})
	put(f, "e", "e-u/inner", nil)
	put(f, "m", "m-u", nil)
	f.SetAttributes(mustPath(table("m")), map[string][]byte{iceberg.AttrMoving: []byte(`{"metadataLocation":"s3://lake/sales.daily/ab-u/metadata/v1.json"}`)})
	put(f, "n", "ab-u/x", nil)
	s := sharing(t, f)
	require.Equal(t, []iceberg.TableID{table("m")}, s.Incomplete(), "what m moves to is not known in full")
	for name, want := range map[string]map[filer.Path]string{
		"a":  {"/buckets/lake/sales.daily/a-u": "", "/buckets/lake/sales.daily/a": "d", "/buckets/lake/sales.daily": "-", "/buckets/lake": "-", "/": "-"},
		"ab": {"/buckets/lake/sales.daily/a-u2": ""},
		"b":  {"/buckets/lake/sales.daily/b-u": "", "/buckets/lake/shared/b": "c", "/buckets/lake/shared": "c"},
		"c":  {"/buckets/lake/shared/b/deeper": "b", "/buckets/lake/sales.daily/c-u": ""},
		"d":  {"/buckets/lake/sales.daily/a": "a"},
		"e":  {"/buckets/lake/sales.daily/e-u/inner": "v"},
		"m":  {"/buckets/lake/sales.daily/m-u": ""},
		"n":  {"/buckets/lake/sales.daily/ab-u/x": "m"},
	} {
		for root, other := range want {
			owner, found := s.Overlap(mustPath(table(name)), root)
			switch other {
			case "":
				require.False(t, found, "%s %s: %s", name, root, owner)
			case "-":
				require.True(t, found, "%s %s", name, root)
			default:
				require.Equal(t, mustPath(table(other)), owner, "%s %s", name, root)
			}
		}
	}
}

func TestUnknownLocationsAreNamed(t *testing.T) {
	f := world()
	put(f, "a", "a-u", nil)
	putTable(f, table("file"), "s3://lake/sales.daily/f-u/metadata/v1.metadata.json", nil)
	f.Mkdir(mustPath(table("broken")), map[string][]byte{iceberg.AttrMetadata: []byte(`{`)})
	putTable(f, table("odd"), "s3://lake/sales.daily/o-u/metadata/v1.metadata.json", tableJSON(2, map[string]any{"properties": map[string]any{"write.data.path": "hdfs://x/y"}}))
	f.Mkdir(mustPath(table("fresh")), map[string][]byte{iceberg.AttrMetadata: []byte(`{"format":"ICEBERG"}`)})
	f.Mkdir(mustPath(table("lance")), map[string][]byte{iceberg.AttrMetadata: []byte(
		`{"format":"LANCE","metadataLocation":"s3://lake/sales.daily/l-u/metadata/x","metadata":{"fullMetadata":{"odd":1}}}`)})
	s := sharing(t, f)
	require.Equal(t, []iceberg.TableID{table("broken"), table("file"), table("odd")}, s.Incomplete())
	_, ok := s.Overlap(mustPath(table("a")), "/buckets/lake/extra")
	require.False(t, ok)
	s.AddPath(mustPath(table("file")), "/buckets/lake/extra/dir")
	other, ok := s.Overlap(mustPath(table("a")), "/buckets/lake/extra")
	require.True(t, ok)
	require.Equal(t, mustPath(table("file")), other)
}

// TestOverlapAgreesWithPairs compares with looking at every pair.
func TestOverlapAgreesWithPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.Custom(func(t *rapid.T) filer.Path {
			p := filer.Path("/b")
			for range rapid.IntRange(0, 4).Draw(t, "depth") {
				p = p.Join(rapid.SampledFrom([]string{"a", "b", "a-", "a!", "ab"}).Draw(t, "name"))
			}
			return p
		})
		type claim struct{ owner, root filer.Path }
		var claims []claim
		s := &iceberg.Sharing{}
		for range rapid.IntRange(0, 12).Draw(t, "claims") {
			c := claim{path.Draw(t, "owner"), path.Draw(t, "root")}
			claims = append(claims, c)
			s.AddPath(c.owner, c.root)
			if rapid.Bool().Draw(t, "ask between") {
				s.Overlap(c.owner, c.root)
			}
		}
		for range 5 {
			owner, root := path.Draw(t, "me"), path.Draw(t, "mine")
			want := false
			for _, c := range claims {
				want = want || c.owner != owner && (c.root.Within(root) || root.Within(c.root))
			}
			other, got := s.Overlap(owner, root)
			require.Equal(t, want, got)
			require.NotEqual(t, got, other == "")
		}
	})
}

func BenchmarkSharing100k(b *testing.B) {
	for b.Loop() {
		s := &iceberg.Sharing{}
		for i := range 100000 {
			p := filer.Path(fmt.Sprintf("/buckets/lake/ns%d/t%d", i%100, i))
			s.AddPath(p, p)
			s.AddPath(p, p+"-u")
		}
		for i := range 100000 {
			p := filer.Path(fmt.Sprintf("/buckets/lake/ns%d/t%d", i%100, i))
			if other, ok := s.Overlap(p, p+"-u"); ok {
				b.Fatal(other)
			}
		}
	}
}
