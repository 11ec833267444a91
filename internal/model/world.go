package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// World is several tables in one filer.
type World struct {
	Filer  filer.Filer
	Tables map[iceberg.TableID]*Table
}

// NewWorld is an empty world.
func NewWorld(fl filer.Filer) *World { return &World{Filer: fl, Tables: map[iceberg.TableID]*Table{}} }

// Create makes a table, see NewTable.
func (w *World) Create(ctx context.Context, cfg Config) (*Table, error) {
	if w.Tables[cfg.ID] != nil {
		return nil, fault.New(fault.Stale, "table "+cfg.ID.String()+" exists")
	}
	tb, err := NewTable(ctx, w.Filer, cfg)
	if err != nil {
		return nil, err
	}
	w.Tables[cfg.ID] = tb
	return tb, nil
}

// Check checks every table, in the order of their names.
func (w *World) Check(ctx context.Context) error {
	var all []error
	byName := func(a, b iceberg.TableID) int { return cmpString(a.String(), b.String()) }
	for _, id := range slices.SortedFunc(maps.Keys(w.Tables), byName) {
		all = append(all, fault.In("table "+id.String(), Check(ctx, w.Tables[id])))
	}
	return errors.Join(all...)
}

// Fork is the world in the same state over fl, see Table.Fork.
func (w *World) Fork(fl filer.Filer) *World {
	out := NewWorld(fl)
	for id, tb := range w.Tables {
		out.Tables[id] = tb.Fork(fl)
	}
	return out
}

// AddFiles makes data files of another table part of this one, as add_files
// and clones do (P10): the entries name files in the other's directory. Both
// tables must give the columns the same ids; the files come in under this
// table's spec l.Spec with the partition their rows have.
func (tb *Table) AddFiles(ctx context.Context, files []*File, o Options) (iceberg.SnapshotID, error) {
	if err := tb.Refresh(ctx); err != nil {
		return 0, err
	}
	spec, err := tb.specOf(o.Layout)
	if err != nil {
		return 0, err
	}
	s := tb.specSchema(spec)
	var added []*File
	for _, f := range files {
		own := *f
		own.Spec, own.Rows, own.Path, own.RowIDs, own.Updated = iceberg.SpecID(spec.ID()), nil, tb.spell(o.Layout, f.At), nil, nil
		for i, row := range f.Written {
			p, err := partitionOf(spec, s, row)
			if err != nil {
				return 0, err
			}
			if i > 0 && tuple(spec, s, p) != tuple(spec, s, own.Partition) {
				return 0, fault.New(fault.Unsupported, fmt.Sprintf("the rows of %s lie in several partitions", f.Path))
			}
			own.Partition = p
			id := RowID(len(tb.rows))
			tb.rows[id] = row
			own.Rows = append(own.Rows, id)
		}
		tb.files[own.identity()] = &own
		added = append(added, &own)
	}
	return tb.commit(ctx, change{Options: o, operation: "append", add: added})
}
