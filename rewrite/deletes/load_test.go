package deletes_test

import (
	"bytes"
	gocontext "context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

// named adds a data file of which only its name and rows matter.
func (w *bench) named(location string, rows int64) int {
	n := len(w.q.Data)
	at := filer.Path("/buckets/b/t/" + location[strings.LastIndex(location, "/")+1:])
	w.q.Data = append(w.q.Data, deletes.DataFile{Location: location, At: at, Records: rows})
	return n
}

// positions adds a position delete file.
func (w *bench) positions(all []deletes.Deleted, applies ...int) int {
	var b bytes.Buffer
	_, err := deletes.WritePositions(&b, deletes.PositionOptions{CreatedBy: "x", Codec: format.Zstd}, all)
	require.NoError(w.t, err)
	records := int64(0)
	for _, d := range all {
		records += d.Positions.Len()
	}
	n := len(w.q.Deletes)
	name, at := w.put(fmt.Sprintf("pos-%d.parquet", n), b.Bytes())
	w.q.Deletes = append(w.q.Deletes, deletes.DeleteFile{Kind: deletes.PositionDelete, Location: name, At: at, Format: "PARQUET", Records: records, Applies: applies})
	return n
}

// vectors adds one Puffin file with a vector for each data file, each of which is
// for one file asked for.
func (w *bench) vectors(all []deletes.Deleted, applies ...int) {
	var b bytes.Buffer
	written, _, err := deletes.WriteVectors(&b, "x", all)
	require.NoError(w.t, err)
	name, at := w.put(fmt.Sprintf("dv-%d.puffin", len(w.q.Deletes)), b.Bytes())
	for i, v := range written {
		w.q.Deletes = append(w.q.Deletes, deletes.DeleteFile{
			Kind: deletes.DeletionVector, Location: name, At: at, Format: "puffin", Records: v.Records, Offset: v.Offset, Size: v.Size, Applies: []int{applies[i]},
		})
	}
}

func TestF019VectorsOfASharedFile(t *testing.T) {
	w := newBench(t, nil)
	var all []deletes.Deleted
	var applies []int
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 30 {
		p := &deletes.Positions{}
		for range 1 + 10*i*i {
			p.Add(r.Int64N(1_000_000))
		}
		name := fmt.Sprintf("s3://b/t/%d.parquet", i)
		all = append(all, deletes.Deleted{DataFile: name, Positions: p})
		applies = append(applies, w.named(name, 1_000_000))
	}
	w.vectors(all, applies...)
	// Not in the order of the file, and not all of them.
	rand.New(rand.NewPCG(2, 2)).Shuffle(len(w.q.Deletes), func(i, j int) { w.q.Deletes[i], w.q.Deletes[j] = w.q.Deletes[j], w.q.Deletes[i] })
	left := w.q.Deletes[:5]
	w.q.Deletes = w.q.Deletes[5:]
	res, err := w.load()
	require.NoError(t, err)
	for n := range all {
		want := all[n].Positions
		for _, d := range left {
			if d.Applies[0] == n {
				want = nil
			}
		}
		require.True(t, want.Equal(res.Positions[n]), "%d", n)
	}

	w.q.Deletes[0].Applies = []int{w.q.Deletes[1].Applies[0]}
	w.q.Deletes = w.q.Deletes[:1]
	_, err = w.load()
	require.True(t, fault.Is(err, fault.Corrupt), "a vector of another file: %v", err)
}

func TestF020TwoVectorsForOneFile(t *testing.T) {
	w := newBench(t, nil)
	n := w.named("s3://b/t/a.parquet", 10)
	w.vectors([]deletes.Deleted{{DataFile: "s3://b/t/a.parquet", Positions: deletes.Of(0, 1)}}, n)
	w.deleted(n, 0, 1)
	w.vectors([]deletes.Deleted{{DataFile: "s3://b/t/a.parquet", Positions: deletes.Of(5)}}, n)
	_, err := w.load()
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	require.ErrorContains(t, err, "a.parquet")
}

func TestF013PositionAndEqualityDeletesOfOneFile(t *testing.T) {
	w := newBench(t, history(t, []icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32)}))
	n := w.data(content(t, one("id", 1, intNode), column1(int32(1), int32(2), int32(3), int32(4), int32(5), int32(6))), 6)
	w.positions([]deletes.Deleted{{DataFile: w.q.Data[n].Location, Positions: deletes.Of(0)}}, n)
	w.equality(content(t, one("id", 1, intNode), column1(int32(4))), 1, []iceberg.FieldID{1}, n)
	w.deleted(n, 0, 3)
}

