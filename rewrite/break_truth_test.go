package rewrite_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/compress"
	icego "github.com/apache/iceberg-go"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/deletes"
)

// TestMergedFilesSayTheTruth merges random units, and what came of them once more,
// and compares all that the files say of themselves with their pages.
func TestMergedFilesSayTheTruth(t *testing.T) {
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		if checks++; measure.Race && checks > 3 {
			return // the race detector makes them ten times as slow
		}
		ids := 0
		schema := icego.NewSchema(0, drawFields(t, &ids, rapid.IntRange(0, 2).Draw(t, "depth"), 4)...)
		w := newWorld(t, schema, rapid.IntRange(2, 3).Draw(t, "format version"))
		drawSettings(t, &w.request)
		for _, f := range schema.Fields() {
			if rapid.Bool().Draw(t, "bloom") {
				w.request.Table.Properties["write.parquet.bloom-filter-enabled.column."+f.Name] = "true"
			}
		}
		// All outputs stay in memory, and a filter would take a MiB for each row group.
		w.request.Table.Properties["write.parquet.bloom-filter-max-bytes"] = "8192"
		d := drawer{t: t, rng: &lcg{x: rapid.Uint64().Draw(t, "seed")}}
		for range rapid.IntRange(1, 4).Draw(t, "sources") {
			d.nulls = rapid.SampledFrom([]int{0, 10, 50, 100}).Draw(t, "nulls")
			d.few = rapid.SampledFrom([]int{0, 1, 10, 100}).Draw(t, "few")
			fields := schema.Fields()
			if rapid.Bool().Draw(t, "evolved") {
				fields = older(t, fields)
				if !slices.ContainsFunc(fields, func(f icego.NestedField) bool { return f.ID < 100_000 }) {
					fields = schema.Fields() // some column must be the table's
				}
			}
			w.draw(t, &d, fields)
		}
		res := w.merge(t)
		second := newWorld(t, schema, w.request.Table.FormatVersion)
		at := 0
		for _, o := range res.Outputs {
			audit(t, w.filer.Content(o.At))
			auditMetrics(t, &w.request, w.filer.Content(o.At), o.Metrics)
			rows := make([]row, o.Records)
			for i := range rows {
				rows[i] = w.want[at].(row)
				at++
			}
			second.add(w.filer.Content(o.At), rows, drawDeletes(t, len(rows))).Metrics = o.Metrics
		}
		if len(res.Outputs) == 0 {
			return
		}
		drawSettings(t, &second.request)
		if singles(&second.request) && at > 500 {
			second.request.MaxRows, second.request.TargetBytes = 100, 5_000
		}
		second.request.Verify = rewrite.VerifyContent
		for _, o := range second.merge(t).Outputs {
			audit(t, second.filer.Content(o.At))
			auditMetrics(t, &second.request, second.filer.Content(o.At), o.Metrics)
		}
	})
}

// TestStatisticsCoverRowsEncodedBeforeACopiedChunk puts rows that are encoded before
// a chunk that is copied whole: the chunk's statistics are not those of its source
// alone.
func TestStatisticsCoverRowsEncodedBeforeACopiedChunk(t *testing.T) {
	schema := icego.NewSchema(0, flatFields()...)
	w := newWorld(t, schema, 2)
	w.request.Copying = rewrite.CopyForced
	for i, gone := range []*deletes.Positions{deletes.Of(3), nil} {
		rows := make([]row, 10)
		for k := range rows {
			rows[k] = row{1: int64(1000 - 500*i + k), 2: fmt.Sprint(9-i, k), 3: nil}
			if k%2 == i {
				rows[k][3] = math.Float64bits(float64(100*(1-i) + k))
			}
		}
		w.add(writeRows(t, schema, rows, style{Codec: compress.Codecs.Snappy, PageBytes: 1 << 20, GroupRows: 100, Index: true}, false), rows, gone)
	}
	for _, o := range w.merge(t).Outputs {
		audit(t, w.filer.Content(o.At))
	}
}
