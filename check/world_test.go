package check_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

// world is a clean table to break.
type world struct {
	*model.Scene
	t  *testing.T
	fl *filertest.Filer
}

func newWorld(t *testing.T, version int) *world {
	t.Helper()
	fl := filertest.New(filertest.Options{})
	return &world{Scene: scene(t, fl, version, model.Plain), t: t, fl: fl}
}

func (w *world) at(spelling string) filer.Path {
	w.t.Helper()
	v, err := iceberg.Load(w.t.Context(), w.fl, tableID)
	require.NoError(w.t, err)
	p, err := v.Locations.Resolve(spelling)
	require.NoError(w.t, err)
	return p
}

// edit changes the metadata.
func (w *world) edit(f func(m map[string]any)) {
	w.t.Helper()
	require.NoError(w.t, w.Edit(w.t.Context(), f))
}

// snapshotDoc is the JSON of a snapshot within metadata.
func snapshotDoc(m map[string]any, id iceberg.SnapshotID) map[string]any {
	all, err := json.Marshal(m["snapshots"])
	if err != nil {
		panic(err)
	}
	var list []map[string]any
	d := json.NewDecoder(bytes.NewReader(all))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		panic(err)
	}
	out := make([]any, len(list))
	var found map[string]any
	for i, s := range list {
		out[i] = s
		if n, _ := s["snapshot-id"].(json.Number).Int64(); n == int64(id) {
			found = s
		}
	}
	m["snapshots"] = out
	return found
}

// record edits the catalog record.
func (w *world) record(f func(m map[string]any)) {
	w.t.Helper()
	e, err := w.fl.Stat(w.t.Context(), w.Record())
	require.NoError(w.t, err)
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(e.Extended[iceberg.AttrMetadata]))
	d.UseNumber()
	require.NoError(w.t, d.Decode(&m))
	f(m)
	b, err := json.Marshal(m)
	require.NoError(w.t, err)
	w.fl.SetAttributes(w.Record(), map[string][]byte{iceberg.AttrMetadata: b})
}

type object = map[string]any

// avro rewrites an Avro file with its records changed. Size is the new one.
func (w *world) avro(p filer.Path, f func(records []object) []object) (size int64) {
	w.t.Helper()
	r, err := ocf.NewReader(bytes.NewReader(w.fl.Content(p)))
	require.NoError(w.t, err)
	var records []object
	for {
		var rec any
		err := r.Decode(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(w.t, err)
		records = append(records, rec.(object))
	}
	records = f(records)
	meta := r.Metadata()
	text := string(meta["avro.schema"])
	delete(meta, "avro.schema")
	delete(meta, "avro.codec")
	var out bytes.Buffer
	schema, err := avro.Parse(text)
	require.NoError(w.t, err)
	wr, err := ocf.NewWriter(&out, schema, ocf.WithMetadata(meta), ocf.WithSchema(text))
	require.NoError(w.t, err)
	for _, rec := range records {
		require.NoError(w.t, wr.Encode(rec))
	}
	require.NoError(w.t, wr.Close())
	w.fl.PutFile(p, out.Bytes())
	return int64(out.Len())
}

// list edits what the head's list says about one manifest.
func (w *world) list(deletes bool, f func(m object)) {
	w.t.Helper()
	w.avro(w.at(w.Head("").List), func(records []object) []object {
		f(w.pick(records, deletes))
		return records
	})
}

// pick is the first manifest of its kind with live files.
func (w *world) pick(records []object, deletes bool) object {
	for _, r := range records {
		if (number(r["content"]) == 1) == deletes && number(r["added_files_count"])+number(r["existing_files_count"]) > 0 {
			return r
		}
	}
	w.t.Fatal("the list has no such manifest")
	return nil
}

func number(v any) int64 {
	switch n := v.(type) {
	case int32:
		return int64(n)
	case int64:
		return n
	case int:
		return int64(n)
	}
	return 0
}

// manifest edits the entries of the first manifest of its kind in the head's
// list, and makes all lists name its new size.
func (w *world) manifest(deletes bool, f func(entries []object) []object) {
	w.t.Helper()
	var path string
	w.list(deletes, func(m object) { path = m["manifest_path"].(string) })
	w.manifestAt(path, f)
}

func (w *world) manifestAt(path string, f func(entries []object) []object) {
	w.t.Helper()
	size := w.avro(w.at(path), f)
	for _, s := range w.Snapshots() {
		w.avro(w.at(s.List), func(records []object) []object {
			for _, r := range records {
				if r["manifest_path"] == path {
					r["manifest_length"] = size
				}
			}
			return records
		})
	}
}

// live edits the data_file of the first live entry.
func (w *world) live(deletes bool, f func(entry, file object)) {
	w.t.Helper()
	w.manifest(deletes, func(entries []object) []object {
		for _, e := range entries {
			if number(e["status"]) != 2 {
				f(e, e["data_file"].(object))
				return entries
			}
		}
		w.t.Fatal("no live entry")
		return nil
	})
}

// dataFile is the first live data file of the head.
func (w *world) dataFile() filer.Path {
	w.t.Helper()
	for _, e := range w.Head("").DataFiles() {
		return e.File.At
	}
	w.t.Fatal("no data file")
	return ""
}

func (w *world) deleteFile() filer.Path {
	w.t.Helper()
	for _, e := range w.Head("").DeleteFiles() {
		return e.File.At
	}
	w.t.Fatal("no delete file")
	return ""
}