// TestF015PositionsAreOfTheWholeFile has deletes around the borders of row groups.
func TestF015PositionsAreOfTheWholeFile(t *testing.T) {
	w := newBench(t, history(t, []icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32)}))
	var values []any
	for i := range 3000 {
		values = append(values, int32(i))
	}
	n := w.data(content(t, one("id", 1, intNode), column1(values...), parquet.MaxRowsPerRowGroup(1000)), 3000)
	w.equality(content(t, one("id", 1, intNode), column1(int32(0), int32(999), int32(1000), int32(2500))), 4, []iceberg.FieldID{1}, n)
	w.deleted(n, 0, 999, 1000, 2500)
}

func TestPositionDeletesReachOnlyWhatTheyApplyTo(t *testing.T) {
	w := newBench(t, nil)
	a, b := w.named("s3://b/t/a.parquet", 10), w.named("s3://b/t/b.parquet", 10)
	all := []deletes.Deleted{{DataFile: "s3://b/t/a.parquet", Positions: deletes.Of(1)}, {DataFile: "s3://b/t/b.parquet", Positions: deletes.Of(2)}, {DataFile: "s3://b/t/c.parquet", Positions: deletes.Of(300)}}
	i := w.positions(all, a)
	res, err := w.load()
	require.NoError(t, err)
	require.True(t, deletes.Of(1).Equal(res.Positions[a]))
	require.Nil(t, res.Positions[b])
	require.Equal(t, deletes.Counts{Rows: 3, Taken: 1}, res.Deletes[i])
	w.positions(all, b)
	w.deleted(a, 1)
	w.deleted(b, 2)
	w.positions([]deletes.Deleted{{DataFile: "s3://b/t/a.parquet", Positions: deletes.Of(10)}}, a)
	_, err = w.load()
	require.True(t, fault.Is(err, fault.Corrupt), "F021: %v", err)
	w.q.Deletes = w.q.Deletes[:2]
	w.q.Deletes[0].Records++
	_, err = w.load()
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
}

// TestSpellingsOfDataFiles finds data files that deletes and manifests spell
// differently, and takes no file for another.
func TestSpellingsOfDataFiles(t *testing.T) {
	candidates := func(s string) ([]filer.Path, error) {
		if s == "??" {
			return nil, fault.New(fault.Unsupported, "cannot tell")
		}
		base := strings.TrimPrefix(strings.TrimPrefix(s, "s3a://b/t/"), "s3://b/t/")
		out := []filer.Path{filer.Path("/buckets/b/t/" + base)}
		if plain := strings.ReplaceAll(base, "%20", " "); plain != base {
			out = append(out, filer.Path("/buckets/b/t/"+plain))
		}
		return out, nil
	}
	w := newBench(t, nil)
	w.q.Candidates = candidates
	a, b := w.named("s3://b/t/a.parquet", 10), w.named("s3://b/t/b c.parquet", 10)
	w.positions([]deletes.Deleted{{DataFile: "s3a://b/t/a.parquet", Positions: deletes.Of(1)}, {DataFile: "s3://b/t/b%20c.parquet", Positions: deletes.Of(2)}}, a, b)
	w.deleted(a, 1)
	w.deleted(b, 2)
	w.vectors([]deletes.Deleted{{DataFile: "s3a://b/t/a.parquet", Positions: deletes.Of(3)}}, a)
	w.deleted(a, 1, 3)

	w.put("b%20c.parquet", []byte("another file, which is what is meant"))
	w.deleted(b)

	w.positions([]deletes.Deleted{{DataFile: "??", Positions: deletes.Of(1)}}, a)
	_, err := w.load()
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
}

func TestDataFilesAreAskedForOnce(t *testing.T) {
	w := newBench(t, nil)
	a := w.named("s3://b/t/a.parquet", 10)
	w.named("s3a://b/t/a.parquet", 10)
	w.positions([]deletes.Deleted{{DataFile: "s3a://b/t/a.parquet", Positions: deletes.Of(1)}}, a)
	_, err := w.load()
	require.True(t, fault.Is(err, fault.Halt), "%v", err)
}

// counting counts how often each file is opened.
type counting struct {
	filer.Reader
	mu    sync.Mutex
	opens map[filer.Path]int
}

func (c *counting) Open(ctx gocontext.Context, p filer.Path) (filer.Object, error) {
	c.mu.Lock()
	c.opens[p]++
	c.mu.Unlock()
	return c.Reader.Open(ctx, p)
}

