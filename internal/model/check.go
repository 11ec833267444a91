package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
)

// Views are all views a table can be read by: every retained snapshot and every
// ref. Version 3 views have lineage.
func (tb *Table) Views() []View {
	var out []View
	lineage := tb.Version() >= 3
	for _, s := range tb.Snapshots() {
		out = append(out, View{Snapshot: s.ID, Lineage: lineage})
	}
	for _, r := range tb.Refs() {
		out = append(out, View{Ref: r.Name, Lineage: lineage})
	}
	return out
}

// Check compares what the operations mean, what the files say and what
// iceberg-go reads, at every retained snapshot, branch and tag; where iceberg-go
// cannot read rightly (see ReaderGap), only the first two. The error names every
// difference.
func Check(ctx context.Context, tb *Table) error {
	if err := tb.Refresh(ctx); err != nil {
		return err
	}
	var all []error
	for _, v := range tb.Views() {
		want, err := tb.Expect(v)
		if err != nil {
			return err
		}
		files, err := tb.Physical(v)
		if err != nil {
			return err
		}
		if d := Diff(want, files); len(d) > 0 {
			all = append(all, fault.New(fault.Corrupt, fmt.Sprintf("%+v: the files differ from the model:\n%s", v, brief(d))))
		}
		if err := tb.checkRowIDs(v); err != nil {
			all = append(all, err)
		}
		if tb.ReaderGap(v) != "" {
			continue
		}
		got, err := ReadRows(ctx, tb.fl, tb.ID, v)
		if err != nil {
			all = append(all, err)
			continue
		}
		if d := Diff(want, got); len(d) > 0 {
			all = append(all, fault.New(fault.Corrupt, fmt.Sprintf("%+v: iceberg-go reads other rows than the model has:\n%s", v, brief(d))))
		}
	}
	return errors.Join(all...)
}

func brief(lines []string) string {
	const most = 20
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "\n")
}

// checkRowIDs makes sure that no two live rows of a view have one row id.
func (tb *Table) checkRowIDs(v View) error {
	s, _, err := tb.resolveView(v)
	if err != nil || s == nil || !v.Lineage {
		return err
	}
	seen := map[int64]string{}
	for e, alive := range tb.survivors(s) {
		for _, pos := range alive {
			lin := e.lineage(pos)
			if lin.row < 0 {
				continue
			}
			here := fmt.Sprintf("position %d of %s", pos, e.File.Path)
			if there, twice := seen[lin.row]; twice {
				return fault.New(fault.Corrupt, fmt.Sprintf("%+v: row id %d is at %s and at %s", v, lin.row, there, here))
			}
			seen[lin.row] = here
		}
	}
	return nil
}
