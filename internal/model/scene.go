package model

import (
	"context"
	"fmt"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

// TB is what a Scene needs of a test; *testing.T, *testing.B and *rapid.T have it.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Scene is a table for a test that tells a story: its methods have no context
// and fail the test instead of returning errors. All of Table is there too,
// under Table where a name is taken.
type Scene struct {
	*Table
	t TB
}

// NewScene makes a table in a filer in memory. Without an id it is
// lake/ns/events; without a clock it has the filer's; without a schema it is
// "id long!, name string".
func NewScene(t TB, fl *filertest.Filer, cfg Config) *Scene {
	t.Helper()
	if cfg.ID == (iceberg.TableID{}) {
		cfg.ID = iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "events"}
	}
	if cfg.Clock == nil {
		cfg.Clock = fl.Virtual()
	}
	if cfg.Schema == nil {
		cfg.Schema = Columns(t, "id long!, name string")
	}
	tb, err := NewTable(t.Context(), fl, cfg)
	if err != nil {
		t.Fatalf("create the table: %v", err)
	}
	return &Scene{Table: tb, t: t}
}

// Columns is ParseSchema for tests.
func Columns(t TB, text string) *icego.Schema {
	t.Helper()
	s, err := ParseSchema(text)
	if err != nil {
		t.Fatalf("parse schema: %v", err)
	}
	return s
}

func (s *Scene) done(doing string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", doing, err)
	}
}

// R makes a row of values in the order of the current schema.
func (s *Scene) R(values ...any) Row {
	s.t.Helper()
	row, err := s.Row(values...)
	s.done("make row", err)
	return row
}

// File appends one data file with exactly these rows and returns it.
func (s *Scene) File(rows ...Row) *File {
	s.t.Helper()
	return s.FileWith(Options{}, rows...)
}

// FileWith is File with options.
func (s *Scene) FileWith(o Options, rows ...Row) *File {
	s.t.Helper()
	id, err := s.AppendFiles(s.t.Context(), [][]Row{rows}, o)
	s.done("append a file", err)
	for _, e := range s.snaps[id].DataFiles() {
		if e.Snapshot == id {
			return e.File
		}
	}
	s.t.Fatalf("the appended file is not in its snapshot")
	return nil
}

// Append adds rows, one data file for each partition.
func (s *Scene) Append(rows ...Row) iceberg.SnapshotID {
	s.t.Helper()
	return s.AppendWith(Options{}, rows...)
}

// AppendWith is Append with options.
func (s *Scene) AppendWith(o Options, rows ...Row) iceberg.SnapshotID {
	s.t.Helper()
	id, err := s.Table.Append(s.t.Context(), rows, o)
	s.done("append", err)
	return id
}

// By are the live rows of main whose column has one of the values.
func (s *Scene) By(column string, values ...any) []RowID {
	s.t.Helper()
	f, ok := s.Schema().FindFieldByName(column)
	if !ok {
		s.t.Fatalf("there is no column %q", column)
	}
	want := map[string]bool{}
	for _, v := range values {
		x, err := Coerce(f.Type, v)
		s.done("coerce", err)
		want[Canonical(f.Type, x)] = true
	}
	return s.Where("", func(r Row) bool { return want[Canonical(f.Type, resolve(f, r))] })
}

// DeleteAt deletes positions of a data file: by a position delete file of its
// own in v2, by a vector in v3. It returns the delete.
func (s *Scene) DeleteAt(f *File, positions ...int) *File {
	s.t.Helper()
	return s.Delete(f.RowsAt(positions...)...)
}

// Delete deletes rows by position delete files for each data file in v2, by
// vectors in v3. It returns the first delete.
func (s *Scene) Delete(rows ...RowID) *File {
	s.t.Helper()
	return s.DeleteScoped(PerFile, rows...)
}

// DeleteScoped is Delete with a scope for v2; vectors are always per file.
func (s *Scene) DeleteScoped(scope Scope, rows ...RowID) *File {
	s.t.Helper()
	var id iceberg.SnapshotID
	var err error
	if s.Version() >= 3 {
		id, err = s.VectorDelete(s.t.Context(), rows, Options{})
	} else {
		id, err = s.PositionDelete(s.t.Context(), rows, scope, Options{})
	}
	s.done("delete", err)
	return s.newDelete(id)
}

func (s *Scene) newDelete(id iceberg.SnapshotID) *File {
	s.t.Helper()
	for _, e := range s.snaps[id].DeleteFiles() {
		if e.Snapshot == id {
			return e.File
		}
	}
	s.t.Fatalf("the new delete is not in its snapshot")
	return nil
}