// TestUnitsShareTheFilesTheyRead loads the same deletes for many units at once.
func TestUnitsShareTheFilesTheyRead(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newBench(t, history(t, []icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32)}))
	n := w.data(content(t, one("id", 1, intNode), column1(int32(1), int32(2), int32(3))), 3)
	w.positions([]deletes.Deleted{{DataFile: w.q.Data[n].Location, Positions: deletes.Of(0)}}, n)
	w.equality(content(t, one("id", 1, intNode), column1(int32(2))), 1, []iceberg.FieldID{1}, n)
	r := &counting{Reader: w.fl, opens: map[filer.Path]int{}}
	w.q.Reader = r
	load := func(cache *deletes.Cache, units int) {
		clear(r.opens)
		q := w.q
		q.Cache = cache
		var all sync.WaitGroup
		for range units {
			all.Go(func() {
				res, err := deletes.Load(t.Context(), q)
				require.NoError(t, err)
				require.True(t, deletes.Of(0, 1).Equal(res.Positions[n]))
			})
		}
		all.Wait()
	}
	load(nil, 3)
	require.Equal(t, 3, r.opens[w.q.Deletes[0].At])
	cache := deletes.NewCache(1 << 20)
	load(cache, 1)
	require.Equal(t, 1, r.opens[w.q.Deletes[0].At])
	load(cache, 8)
	require.Zero(t, r.opens[w.q.Deletes[0].At])
	require.Zero(t, r.opens[w.q.Deletes[1].At])
	small := deletes.NewCache(3000) // room for one, not for both
	load(small, 4)
	load(deletes.NewCache(10), 2)
	require.Equal(t, 2, r.opens[w.q.Deletes[0].At])
}

// failing fails to read at some point.
type failing struct {
	filer.Reader
	left int
}

type failingObject struct {
	filer.Object
	f *failing
}

func (f *failing) Open(ctx gocontext.Context, p filer.Path) (filer.Object, error) {
	o, err := f.Reader.Open(ctx, p)
	return &failingObject{o, f}, err
}

func (o *failingObject) ReadAt(b []byte, off int64) (int, error) {
	if o.f.left--; o.f.left < 0 {
		return 0, fault.New(fault.Transient, "the filer is away")
	}
	return o.Object.ReadAt(b, off)
}

// TestReadsThatFail fails every read once. The kind stays, and nothing is held.
func TestReadsThatFail(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newBench(t, history(t, []icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32)}))
	n := w.data(content(t, one("id", 1, intNode), column1(int32(1), int32(2), int32(3))), 3)
	other := w.named("s3://b/t/x.parquet", 10)
	w.positions([]deletes.Deleted{{DataFile: w.q.Data[n].Location, Positions: deletes.Of(0)}}, n)
	w.vectors([]deletes.Deleted{{DataFile: "s3://b/t/x.parquet", Positions: deletes.Of(7)}}, other)
	w.equality(content(t, one("id", 1, intNode), column1(int32(2))), 1, []iceberg.FieldID{1}, n)
	for _, cached := range []bool{false, true} {
		for reads := 0; ; reads++ {
			q := w.q
			q.Parallel = 1
			q.Reader = &failing{Reader: w.fl, left: reads}
			budget := column.NewBudget(64 << 20)
			q.Columns = column.Options{Budget: budget, Whole: -1, Window: 512}
			if cached {
				q.Cache = deletes.NewCache(1 << 20)
			}
			res, err := deletes.Load(t.Context(), q)
			require.Zero(t, budget.Used(), "after %d reads", reads)
			if err == nil {
				require.True(t, deletes.Of(0, 1).Equal(res.Positions[n]))
				require.True(t, deletes.Of(7).Equal(res.Positions[other]))
				require.Greater(t, reads, 5)
				break
			}
			require.True(t, fault.Is(err, fault.Transient), "after %d reads: %v", reads, err)
		}
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newBench(t, history(t, []icego.NestedField{optional(1, "id", icego.PrimitiveTypes.Int32)}))
	n := w.data(content(t, one("id", 1, intNode), column1(int32(1))), 1)
	w.equality(content(t, one("id", 1, intNode), column1(int32(2))), 1, []iceberg.FieldID{1}, n)
	w.positions([]deletes.Deleted{{DataFile: w.q.Data[n].Location, Positions: deletes.Of(0)}}, n)
	ctx, cancel := gocontext.WithCancel(t.Context())
	cancel()
	_, err := deletes.Load(ctx, w.q)
	require.True(t, fault.Is(err, fault.Canceled), "%v", err)
}

func TestVectorsNeedRoom(t *testing.T) {
	w := newBench(t, nil)
	p := &deletes.Positions{}
	for i := int64(0); i < 1_000_000; i += 3 {
		p.Add(i)
	}
	n := w.named("s3://b/t/a.parquet", 1_000_000)
	w.vectors([]deletes.Deleted{{DataFile: "s3://b/t/a.parquet", Positions: p}}, n)
	for bytes, kind := range map[int64]fault.Kind{1 << 20: fault.None, 100_000: fault.TooLarge} {
		budget := column.NewBudget(bytes)
		w.q.Columns.Budget = budget
		_, err := w.load()
		require.Equal(t, kind, fault.Of(err), "%v", err)
		require.Zero(t, budget.Used())
	}
}
