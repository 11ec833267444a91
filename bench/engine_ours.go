package main

import (
	"context"
	"encoding/json"
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite"
)

// drain is a sink that keeps nothing.
type drain struct{ n int64 }

func (d *drain) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return len(b), nil
}

// Done implements rewrite.Sink.
func (d *drain) Done(context.Context) (rewrite.Stored, error) {
	return rewrite.Stored{Location: "s3://bench/out.parquet", Bytes: d.n}, nil
}

// Abort implements rewrite.Sink.
func (d *drain) Abort() {}

// table is what our engine needs to know of a table with the shelf's files.
func (s *shelf) table() (rewrite.Table, error) {
	raw, err := json.Marshal(s.schema)
	if err != nil {
		return rewrite.Table{}, err
	}
	m, err := iceberg.ParseMetadata(fmt.Appendf(nil, `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1",
		"location":"s3://%s/%s/%s","last-sequence-number":1,"last-updated-ms":1760000000000,"last-column-id":%d,
		"current-schema-id":%d,"schemas":[%s],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,
		"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"current-snapshot-id":-1,"refs":{},
		"snapshots":[],"statistics":[],"snapshot-log":[],"metadata-log":[]}`,
		lakeBucket, lakeNamespace, s.name, s.schema.HighestFieldID(), s.schema.ID, raw))
	if err != nil {
		return rewrite.Table{}, err
	}
	pt, err := m.PartitionType(0)
	if err != nil {
		return rewrite.Table{}, err
	}
	return rewrite.Table{FormatVersion: 2, Schema: s.schema, History: m.History(), Names: icego.NameMapping{}, Properties: map[string]string{}, Type: pt}, nil
}

// request is that of a unit with all files, whose outputs are forgotten.
func (s *shelf) request() (rewrite.Request, error) {
	t, err := s.table()
	if err != nil {
		return rewrite.Request{}, err
	}
	q := rewrite.Request{Table: t, TargetBytes: targetBytes, Reader: s, Create: func(context.Context, int) (rewrite.Sink, error) { return &drain{}, nil }}
	for i, p := range s.at {
		f := s.files[i]
		q.Sources = append(q.Sources, rewrite.Source{
			Location: location(p), At: p, Bytes: f.bytes, Records: f.rows, Type: t.Type,
			Metrics: rewrite.Metrics{
				ColumnSizes: byID(f.sizes), Values: byID(f.values), Nulls: byID(f.nulls), NaNs: byID(f.nans), Lower: byID(f.lower), Upper: byID(f.upper),
			},
		})
	}
	return q, nil
}

// ours merges the files with our engine and its proof, and forgets what it
// wrote.
func (s *shelf) ours(ctx context.Context) error {
	q, err := s.request()
	if err != nil {
		return err
	}
	res, err := rewrite.Merge(ctx, q)
	if err != nil {
		return err
	}
	if res.Proof.RowsWritten != s.rows {
		return fmt.Errorf("our engine wrote %d of %d rows", res.Proof.RowsWritten, s.rows)
	}
	return nil
}

func byID[T any](m map[int]T) map[iceberg.FieldID]T {
	out := make(map[iceberg.FieldID]T, len(m))
	for id, v := range m {
		out[iceberg.FieldID(id)] = v
	}
	return out
}

// oursTimes is how often our engine merges in a run, which once would be over in the
// fifth of a second.
const oursTimes = 10

// engineBench compares the engines alone: files in memory, nothing stored, one
// core. Peer: arrow-go, which decodes and encodes.
func engineBench(name string, s shape) harness.Bench {
	return harness.Bench{Name: name, Unit: "MB/s", Runs: 5, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		d, err := data.get(ctx, s)
		if err != nil {
			return nil, err
		}
		m, err := newShelf(d)
		if err != nil {
			return nil, err
		}
		return &harness.Contest{Ours: m.onOneCore(oursTimes, m.ours), Peer: m.onOneCore(1, m.arrowGo)}, nil
	}}
}
