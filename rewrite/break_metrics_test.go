package rewrite_test

import (
	"bytes"
	"context"
	"errors"
	"io"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

// auditMetrics compares what the entry of an output states with its values, of all
// types: counts exactly, bounds of what is never cut exactly, others as bounds.
func auditMetrics(t require.TestingT, q *rewrite.Request, content []byte, m rewrite.Metrics) {
	f, err := column.Open(context.Background(), bytes.NewReader(content), "the output", column.Options{})
	require.NoError(t, err)
	defer f.Close()
	target, err := resolve.NewTarget(q.Table.Schema, resolve.Options{Lineage: q.Table.FormatVersion >= 3, Like: f.Footer()})
	require.NoError(t, err)
	config := metrics.NewConfig(q.Table.Properties, q.Table.Schema, q.Table.Order)
	for i := range target.Leaves {
		leaf := target.Leaves[i]
		leaf.Node = f.Footer().Schema.Leaves[i]
		measure := metrics.For(&leaf, config)
		if !measure.Reported() {
			continue
		}
		c := measure.Collect()
		r := f.Reader(i)
		for {
			var b column.Batch
			err := r.Next(&b, 1<<20)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			c.Add(&b)
		}
		want := c.Stats()
		for _, n := range []struct {
			stated map[iceberg.FieldID]int64
			want   *int64
		}{{m.Values, want.Values}, {m.Nulls, want.Nulls}, {m.NaNs, want.NaNs}} {
			if x, ok := n.stated[leaf.ID]; ok {
				require.NotNil(t, n.want, leaf.Name)
				require.Equal(t, *n.want, x, "counts of %s (%s)", leaf.Name, leaf.Type)
			}
		}
		cut := false
		switch leaf.Type.(type) {
		case icego.StringType, icego.BinaryType:
			cut = true
		}
		for sign, b := range map[int][2][]byte{-1: {m.Lower[leaf.ID], want.Lower}, 1: {m.Upper[leaf.ID], want.Upper}} {
			if b[0] == nil || b[1] == nil {
				continue
			}
			got, err := iceberg.DecodeBound(leaf.Type, b[0])
			require.NoError(t, err)
			exact, err := iceberg.DecodeBound(leaf.Type, b[1])
			require.NoError(t, err)
			order, err := got.Compare(exact)
			require.NoError(t, err)
			require.GreaterOrEqual(t, order*sign, 0, "%s (%s): %v bounds %v", leaf.Name, leaf.Type, got.Any(), exact.Any())
			require.True(t, cut || order == 0, "%s (%s): %v is not %v", leaf.Name, leaf.Type, got.Any(), exact.Any())
		}
	}
}
