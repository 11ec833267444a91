package weed_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// shaped is an empty table of a schema.
func (l *lake) shaped(t *testing.T, schema *icego.Schema) *proofTable {
	t.Helper()
	p := &proofTable{t: t, l: l, name: fmt.Sprintf("t%d", proofTables.Add(1))}
	_, err := l.cat.CreateTable(t.Context(), p.ident(), schema, catalog.WithProperties(icego.Properties{"format-version": "2"}))
	require.NoError(t, err)
	p.dropped()
	return p
}

// change commits what edit does.
func (p *proofTable) change(edit func(tx *icetable.Transaction) error) {
	p.t.Helper()
	tx := p.load().NewTransaction()
	require.NoError(p.t, edit(tx))
	_, err := tx.Commit(p.t.Context())
	require.NoError(p.t, err)
}

// stored writes rows as a Parquet file of the table and begins its entry.
func stored[T any](p *proofTable, content icego.ManifestEntryContent, rows ...T) *icego.DataFileBuilder {
	p.t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf)
	_, err := w.Write(rows)
	require.NoError(p.t, err)
	require.NoError(p.t, w.Close())
	return p.put(content, buf.Bytes(), len(rows))
}

// put stores a file of the table and begins its entry.
func (p *proofTable) put(content icego.ManifestEntryContent, file []byte, rows int) *icego.DataFileBuilder {
	p.t.Helper()
	t := p.load()
	p.next++
	location := fmt.Sprintf("%s/data/file-%d.parquet", t.Location(), p.next)
	_, err := p.l.fl.Put(p.t.Context(), filer.BucketsRoot.Join(locationParts(p.t, location)...), file, filer.CreateOptions{})
	require.NoError(p.t, err)
	b, err := icego.NewDataFileBuilder(t.Spec(), content, location, icego.ParquetFile, nil, nil, nil, int64(rows), int64(len(file)))
	require.NoError(p.t, err)
	return b
}

// records is the number of rows in the live data files, deleted ones included.
func (p *proofTable) records() (n int64) {
	p.t.Helper()
	for _, e := range p.entries() {
		if e.Status() != icego.EntryStatusDELETED && e.DataFile().ContentType() == icego.EntryContentData {
			n += e.DataFile().Count()
		}
	}
	return n
}

// add appends a data file for each builder.
func (p *proofTable) add(files ...*icego.DataFileBuilder) {
	p.t.Helper()
	p.change(func(tx *icetable.Transaction) error {
		var all []icego.DataFile
		for _, f := range files {
			all = append(all, f.Build())
		}
		return tx.AddDataFiles(p.t.Context(), all, nil, icetable.WithoutAutoNameMapping())
	})
}

// remove commits an equality delete over a column.
func (p *proofTable) remove(keys *icego.DataFileBuilder, column int) {
	p.t.Helper()
	p.change(func(tx *icetable.Transaction) error {
		return tx.NewRowDelta(nil).AddDeletes(keys.EqualityFieldIDs([]int{column}).Build()).Commit(p.t.Context())
	})
}

// widen gives a column a wider type.
func (p *proofTable) widen(column string, to icego.Type) {
	p.t.Helper()
	p.change(func(tx *icetable.Transaction) error {
		return tx.UpdateSchema(true, false).UpdateColumn([]string{column}, icetable.ColumnUpdate{FieldType: icego.Optional[icego.Type]{Val: to, Valid: true}}).Commit()
	})
}

// files are the live data and delete files of the head.
func (p *proofTable) files() (data, deletes int) {
	p.t.Helper()
	for _, e := range p.entries() {
		switch {
		case e.Status() == icego.EntryStatusDELETED:
		case e.DataFile().ContentType() == icego.EntryContentData:
			data++
		default:
			deletes++
		}
	}
	return data, deletes
}

// pair lets compaction work on tables of two files.
var pair = map[string]string{"min_input_files": "2"}

// compacted requires that Seaice merges the table into one file with these rows
// and no deletes.
func (p *proofTable) compacted(fl filer.Filer, rows []string) ops.Result {
	p.t.Helper()
	res := p.compact(fl)
	require.Equal(p.t, ops.Finished, res.Status, "%s %+v", res.Error, res.Reasons)
	require.Equal(p.t, commit.Committed, res.Commit.Outcome)
	require.Empty(p.t, res.Warnings)
	data, deletes := p.files()
	require.Equal(p.t, 1, data)
	require.Zero(p.t, deletes)
	require.Equal(p.t, rows, p.rows(icetable.MainBranch))
	p.sound()
	return res
}

func (p *proofTable) compact(fl filer.Filer) ops.Result {
	p.t.Helper()
	results, err := runnerOn(fl, clock.System()).Run(p.t.Context(), worker.Request{
		Table: p.id(), Only: []ops.Kind{config.Compact}, Layers: config.Layers{Flags: pair},
	})
	require.NoError(p.t, err)
	require.Len(p.t, results, 1)
	return results[0]
}

