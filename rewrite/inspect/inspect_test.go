package inspect_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/inspect"
)

type row struct {
	ID   int64    `parquet:"id,id(1)"`
	Name *string  `parquet:"name,id(2),optional"`
	Tags []string `parquet:"tags,id(3)"`
	X    float64  `parquet:"x,id(4)"`
}

func sample(t testing.TB) []byte {
	t.Helper()
	a, b := "ant", "bee"
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(2))
	_, err := w.Write([]row{{1, &a, []string{"x", "y"}, -2}, {5, nil, nil, 0}, {3, &b, nil, 7}})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func open(b []byte) (*column.File, error) {
	return column.Open(context.Background(), bytes.NewReader(b), "sample", column.Options{})
}

func TestRangesOverRowGroups(t *testing.T) {
	f, err := open(sample(t))
	require.NoError(t, err)
	foot := f.Footer()
	low, high, ok := inspect.Range(foot, 0, icego.PrimitiveTypes.Int64)
	require.True(t, ok)
	require.Equal(t, "1 5", low.String()+" "+high.String())
	low, high, ok = inspect.Range(foot, 1, icego.PrimitiveTypes.String)
	require.True(t, ok)
	require.Equal(t, "ant bee", low.String()+" "+high.String())
	_, _, ok = inspect.Range(foot, 0, icego.PrimitiveTypes.Timestamp) // no unit
	require.False(t, ok)

	for name, edit := range map[string]func(*format.Footer){
		"the order is not known":  func(f *format.Footer) { f.Orders[1] = format.OrderUnknown },
		"no orders":               func(f *format.Footer) { f.Orders = nil },
		"an untrusted writer":     func(f *format.Footer) { f.CreatedBy = "parquet-mr version 1.6.0" },
		"a bound was cut":         func(f *format.Footer) { f.RowGroups[0].Columns[1].Statistics.MaxExact = new(bool) },
		"a chunk without bounds":  func(f *format.Footer) { f.RowGroups[0].Columns[1].Statistics.Min = nil },
		"a chunk that says none":  func(f *format.Footer) { f.RowGroups[0].Columns[1].Statistics = nil },
		"a bound that may be cut": func(f *format.Footer) { f.RowGroups[0].Columns[1].Statistics.Max = bytes.Repeat([]byte{'x'}, 64) },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := open(sample(t))
			require.NoError(t, err)
			edit(f.Footer())
			_, _, ok := inspect.Range(f.Footer(), 1, icego.PrimitiveTypes.String)
			require.False(t, ok)
		})
	}
}

// fixtures are the files of the directory; without it the test is skipped.
func fixtures(t *testing.T, dir, suffix string) map[string][]byte {
	t.Helper()
	root := os.Getenv("SEAICE_FIXTURES")
	if root == "" {
		root = "../../../shared/fixtures"
	}
	names, err := filepath.Glob(filepath.Join(root, dir, "*"+suffix))
	require.NoError(t, err)
	if len(names) == 0 {
		t.Skip("no fixtures in " + root)
	}
	out := map[string][]byte{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		require.NoError(t, err)
		out[filepath.Base(n)] = b
	}
	return out
}

// TestFootersOfOtherWriters opens files of many writers and compares the number
// of rows with parquet-go's.
func TestFootersOfOtherWriters(t *testing.T) {
	for name, b := range fixtures(t, "parquet", ".parquet") {
		t.Run(name, func(t *testing.T) {
			f, err := open(b)
			p, perr := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				require.Contains(t, []fault.Kind{fault.Corrupt, fault.Unsupported}, fault.Of(err))
				require.Error(t, perr, "we refuse what parquet-go reads: %v", err)
				return
			}
			if perr == nil {
				require.Equal(t, p.NumRows(), f.Footer().Rows)
			}
			for i := range f.Footer().Schema.Leaves {
				for _, typ := range []icego.Type{icego.PrimitiveTypes.Int64, icego.PrimitiveTypes.String, icego.DecimalTypeOf(9, 2)} {
					inspect.Range(f.Footer(), i, typ)
				}
			}
		})
	}
}

// TestF047HostileFooters damages a file in every way of one byte, and some of
// many: there is an answer, and never a panic.
func TestF047HostileFooters(t *testing.T) {
	good := sample(t)
	n := int(binary.LittleEndian.Uint32(good[len(good)-8:]))
	for at := len(good) - 8 - n; at < len(good); at++ {
		for _, v := range []byte{0, 1, 0x0f, 0x7f, 0x80, 0xf0, 0xff} {
			b := bytes.Clone(good)
			b[at] = v
			look(b)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(8) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		look(b)
		look(b[:rng.IntN(len(b))])
	}
}

func look(b []byte) {
	f, err := open(b)
	if err != nil {
		return
	}
	for i := range f.Footer().Schema.Leaves {
		inspect.Range(f.Footer(), i, icego.PrimitiveTypes.Int64)
		inspect.Range(f.Footer(), i, icego.PrimitiveTypes.String)
	}
	_ = inspect.Positions(f, func([]byte, int64) error { return nil })
}

// TestF047FooterThatClaimsManyElements has a list of two billion row groups.
func TestF047FooterThatClaimsManyElements(t *testing.T) {
	footer := []byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07} // version 1, then a list of structs
	file := append([]byte("PAR1"), footer...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
	file = append(file, "PAR1"...)
	_, err := open(file)
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	deep := append([]byte("PAR1"), bytes.Repeat([]byte{0x1c}, 100)...)
	deep = binary.LittleEndian.AppendUint32(deep, 100)
	_, err = open(append(deep, "PAR1"...))
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	_, err = open([]byte("PAR1xxxxPARE"))
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
}

type pair struct {
	Path string `parquet:"file_path,id(2147483546)"`
	Pos  *int64 `parquet:"pos,id(2147483545),optional"`
}

func TestF021PositionsAreReadInOrder(t *testing.T) {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[pair](&out, parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(256))
	var want []int64
	for i := range int64(2500) {
		_, err := w.Write([]pair{{"f" + strings.Repeat("x", int(i%3)), &i}})
		require.NoError(t, err)
		want = append(want, i)
	}
	require.NoError(t, w.Close())
	f, err := open(out.Bytes())
	require.NoError(t, err)
	var got []int64
	require.NoError(t, inspect.Positions(f, func(path []byte, pos int64) error {
		require.Equal(t, 1+int(pos%3), len(path))
		got = append(got, pos)
		return nil
	}))
	require.Equal(t, want, got)

	out.Reset()
	require.NoError(t, parquet.Write(&out, []pair{{"f", nil}}))
	f, err = open(out.Bytes())
	require.NoError(t, err)
	err = inspect.Positions(f, func([]byte, int64) error { return nil })
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	f, err = open(sample(t))
	require.NoError(t, err)
	require.Error(t, inspect.Positions(f, func([]byte, int64) error { return nil }))
}
