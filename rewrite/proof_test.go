package rewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// smallWorld has a few sources of every kind of column: with dictionaries that
// differ and without, in rows that lie in lists and not.
func smallWorld(t require.TestingT, deleted bool) *world {
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "s", Type: icego.PrimitiveTypes.String},
		icego.NestedField{ID: 3, Name: "l", Type: &icego.ListType{ElementID: 4, Element: icego.PrimitiveTypes.Int32}},
	)
	w := newWorld(t, schema, 2)
	for i := range 3 {
		d := drawer{rng: &lcg{x: uint64(i)}, nulls: 10, few: 20}
		rows := make([]row, 300)
		for k := range rows {
			rows[k] = d.row(schema.Fields())
		}
		var gone *deletes.Positions
		if deleted {
			gone = deletes.Of(7, 8, 290)
		}
		w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, Dictionary: i != 2, PageBytes: 256, GroupRows: 200, Index: true}, false), rows, gone)
	}
	return w
}

// TestProofFindsBrokenPages flips one bit in each page in turn, where it was made
// and while it waits to be written. Nothing but the same rows may come of it.
func TestProofFindsBrokenPages(t *testing.T) {
	for _, c := range []struct {
		name    string
		copying rewrite.Copying
		deleted bool
		change  func(*rewrite.Request)
		// at is where pages are broken; always that every flip is found.
		at     int
		always bool
		world  func(require.TestingT, bool) *world
	}{
		{name: "copied pages while they wait", copying: rewrite.CopyForced, at: int(rewrite.Held), always: true},
		{name: "encoded pages while they wait", copying: rewrite.CopyNever, at: int(rewrite.Held), always: true},
		{name: "encoded pages", copying: rewrite.CopyNever, at: int(rewrite.Made)},
		{name: "remapped pages", copying: rewrite.CopyForced, at: int(rewrite.Made)},
		{name: "pages touched by deletes", copying: rewrite.CopyForced, deleted: true, at: int(rewrite.Made)},
		{name: "pages touched by deletes, not compressed", copying: rewrite.CopyForced, deleted: true, at: int(rewrite.Made), change: func(q *rewrite.Request) {
			q.Table.Properties["write.parquet.compression-codec"] = "uncompressed"
		}},
		{name: "recompressed pages", copying: rewrite.CopyForced, at: int(rewrite.Made), change: func(q *rewrite.Request) {
			q.Table.Properties["write.parquet.compression-codec"] = "zstd"
		}},
		{name: "remapped pages that are not compressed", copying: rewrite.CopyForced, at: int(rewrite.Made), world: noisyWorld},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.world == nil {
				c.world = smallWorld
			}
			w := c.world(t, c.deleted)
			w.request.Copying = c.copying
			if c.change != nil {
				c.change(&w.request)
			}
			found, pages := 0, 0
			for n := -1; n < pages; n++ { // first without a flip
				mu, seen := sync.Mutex{}, 0
				ctx := rewrite.Breaking(context.Background(), func(at int, body []byte) {
					mu.Lock()
					defer mu.Unlock()
					if at != c.at || len(body) == 0 {
						return
					}
					if seen == n {
						body[len(body)*2/3] ^= 1 << (n % 8)
					}
					seen++
				})
				res, err := rewrite.Merge(ctx, w.request)
				if n < 0 {
					pages = seen
				}
				if err == nil {
					require.False(t, c.always && n >= 0, "page %d", n)
					w.check(t, res)
					continue
				}
				require.Equal(t, fault.Halt, fault.Of(err), "%v", err)
				require.Empty(t, res.Outputs)
				found++
			}
			require.Greater(t, pages, 5)
			require.Greater(t, found, pages/2)
		})
	}
}

// badStore stores an output with one bit changed.
type badStore struct {
	*sink
	bit int
}

func (s *badStore) Done(ctx context.Context) (rewrite.Stored, error) {
	b := bytes.Clone(s.Bytes())
	b[s.bit/8] ^= 1 << (s.bit % 8)
	s.Reset()
	_, _ = s.Write(b)
	return s.sink.Done(ctx)
}

// TestProofReadsStoredRowsBack flips bits of stored outputs.
func TestProofReadsStoredRowsBack(t *testing.T) {
	w := smallWorld(t, false)
	w.request.Verify = rewrite.VerifyRows
	whole := w.merge(t)
	size := int(whole.Outputs[0].Bytes) * 8
	found := 0
	const flips = 100
	for n := range flips {
		w.request.Create = func(_ context.Context, n2 int) (rewrite.Sink, error) {
			s := &sink{filer: w.filer, at: filer.Path(fmt.Sprintf("/buckets/b/t/data/bad-%d-%d.parquet", n, n2))}
			return &badStore{sink: s, bit: n*size/flips + n%8}, nil
		}
		res, err := rewrite.Merge(context.Background(), w.request)
		if err == nil {
			// Statistics, indexes, checksums and padding hold no rows.
			w.check(t, res)
			continue
		}
		require.Equal(t, fault.Halt, fault.Of(err), "%v", err)
		found++
	}
	require.Greater(t, found, flips/3)
}

// TestProofIsTheSameForTheSameInput runs a merge twice.
func TestProofIsTheSameForTheSameInput(t *testing.T) {
	w := smallWorld(t, true)
	one := w.merge(t)
	two := w.merge(t)
	require.Equal(t, one.Proof, two.Proof)
	require.NotEmpty(t, one.Proof.Sum)
	require.Equal(t, "content", one.Proof.Verify)
	require.Positive(t, one.Proof.Proved)
	require.Equal(t, int64(900), one.Proof.RowsRead)
	require.Equal(t, int64(9), one.Proof.RowsDeleted)
}
