package trash

import (
	"context"
	"errors"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Discard implements journal.Trasher: it removes what a run staged. Only files
// that the run may have created are touched, told by their names, and only while
// the run is still its owner's. Movement maps
// lie outside of all buckets and are deleted.
func (t *Trash) Discard(ctx context.Context, run *journal.Run, files []journal.File) (journal.Discarded, error) {
	var d journal.Discarded
	if err := run.Hold(ctx); err != nil {
		return d, err
	}
	var errs []error
	var inBucket []journal.File
	for _, f := range files {
		if !f.Path.Within(journal.Maps) {
			inBucket = append(inBucket, f)
			continue
		}
		switch gone, err := t.discardMap(ctx, run, f); {
		case err == nil && gone:
			d.Gone++
		case err == nil:
			d.Moved++
		case fault.Is(err, fault.Stale), fault.Is(err, fault.Unsupported):
			d.Kept = append(d.Kept, journal.Kept{Path: f.Path, Reason: err.Error()})
		default:
			errs = append(errs, err)
		}
	}
	rep, err := t.Remove(ctx, run, Batch{Files: inBucket, Allowed: run.Owns})
	if err != nil {
		return d, errors.Join(append(errs, err)...)
	}
	d.Moved += rep.Count(Moved) + rep.Count(Purged)
	d.Gone += rep.Count(Gone)
	for _, x := range rep.Problems() {
		if x.Outcome != Failed {
			d.Kept = append(d.Kept, journal.Kept{Path: x.Path, Reason: x.Detail})
		}
	}
	return d, errors.Join(append(errs, rep.Err())...)
}

func (t *Trash) discardMap(ctx context.Context, run *journal.Run, f journal.File) (gone bool, err error) {
	if err := run.Owns(f.Path); err != nil {
		return false, err
	}
	e, err := t.find(ctx, f.Path)
	if err != nil {
		return false, err
	}
	if e == nil {
		return true, nil
	}
	if e.Identity() != f.Identity {
		return false, fault.Wrap(fault.Stale, "remove "+f.Path.String(), filer.ErrPrecondition)
	}
	return false, t.Erase(ctx, e)
}

// Repair implements journal.Trasher. A file that is at both of its places goes
// back to its origin: that decides nothing, and loses nothing.
func (t *Trash) Repair(ctx context.Context, run *journal.Run, removals []journal.Removal) error {
	g := t.pool()
	errs := make([]error, len(removals))
	for i, rm := range removals {
		g.run(func() { errs[i] = fault.In("repair the removal of "+rm.Path.String(), t.repair(ctx, run, rm)) })
	}
	g.wait()
	return errors.Join(errs...)
}

func (t *Trash) repair(ctx context.Context, run *journal.Run, rm journal.Removal) error {
	origin, place, err := t.both(ctx, rm.Path, rm.To)
	switch {
	case err != nil || place == nil || place.Identity() != rm.Identity:
		return err
	case origin != nil && twins(origin, place):
		err := t.keepOne(ctx, origin, place)
		if fault.Is(err, fault.Stale) {
			return nil // the move was being made, and now is
		}
		return err
	case origin == nil && len(place.Extended[AttrPurgeAfter]) == 0:
		return t.label(ctx, place, rm, run.UUID(), run.ID())
	}
	return nil
}

// label gives a file in the trash the attributes that a move cut short did not
// give it.
func (t *Trash) label(ctx context.Context, place *filer.Entry, rm journal.Removal, uuid, run string) error {
	// When exactly it was removed nobody knows; no later than its purge time.
	set := labels(rm.File, run, uuid, rm.PurgeAfter, rm.PurgeAfter)
	delete(set, AttrRemovedAt)
	delete(set, AttrRestored)
	_, err := t.fl.Update(ctx, filer.Update{Base: place, Expect: filer.Expectation(place, attributes...), Set: set})
	if errors.Is(err, filer.ErrPrecondition) || filer.NotFound(err) {
		return nil
	}
	return err
}

// Erase implements journal.Eraser: it deletes an entry of this program's own
// state, below journal.Home, if it still is what e was. Nothing else is deleted
// this way. A missing one is no error.
func (t *Trash) Erase(ctx context.Context, e *filer.Entry) error {
	if !e.Path.Within(journal.Home) || e.Path == journal.Home || e.IsDir {
		return fault.New(fault.Halt, fmt.Sprintf("erase %s: it is no file of this program's own state", e.Path))
	}
	return fault.In("erase "+e.Path.String(), absent(t.erase(ctx, e)))
}
