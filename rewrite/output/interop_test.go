package output_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// interopScript reads a file with pyarrow and DuckDB and prints what it finds.
const interopScript = `
import json, sys
import pyarrow.parquet as pq, duckdb
path = sys.argv[1]
t = pq.read_table(path, page_checksum_verification=True)
c = {n: t[n].to_pylist() for n in t.column_names}
d = duckdb.connect()
rel = f"read_parquet('{path}')"
def one(q): return d.execute(q.format(rel)).fetchone()
md = pq.ParquetFile(path).metadata
def stats(i):
    s = md.row_group(0).column(i).statistics
    return [s.min if s.has_min_max else None, s.max if s.has_min_max else None, s.null_count]
print(json.dumps({
  "rows": [t.num_rows, one("select count(*) from {}")[0], md.num_rows],
  "sum": [sum(x for x in c["id"]), int(one("select sum(id) from {}")[0])],
  "nulls": [sum(x is None for x in c["name"]), one("select count(*) from {} where name is null")[0], md.row_group(0).column(1).statistics.null_count],
  "names": [len(set(c["name"])) - 1, one("select count(distinct name) from {}")[0]],
  "price": [str(sum(x for x in c["price"] if x is not None)), str(one("select sum(price) from {}")[0])],
  "items": [sum(len(x) for x in c["items"] if x), one("select sum(len(items)) from {}")[0]],
  "found": [sum(x == "name 3" for x in c["name"]), one("select count(*) from {} where name = 'name 3'")[0]],
  "yes": [sum(bool(x) for x in c["yes"]), one("select count(*) from {} where yes")[0]],
  "seq": [sum(c["seq"]), int(one("select sum(seq) from {}")[0])],
  "range": stats(0)[:2],
}))
`

// TestInteropPyarrowAndDuckDB has the two read a file and compares what both find
// with what was written. Both verify checksums or use statistics and indexes.
func TestInteropPyarrowAndDuckDB(t *testing.T) {
	python := os.Getenv("SEAICE_PYTHON")
	if python == "" {
		t.Skip("SEAICE_PYTHON names no Python with pyarrow and duckdb")
	}
	for version := 1; version <= 2; version++ {
		for _, codec := range []format.Codec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.LZ4Raw, format.Brotli} {
			t.Run(fmt.Sprintf("v%d codec %d", version, codec), func(t *testing.T) {
				interop(t, python, encode.Options{Version: version, Codec: codec, PageRows: 700, CRC: true, DictionaryBytes: 3000})
			})
		}
	}
}

func interop(t *testing.T, python string, o encode.Options) {
	t.Helper()
	s := schemaOf(t,
		leafOf("id", format.Int64, format.Required),
		with(leafOf("name", format.ByteArray, format.Optional), asString),
		with(leafOf("price", format.FixedLenByteArray, format.Optional), asDecimal(9, 2, 4)),
		with(group("items", format.Optional, group("list", format.Repeated, leafOf("element", format.Double, format.Optional))),
			func(n *format.Node) { n.Logical, n.Converted = &format.Logical{Kind: format.LogicalList}, p32(3) }),
		leafOf("yes", format.Boolean, format.Required),
		leafOf("seq", format.Int64, format.Required),
	)
	const n = 5000
	want := struct{ sum, nulls, price, items, found, yes int64 }{}
	names := map[string]bool{}
	b := make([]*builder, 6)
	for i := range b {
		b[i] = newBuilder(s.Leaves[i])
	}
	for i := range int64(n) {
		id := i*i%977 - 100
		want.sum += id
		b[0].value(le(id))
		if i%9 == 0 {
			want.nulls++
			b[1].null()
		} else {
			name := fmt.Sprint("name ", i%20)
			if i > n/2 {
				name = fmt.Sprint("another name ", i)
			}
			if name == "name 3" {
				want.found++
			}
			names[name] = true
			b[1].value([]byte(name))
		}
		price := int32(i%300 - 150)
		want.price += int64(price)
		b[2].value([]byte{byte(price >> 24), byte(price >> 16), byte(price >> 8), byte(price)})
		switch i % 4 {
		case 0:
			b[3].level(0, 0) // no list
		case 1:
			b[3].level(0, 1) // an empty one
		default:
			for j := range i % 5 {
				b[3].level(int(min(j, 1)), 3)
				b[3].b.Values.Append(le(math.Sqrt(float64(j))))
			}
			if i%5 == 0 {
				b[3].level(0, 2) // a null in it
				want.items++
			}
			want.items += i % 5
		}
		b[4].value([]byte{byte(i >> 6 & 1)})
		want.yes += i >> 6 & 1
		b[5].value(le(int64(77)))
	}
	var leaves [][]column.Batch
	for i := range b {
		leaves = append(leaves, []column.Batch{b[i].b})
	}
	w := write(t, s, o, [][][]column.Batch{leaves})
	path := filepath.Join(t.TempDir(), "out.parquet")
	require.NoError(t, os.WriteFile(path, w.data, 0o600))
	out, err := exec.CommandContext(t.Context(), python, "-c", interopScript, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var got map[string][]any
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&got), "%s", out)
	for name, x := range map[string]any{
		"rows": int64(n), "sum": want.sum, "nulls": want.nulls, "names": int64(len(names)), "items": want.items, "found": want.found,
		"yes": want.yes, "seq": int64(77 * n), "price": fmt.Sprintf("%.2f", float64(want.price)/100),
	} {
		require.GreaterOrEqual(t, len(got[name]), 2)
		for i, g := range got[name] {
			require.Equal(t, fmt.Sprint(x), fmt.Sprint(g), "%s of reader %d", name, i)
		}
	}
	require.Equal(t, "-100", fmt.Sprint(got["range"][0]))
}