type (
	narrow struct {
		ID int32  `parquet:"id,id(1)"`
		V  string `parquet:"v,id(2)"`
	}
	plain struct {
		ID int64  `parquet:"id,id(1)"`
		V  string `parquet:"v,id(2)"`
	}
	longKey struct {
		ID int64 `parquet:"id,id(1)"`
	}
	textKey struct {
		V string `parquet:"v,id(2)"`
	}
)

var narrowSchema = icego.NewSchema(0,
	icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int32, Required: true},
	icego.NestedField{ID: 2, Name: "v", Type: icego.PrimitiveTypes.String, Required: true})

// P1: rows of files written before a key was widened are deleted by keys
// written after.
func TestP1EqualityDeleteAfterPromotion(t *testing.T) {
	l := proofLake(t)
	shape := func() *proofTable {
		p := l.shaped(t, narrowSchema)
		for i := range int32(2) {
			p.add(stored(p, icego.EntryContentData, narrow{i*10 + 1, "kept"}, narrow{i*10 + 2, "deleted"}))
		}
		p.widen("id", icego.PrimitiveTypes.Int64)
		p.remove(stored(p, icego.EntryContentEqDeletes, longKey{2}, longKey{12}), 1)
		return p
	}
	theirs := shape()
	require.NoError(t, l.builtin(t).compact(theirs))
	require.Equal(t, []string{"1 kept", "11 kept", "12 deleted", "2 deleted"}, theirs.rows(icetable.MainBranch), "the built-in worker brings deleted rows back")
	_, deletes := theirs.files()
	require.Zero(t, deletes, "for good")

	shape().compacted(l.fl, []string{"1 kept", "11 kept"})
}

// listed is a table whose key column follows a list, with two files of two rows:
// each has the list and, in file i, the id begin and 10 more than that.
func (l *lake) listed(t *testing.T, element icego.Type, rows map[int64]any) *proofTable {
	t.Helper()
	p := l.shaped(t, icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "tags", Type: &icego.ListType{ElementID: 3, Element: element}},
		icego.NestedField{ID: 2, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true}))
	as, err := icetable.SchemaToArrowSchema(p.load().Schema(), nil, true, false)
	require.NoError(t, err)
	for i := range int64(2) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, as)
		for _, id := range sortedKeys64(rows) {
			list := b.Field(0).(*array.ListBuilder)
			list.Append(true)
			switch v := rows[id].(type) {
			case []string:
				list.ValueBuilder().(*array.StringBuilder).AppendValues(v, nil)
			case []int64:
				list.ValueBuilder().(*array.Int64Builder).AppendValues(v, nil)
			}
			b.Field(1).(*array.Int64Builder).Append(i*10 + id)
		}
		rec := b.NewRecordBatch()
		var buf bytes.Buffer
		w, err := pqarrow.NewFileWriter(as, &buf, nil, pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		require.NoError(t, w.Write(rec))
		require.NoError(t, w.Close())
		rec.Release()
		b.Release()
		p.add(p.put(icego.EntryContentData, buf.Bytes(), len(rows)))
	}
	return p
}

func sortedKeys64(m map[int64]any) []int64 { return slices.Sorted(maps.Keys(m)) }

// idKey is a key of such a table, where the catalog numbered the columns.
type idKey struct {
	ID int64 `parquet:"id,id(3)"`
}

func (p *proofTable) removeIDs(keys ...idKey) {
	p.t.Helper()
	id, ok := p.load().Schema().FindFieldByName("id")
	require.True(p.t, ok)
	require.Equal(p.t, 3, id.ID)
	p.remove(stored(p, icego.EntryContentEqDeletes, keys...), id.ID)
}

// P2: the key column follows a list.
func TestP2EqualityDeleteBehindAList(t *testing.T) {
	l := proofLake(t)
	shape := func() *proofTable {
		p := l.listed(t, icego.PrimitiveTypes.String, map[int64]any{1: []string{"a", "b", "c"}, 2: []string{"x", "y", "z"}})
		p.removeIDs(idKey{2}, idKey{12})
		return p
	}
	theirs := shape()
	require.NoError(t, l.builtin(t).compact(theirs))
	require.Equal(t, int64(4), theirs.records(), "the built-in worker brings deleted rows back")

	shape().compacted(l.fl, []string{`["a","b","c"] 1`, `["a","b","c"] 11`})
}

// P2b: the value after a list's first is taken for the key.
func TestP2bEqualityDeleteTakesLiveRows(t *testing.T) {
	l := proofLake(t)
	shape := func() *proofTable {
		p := l.listed(t, icego.PrimitiveTypes.Int64, map[int64]any{1: []int64{5, 2, 9}, 3: []int64{7, 8, 9}})
		p.removeIDs(idKey{2}) // no row has it
		return p
	}
	theirs := shape()
	require.NoError(t, l.builtin(t).compact(theirs))
	require.Equal(t, int64(2), theirs.records(), "the built-in worker deletes rows that nobody deleted")

	shape().compacted(l.fl, []string{"[5,2,9] 1", "[5,2,9] 11", "[7,8,9] 13", "[7,8,9] 3"})
}

