package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/puffin"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// Retention are the fields of a ref that say how long things are kept; zero is
// not set.
type Retention struct {
	MaxRefAgeMs        int64
	MaxSnapshotAgeMs   int64
	MinSnapshotsToKeep int64
}

// CreateBranch makes a branch at a snapshot; 0 is the head of main.
func (tb *Table) CreateBranch(ctx context.Context, name string, at iceberg.SnapshotID, r Retention) error {
	return tb.setRef(ctx, name, at, "branch", r)
}

// CreateTag makes a tag at a snapshot; 0 is the head of main.
func (tb *Table) CreateTag(ctx context.Context, name string, at iceberg.SnapshotID, r Retention) error {
	return tb.setRef(ctx, name, at, "tag", r)
}

func (tb *Table) setRef(ctx context.Context, name string, at iceberg.SnapshotID, kind string, r Retention) error {
	return tb.changeMetadata(ctx, func(d document) error {
		if at == 0 {
			main, ok := d.ref("main")
			if !ok {
				return badRef("main")
			}
			at = main.Snapshot
		}
		if d.snapshot(at) == nil {
			return fault.New(fault.Stale, fmt.Sprintf("there is no snapshot %d", at))
		}
		d.setRef(name, at, kind)
		ref := d.object("refs").object(name)
		for k, n := range map[string]int64{
			"max-ref-age-ms": r.MaxRefAgeMs, "max-snapshot-age-ms": r.MaxSnapshotAgeMs, "min-snapshots-to-keep": r.MinSnapshotsToKeep,
		} {
			if n != 0 {
				ref[k] = n
			}
		}
		return nil
	})
}

// RemoveRef drops a branch or a tag.
func (tb *Table) RemoveRef(ctx context.Context, name string) error {
	return tb.changeMetadata(ctx, func(d document) error {
		if _, ok := d.ref(name); !ok || name == "main" {
			return badRef(name)
		}
		delete(d.object("refs"), name)
		return nil
	})
}

// Rollback points a branch at an older snapshot, as a restore does; "" is main.
func (tb *Table) Rollback(ctx context.Context, branch string, to iceberg.SnapshotID) error {
	if branch == "" {
		branch = "main"
	}
	return tb.changeMetadata(ctx, func(d document) error {
		if d.snapshot(to) == nil {
			return fault.New(fault.Stale, fmt.Sprintf("there is no snapshot %d", to))
		}
		d.advance(branch, to, tb.nowMs())
		return nil
	})
}

// DropSnapshots removes snapshots from the metadata as an expiry of another
// engine does, and no files. Snapshots that a ref points at cannot go.
func (tb *Table) DropSnapshots(ctx context.Context, ids ...iceberg.SnapshotID) error {
	gone := map[int64]bool{}
	for _, id := range ids {
		gone[int64(id)] = true
	}
	return tb.changeMetadata(ctx, func(d document) error {
		for _, r := range d.refs() {
			if gone[int64(r.Snapshot)] {
				return fault.New(fault.Unsupported, fmt.Sprintf("ref %q points at snapshot %d", r.Name, r.Snapshot))
			}
		}
		for _, key := range []string{"snapshots", "statistics", "partition-statistics"} {
			if list, ok := d[key].([]any); ok {
				d[key] = without(list, gone)
			}
		}
		log := []any{} // everything before a gap goes as well
		for _, e := range d.objects("snapshot-log") {
			if gone[e.num("snapshot-id")] {
				log = []any{}
				continue
			}
			log = append(log, map[string]any(e))
		}
		d["snapshot-log"] = log
		return nil
	})
}

func without(list []any, gone map[int64]bool) []any {
	out := []any{}
	for _, e := range list {
		o, _ := e.(map[string]any)
		if !gone[document(o).num("snapshot-id")] {
			out = append(out, e)
		}
	}
	return out
}

// SetStatistics writes a Puffin file with one sketch for a snapshot and
// registers it. It returns the file's path.
func (tb *Table) SetStatistics(ctx context.Context, id iceberg.SnapshotID) (filer.Path, error) {
	if err := tb.Refresh(ctx); err != nil {
		return "", err
	}
	s := tb.Snapshot(id)
	if s == nil {
		return "", fault.New(fault.Stale, fmt.Sprintf("there is no snapshot %d", id))
	}
	var buf bytes.Buffer
	w, err := puffin.NewWriter(&buf)
	if err != nil {
		return "", fault.Wrap(fault.Halt, "open puffin writer", err)
	}
	if err := w.SetCreatedBy("model"); err != nil {
		return "", fault.Wrap(fault.Halt, "open puffin writer", err)
	}
	blob, err := w.AddBlob(puffin.BlobMetadataInput{
		Type: "apache-datasketches-theta-v1", SnapshotID: int64(id), SequenceNumber: int64(s.Seq), Fields: []int32{1},
		Properties: map[string]string{"ndv": fmt.Sprint(len(s.Rows))},
	}, []byte("no sketch"))
	if err != nil {
		return "", fault.Wrap(fault.Halt, "add blob", err)
	}
	if err := w.Finish(); err != nil {
		return "", fault.Wrap(fault.Halt, "close puffin writer", err)
	}
	at := tb.metadataDir().Join(tb.uuid().String() + ".stats")
	if _, err := tb.fl.Put(ctx, at, buf.Bytes(), filer.CreateOptions{}); err != nil {
		return "", fault.In("write "+at.String(), err)
	}
	stats := map[string]any{
		"snapshot-id": int64(id), "statistics-path": tb.spell(Layout{}, at), "file-size-in-bytes": int64(buf.Len()),
		"file-footer-size-in-bytes": int64(buf.Len()) - puffin.MagicSize - blob.Length,
		"blob-metadata": []any{map[string]any{
			"type": "apache-datasketches-theta-v1", "snapshot-id": int64(id), "sequence-number": int64(s.Seq), "fields": []any{int64(1)},
		}},
	}
	return at, tb.changeMetadata(ctx, func(d document) error {
		list, _ := d["statistics"].([]any)
		d["statistics"] = append(without(list, map[int64]bool{int64(id): true}), stats)
		return nil
	})
}

// nameMapping is the text of a name mapping of the schema.
func nameMapping(s *icego.Schema) (string, error) {
	data, err := json.Marshal(s.NameMapping())
	return string(data), fault.Wrap(fault.Halt, "encode name mapping", err)
}