// fields are the ids of columns.
func (s *Scene) fields(names []string) []iceberg.FieldID {
	s.t.Helper()
	var out []iceberg.FieldID
	for _, n := range names {
		f, ok := s.Schema().FindFieldByName(n)
		if !ok {
			s.t.Fatalf("there is no column %q", n)
		}
		out = append(out, iceberg.FieldID(f.ID))
	}
	return out
}

// EqualityDelete deletes by keys, rows of which only the columns by count. It
// returns the first delete file.
func (s *Scene) EqualityDelete(by []string, keys ...Row) *File {
	s.t.Helper()
	id, err := s.Table.EqualityDelete(s.t.Context(), keys, s.fields(by), Options{})
	s.done("delete by keys", err)
	return s.newDelete(id)
}

// Upsert replaces the rows with the same values of the columns by.
func (s *Scene) Upsert(by []string, rows ...Row) iceberg.SnapshotID {
	s.t.Helper()
	id, err := s.Table.Upsert(s.t.Context(), rows, s.fields(by), rows, Options{})
	s.done("upsert", err)
	return id
}

// Overwrite ends rows by copy on write and adds others.
func (s *Scene) Overwrite(gone []RowID, rows ...Row) iceberg.SnapshotID {
	s.t.Helper()
	id, err := s.Table.Overwrite(s.t.Context(), gone, rows, Options{})
	s.done("overwrite", err)
	return id
}

// Rewrite compacts data files as another engine would.
func (s *Scene) Rewrite(files ...*File) iceberg.SnapshotID {
	s.t.Helper()
	id, err := s.Table.Rewrite(s.t.Context(), files, Options{})
	s.done("rewrite", err)
	return id
}

// Set sets properties given as key, value, key, value.
func (s *Scene) Set(pairs ...string) {
	s.t.Helper()
	set := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	s.done("set properties", s.SetProperties(s.t.Context(), set))
}

// Respec makes the spec of the text current.
func (s *Scene) Respec(text string) iceberg.SpecID {
	s.t.Helper()
	id, err := s.SetSpec(s.t.Context(), text)
	s.done("set spec", err)
	return id
}

// Add adds an optional column of a type that ParseSchema knows.
func (s *Scene) Add(name, typ string) iceberg.FieldID {
	s.t.Helper()
	t, err := parseType(typ)
	s.done("parse type", err)
	id, err := s.AddColumn(s.t.Context(), Column{Name: name, Type: t})
	s.done("add column", err)
	return id
}

// Widen promotes a column to a type that ParseSchema knows.
func (s *Scene) Widen(name, typ string) {
	s.t.Helper()
	t, err := parseType(typ)
	s.done("parse type", err)
	s.done("promote", s.Promote(s.t.Context(), name, t))
}

// Tag makes a tag at the head of main.
func (s *Scene) Tag(name string) {
	s.t.Helper()
	s.done("tag", s.CreateTag(s.t.Context(), name, 0, Retention{}))
}

// Branch makes a branch at the head of main.
func (s *Scene) Branch(name string) {
	s.t.Helper()
	s.done("branch", s.CreateBranch(s.t.Context(), name, 0, Retention{}))
}

// Do fails the test if an operation of Table failed.
func (s *Scene) Do(err error) {
	s.t.Helper()
	s.done("change the table", err)
}

// Verify fails the test unless Check holds.
func (s *Scene) Verify() {
	s.t.Helper()
	if err := Check(s.t.Context(), s.Table); err != nil {
		s.t.Fatalf("%v", err)
	}
}

// Live are the paths in the filer of everything any retained snapshot needs:
// metadata, lists, manifests, files, statistics.
func (tb *Table) Live() map[filer.Path]bool {
	out := map[filer.Path]bool{}
	note := func(text string) {
		for _, p := range candidates(tb.Root, text) {
			out[p] = true
		}
	}
	note(tb.docPath)
	for _, e := range tb.doc.objects("metadata-log") {
		note(e.text("metadata-file"))
	}
	for _, key := range []string{"statistics", "partition-statistics"} {
		for _, e := range tb.doc.objects(key) {
			note(e.text("statistics-path"))
		}
	}
	for _, s := range tb.Snapshots() {
		if s.List != "" {
			note(s.List)
		}
		for _, m := range s.Manifests {
			note(m.Path)
			for _, e := range m.Entries {
				if e.Live() {
					out[e.File.At] = true
				}
			}
		}
	}
	return out
}

// String names the table and its head, for failures.
func (tb *Table) String() string {
	head := "empty"
	if s := tb.Head(""); s != nil {
		head = fmt.Sprintf("snapshot %d, %d rows", s.ID, len(s.Rows))
	}
	return fmt.Sprintf("%s v%d seed %d at %s", tb.ID, tb.Version(), tb.cfg.Seed, head)
}
