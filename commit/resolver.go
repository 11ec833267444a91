package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
)

// Resolver answers the journal's questions about runs whose owner is gone.
func (c *Committer) Resolver() journal.Resolver { return resolver{c} }

type resolver struct{ c *Committer }

// Bump gives the table's record a new version token. A swap that the revoked
// owner still has under way then fails, because it expects the old one.
func (r resolver) Bump(ctx context.Context, st *journal.State) error {
	p, err := iceberg.RecordPath(st.Table())
	if err != nil {
		return err
	}
	e, err := r.c.fl.Stat(ctx, p)
	if filer.NotFound(err) {
		return nil // nothing is left that the owner could swap
	}
	if err != nil {
		return err
	}
	rec, err := iceberg.ParseRecord(e)
	if err != nil {
		return err
	}
	if id := recordUUID(rec); id != "" && id != st.UUID() {
		return nil // another table; its bytes are not what the owner expects
	}
	// A claim that is given back would restore the bytes the owner expects.
	if err := rec.Maintainable(); err != nil {
		return err
	}
	err = r.c.bump(ctx, e, rec)
	if errors.Is(err, filer.ErrPrecondition) || filer.NotFound(err) {
		return nil // it changed after the run was revoked, which does as well
	}
	return fault.In("bump the version token of "+p.String(), err)
}

func recordUUID(rec *iceberg.Record) string {
	if rec.TableUUID == [16]byte{} {
		return ""
	}
	return strings.ToLower(rec.TableUUID.String())
}

// References reads everything that the table's snapshots reach.
func (r resolver) References(ctx context.Context, st *journal.State) (journal.References, error) {
	v, err := r.find(ctx, st)
	if err != nil {
		return journal.References{}, err
	}
	if v == nil {
		// Dropped: no snapshot is left that could name anything.
		return journal.References{Verdict: journal.NotCommitted, Referenced: func(filer.Path) bool { return false }}, nil
	}
	staged := map[filer.Path]bool{}
	for p, err := range st.Staged(ctx) {
		if err != nil {
			return journal.References{}, err
		}
		staged[p] = false
	}
	hits := 0
	err = visitPaths(ctx, r.c.fl, v, func(p filer.Path) bool {
		if hit, ours := staged[p]; ours && !hit {
			staged[p] = true
			hits++
		}
		return true
	})
	if err != nil {
		return journal.References{}, fault.In("read what the table references", err)
	}
	refs := journal.References{Verdict: journal.NotCommitted, Referenced: func(p filer.Path) bool { return staged[p] }}
	if hits > 0 || decided(v, st) {
		refs.Verdict = journal.CommitFound
		// The movement maps of a committed run tell where its rows went for as long
		// as the journal is kept, whatever snapshots are.
		refs.Referenced = func(p filer.Path) bool { return staged[p] || p.Within(journal.Maps) }
	}
	return refs, nil
}

// decided reports whether a commit the run was about to try is in the table.
func decided(v *iceberg.View, st *journal.State) bool {
	for _, d := range st.Decisions() {
		if inHistory(v, d.MetadataLocation) {
			return true
		}
		if s, ok := v.Snapshot(d.SnapshotID); ok && d.SnapshotID != 0 && strings.Contains(s.ManifestList, st.Token()) {
			return true
		}
	}
	return false
}

// find loads the run's table by its name or, if it was renamed, by its uuid. Nil
// means that it does not exist any more, which is concluded only from a listing
// without gaps.
func (r resolver) find(ctx context.Context, st *journal.State) (*iceberg.View, error) {
	v, err := iceberg.Load(ctx, r.c.fl, st.Table())
	if err == nil {
		id, err := UUIDOf(v)
		if err != nil {
			return nil, err
		}
		if id == st.UUID() {
			return v, nil
		}
	} else if !filer.NotFound(err) {
		return nil, err
	}
	var blind error
	for f, err := range iceberg.Discover(ctx, r.c.fl, iceberg.Filter{Buckets: iceberg.Patterns{st.Table().Bucket}}) {
		switch {
		case err != nil:
			return nil, fault.In("look for the table by its uuid", err)
		case f.Record == nil:
			blind = fault.New(fault.Unsupported, fmt.Sprintf("record %s cannot be read and may be the table", f.Path))
		case recordUUID(f.Record) == st.UUID():
			return iceberg.LoadEntry(ctx, r.c.fl, f.ID, f.Entry)
		case recordUUID(f.Record) == "" && f.State == iceberg.StateTable:
			blind = fault.New(fault.Unsupported, fmt.Sprintf("record %s has no uuid and may be the table", f.Path))
		}
	}
	return nil, blind
}
