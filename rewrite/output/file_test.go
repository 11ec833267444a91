package output_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
)

func equalRows(t require.TestingT, want, got rows, who string) {
	require.Equal(t, want.rep, got.rep, who)
	require.Equal(t, want.def, got.def, who)
	require.Equal(t, len(want.values), len(got.values), who)
	for i := range want.values {
		if !bytes.Equal(want.values[i], got.values[i]) {
			require.Equal(t, want.values[i], got.values[i], "%s: value %d", who, i)
		}
	}
}

// TestPeersReadWhatIsWritten writes random columns under random options and reads
// them with two other libraries.
func TestPeersReadWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var children []*format.Node
		for i := range rapid.IntRange(1, 4).Draw(t, "columns") {
			children = append(children, anyNode(t, string(rune('a'+i)), 2))
		}
		s := schemaOf(t, children...)
		o := encode.Options{
			Codec:           rapid.SampledFrom([]format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.LZ4Raw}).Draw(t, "codec"),
			Version:         rapid.IntRange(1, 2).Draw(t, "version"),
			PageBytes:       rapid.SampledFrom([]int{1, 100, 5000, 0}).Draw(t, "page bytes"),
			PageRows:        rapid.SampledFrom([]int{1, 7, 500, 0}).Draw(t, "page rows"),
			DictionaryBytes: rapid.SampledFrom([]int{-1, 50, 2000, 0}).Draw(t, "dictionary"),
			HoldBytes:       rapid.SampledFrom([]int{1, 4000, 0}).Draw(t, "hold"),
			Encoding:        rapid.SampledFrom([]format.Encoding{format.Plain, format.DeltaBinaryPacked}).Draw(t, "encoding"),
			CRC:             rapid.Bool().Draw(t, "crc"),
		}
		r := &random{state: rapid.Uint64().Draw(t, "seed")}
		most := rapid.SampledFrom([]int{1, 30, 3000}).Draw(t, "rows")
		if o.PageRows == 1 || o.PageBytes == 1 {
			most = min(most, 200) // the peers take long for thousands of pages
		}
		kinds := rapid.SampledFrom([]int{1, 5, 300, 1 << 20}).Draw(t, "kinds")
		nulls := rapid.SampledFrom([]int{0, 10, 100}).Draw(t, "nulls")
		var groups [][][]column.Batch
		for range rapid.IntRange(1, 2).Draw(t, "groups") {
			var sizes []int
			for range rapid.IntRange(1, 3).Draw(t, "batches") {
				sizes = append(sizes, 1+r.n(most))
			}
			leaves := make([][]column.Batch, len(s.Leaves))
			for i, leaf := range s.Leaves {
				for _, n := range sizes {
					leaves[i] = append(leaves[i], anyRows(r, leaf, n, kinds, nulls))
				}
			}
			groups = append(groups, leaves)
		}
		w := write(t, s, o, groups)
		checkPeers(t, w)
		checkTruth(t, w)
	})
}

func checkPeers(t require.TestingT, w *written) {
	f := openPeer(t, w.data)
	own, err := column.Open(context.Background(), bytes.NewReader(w.data), "out.parquet", column.Options{})
	require.NoError(t, err)
	defer own.Close()
	for l := range w.schema.Leaves {
		equalRows(t, joined(w, l), ownRows(t, own, l), "column")
	}
	for g := range w.groups {
		for l := range w.groups[g] {
			equalRows(t, w.groups[g][l], arrowRows(t, w.data, g, l), "arrow-go")
			if w.result.Footer.RowGroups[g].Columns[l].Codec == format.LZ4Raw {
				// parquet-go drops what it decompressed if a third of the page's
				// length is less than the compressed one.
				continue
			}
			equalRows(t, w.groups[g][l], peerRows(t, f, w.schema, g, l, 0), "parquet-go")
		}
	}
}

// joined are the rows of a leaf over all groups.
func joined(w *written, leaf int) rows {
	var out rows
	for g := range w.groups {
		out.add2(&w.groups[g][leaf])
	}
	return out
}

func TestAFileWithoutRows(t *testing.T) {
	s := schemaOf(t, leafOf("a", format.Int32, format.Optional))
	w := write(t, s, encode.Options{}, nil)
	require.Zero(t, w.result.Rows)
	require.Empty(t, w.result.SplitOffsets)
	require.EqualValues(t, 0, openPeer(t, w.data).NumRows())
}

func TestCreatedByIsParseable(t *testing.T) {
	for _, c := range [][3]string{
		{"v1.2.3", "abc", "seaice version 1.2.3 (build abc)"},
		{"", "", "seaice version 0.0.0 (build unknown)"},
		{"(devel)", "a b)", "seaice version 0.0.0 (build ab)"},
		{"0.1.0-3-gabc", "d\n", "seaice version 0.1.0-3-gabc (build d)"},
	} {
		require.Equal(t, c[2], output.CreatedBy(c[0], c[1]))
	}
}
