package resolve_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

// arrow-go 18.8.0 leaves values out of the statistics of lists with small pages
// (TestMergedFilesSayTheTruth found it).
func TestStatisticsOfRepeatedColumnsByArrowGoAreNotTrusted(t *testing.T) {
	flat, element := leaf("c", format.Optional, format.Int32), leaf("c", format.Optional, format.Int32)
	element.MaxRep = 1
	const arrow, library = "parquet-go version 18.8.0", "github.com/parquet-go/parquet-go version 0.32.0(build x)"
	require.True(t, resolve.TrustedWriter(arrow, flat).Statistics)
	require.False(t, resolve.TrustedWriter(arrow, element).Statistics)
	require.True(t, resolve.TrustedWriter(library, element).Statistics)
}

// parquet-go 0.32.0 compares decimals that are bytes without their sign
// (TestMergedFilesSayTheTruth found it).
func TestStatisticsOfDecimalBytesByParquetGoAreNotTrusted(t *testing.T) {
	const arrow, library = "parquet-go version 18.8.0", "github.com/parquet-go/parquet-go version 0.32.0(build x)"
	for _, kind := range []format.Type{format.FixedLenByteArray, format.ByteArray, format.Int32} {
		n := leaf("c", format.Optional, kind)
		n.TypeLength = 2
		n.Logical = &format.Logical{Kind: format.LogicalDecimal, Precision: 4}
		require.Equal(t, kind == format.Int32, resolve.TrustedWriter(library, n).Statistics)
		require.True(t, resolve.TrustedWriter(arrow, n).Statistics)
		n.Logical = nil
		require.True(t, resolve.TrustedWriter(library, n).Statistics)
	}
}

// parquet-go 0.32.0 forgets the values before a NaN in dictionary pages
// (TestMergeStatesNoWrongMetrics found it).
func TestStatisticsOfFloatsByParquetGoAreNotTrusted(t *testing.T) {
	const arrow, library = "parquet-go version 18.8.0", "github.com/parquet-go/parquet-go version 0.32.0(build x)"
	for _, kind := range []format.Type{format.Float, format.Double, format.Int64} {
		n := leaf("c", format.Optional, kind)
		require.Equal(t, kind == format.Int64, resolve.TrustedWriter(library, n).Statistics)
		require.True(t, resolve.TrustedWriter(arrow, n).Statistics)
	}
}

// Writers are known that compare decimals that are bytes as text or byte by byte:
// parquet-cpp before 4.0.0 (PARQUET-1655), parquet-rs before 14 (arrow-rs 1532), and
// still where they have no common length (arrow-rs 10860, 11073), and ClickHouse
// (83754). What they say would become the bounds of the merged file, and of its entry.
func TestStatisticsOfDecimalBytesAreOnlyTrustedOfWritersThatCompareThem(t *testing.T) {
	const fixed, bytes, both, none = 1, 2, 3, 0
	for createdBy, want := range map[string]int{
		"parquet-cpp version 1.5.1-SNAPSHOT":        none,
		"parquet-cpp-arrow version 3.0.0":           none,
		"parquet-cpp-arrow version 4.0.0":           fixed,
		"parquet-cpp-arrow version 23.0.1":          both,
		"parquet-rs version 13.0.0":                 none,
		"parquet-rs version 14.0.0":                 fixed,
		"parquet-rs version 57.0.0":                 fixed,
		"ClickHouse v25.7.1.3997-stable":            none,
		"DuckDB version v1.2.0 (build 5f5512b)":     both,
		"parquet-mr version 1.15.2 (build x)":       both,
		"github.com/parquet-go/parquet-go version ": none,
	} {
		for kind, bit := range map[format.Type]int{format.FixedLenByteArray: fixed, format.ByteArray: bytes} {
			n := leaf("c", format.Optional, kind)
			n.TypeLength = 9
			n.Logical = &format.Logical{Kind: format.LogicalDecimal, Precision: 20}
			got := resolve.TrustedWriter(createdBy, n)
			require.Equal(t, want&bit > 0, got.Statistics, "%s, type %d", createdBy, kind)
			require.True(t, got.DeltaByteArray, createdBy)
			n.Logical = nil
			dictionaries := kind == format.ByteArray && strings.HasPrefix(createdBy, "parquet-cpp-arrow") && !strings.HasSuffix(createdBy, "23.0.1")
			require.Equal(t, !dictionaries, resolve.TrustedWriter(createdBy, n).Statistics, createdBy)
		}
		n := leaf("c", format.Optional, format.Int64)
		n.Logical = &format.Logical{Kind: format.LogicalDecimal, Precision: 18}
		require.True(t, resolve.TrustedWriter(createdBy, n).Statistics, createdBy)
	}
}

func TestWritersWithKnownFaultsAreNotTrusted(t *testing.T) {
	text, number := leaf("c", format.Optional, format.ByteArray), leaf("c", format.Optional, format.Int32)
	for createdBy, want := range map[string]resolve.Trust{
		"":                                      {Nulls: true},
		"parquet-mr":                            {Nulls: true},
		"parquet-mr version 1.6.0 (build x)":    {Nulls: true},
		"parquet-mr version 1.8.0 (build x)":    {Nulls: true, Statistics: true, DeltaByteArray: true},
		"parquet-mr version 1.15.2 (build x)":   {Nulls: true, Statistics: true, DeltaByteArray: true},
		"parquet-mr version 1.5.0-cdh5.5.0":     {Nulls: true, Statistics: true},
		"parquet-mr version 1.5.0-cdh5.4.9":     {Nulls: true},
		"parquet-cpp-arrow version 1.0.0":       {DeltaByteArray: true},
		"parquet-cpp-arrow version 10.0.1":      {Nulls: true, DeltaByteArray: true},
		"parquet-cpp-arrow version 11.0.0":      {Nulls: true, Statistics: true, DeltaByteArray: true},
		"impala version 1.2.3 (build abc)":      {Nulls: true, Statistics: true, DeltaByteArray: true},
		"seaice version 1.0.0 (build deadbeef)": {Nulls: true, Statistics: true, DeltaByteArray: true},
		"DuckDB version v1.2.0 (build 5f5512b)": {Nulls: true, Statistics: true, DeltaByteArray: true},
	} {
		require.Equal(t, want, resolve.TrustedWriter(createdBy, text), createdBy)
		require.Equal(t, resolve.Trust{Statistics: true, Nulls: true, DeltaByteArray: true}, resolve.TrustedWriter(createdBy, number), createdBy)
	}
	for _, leaf := range []*format.Node{text, number} {
		require.Equal(t, resolve.Trust{DeltaByteArray: true}, resolve.TrustedWriter("Polars", leaf))
		require.Equal(t, resolve.Trust{Statistics: true, Nulls: true, DeltaByteArray: true}, resolve.TrustedWriter("Polars (python) version 2.1.0", leaf))
	}
}