// P13: a writer commits while a compaction runs, after everything was staged.
func TestP13HeadMovesWhileCompacting(t *testing.T) {
	l := proofLake(t)
	theirs := l.table(t, enough, nil)
	b := l.builtin(t)
	b.weed = &weedAtSwap{SeaweedFilerClient: b.weed, before: sync.OnceFunc(func() { theirs.write(icetable.MainBranch) })}
	require.ErrorContains(t, b.compact(theirs), "stale")
	data, _ := theirs.files()
	require.Equal(t, enough+1, data, "nothing was committed")

	ours := l.table(t, enough, nil)
	var both []string
	res := ours.compact(&atSwap{Filer: l.fl, before: sync.OnceFunc(func() {
		ours.write(icetable.MainBranch)
		both = ours.rows(icetable.MainBranch)
	})})
	require.Equal(t, ops.Finished, res.Status, res.Error)
	require.Equal(t, 2, res.Commit.Attempts)
	require.Equal(t, 1, res.Commit.Rebases)
	data, _ = ours.files()
	require.Equal(t, 2, data, "the merged file and the writer's")
	require.Equal(t, both, ours.rows(icetable.MainBranch))
	ours.sound()
}

// P16: files from before and after a column was widened.
func TestP16PromotedColumns(t *testing.T) {
	l := proofLake(t)
	shape := func() *proofTable {
		p := l.shaped(t, narrowSchema)
		p.add(stored(p, icego.EntryContentData, narrow{1, "a"}))
		p.widen("id", icego.PrimitiveTypes.Int64)
		p.add(stored(p, icego.EntryContentData, plain{1 << 40, "b"}))
		return p
	}
	theirs := shape()
	require.NoError(t, l.builtin(t).compact(theirs), "the built-in worker says that it succeeded")
	data, _ := theirs.files()
	require.Equal(t, 2, data, "and did nothing")

	shape().compacted(l.fl, []string{"1 a", "1099511627776 b"})
}

// P17: a compaction takes longer than a minute and somebody sets a property just
// before it commits. What is waited for here is the state that leaves: metadata
// last updated more than a minute after the rewrite began.
func TestP17PropertySetDuringALongRewrite(t *testing.T) {
	l := proofLake(t)
	late := func(p *proofTable) func() {
		return sync.OnceFunc(func() {
			tb, err := model.Attach(t.Context(), l.fl, model.Config{ID: p.id(), Clock: &later{by: 65 * time.Second}, Seed: 17, Tick: -1})
			require.NoError(t, err)
			require.NoError(t, tb.SetProperties(t.Context(), map[string]string{"comment": "late"}))
		})
	}
	theirs := l.table(t, enough, nil)
	b := l.builtin(t)
	b.weed = &weedAtList{SeaweedFilerClient: b.weed, before: late(theirs)}
	require.ErrorContains(t, b.compact(theirs), "timestamp")
	data, _ := theirs.files()
	require.Equal(t, enough, data, "nothing was committed")

	ours := l.table(t, enough, nil)
	rows := ours.rows(icetable.MainBranch)
	res := ours.compacted(&atSwap{Filer: l.fl, before: late(ours)}, rows)
	require.Equal(t, 2, res.Commit.Attempts)
	head := ours.load()
	require.GreaterOrEqual(t, head.CurrentSnapshot().TimestampMs, head.Metadata().LastUpdatedMillis()-60_000)
}

// P26: a column that equality deletes are about was dropped from the schema.
func TestP26EqualityDeleteOverADroppedColumn(t *testing.T) {
	l := proofLake(t)
	shape := func() *proofTable {
		p := l.shaped(t, icego.NewSchema(0,
			icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
			icego.NestedField{ID: 2, Name: "v", Type: icego.PrimitiveTypes.String},
			icego.NestedField{ID: 3, Name: "w", Type: icego.PrimitiveTypes.String}))
		p.add(stored(p, icego.EntryContentData, plain{1, "a"}, plain{2, "gone"}))
		p.add(stored(p, icego.EntryContentData, plain{3, "gone"}, plain{4, "b"}))
		p.remove(stored(p, icego.EntryContentEqDeletes, textKey{"gone"}), 2)
		p.change(func(tx *icetable.Transaction) error {
			return tx.UpdateSchema(true, false).DeleteColumn([]string{"v"}).Commit()
		})
		return p
	}
	theirs := shape()
	require.ErrorContains(t, l.builtin(t).compact(theirs), "not found", "the built-in worker cannot compact the table any more")

	shape().compacted(l.fl, []string{"1 (null)", "4 (null)"})
}
