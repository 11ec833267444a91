package worker

import (
	"context"
	"errors"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/trash"
)

const (
	// keepJournals is how long the journal of a finished run is kept.
	keepJournals = 30 * 24 * time.Hour
	// stagedAge is how old a staged file of an abandoned run must be before it
	// goes: the default of orphan_older_than_hours.
	stagedAge = 72 * time.Hour
	// trashGrace holds for what is discarded of abandoned runs: the default of
	// trash_retention_hours.
	trashGrace = 240 * time.Hour
)

// Housekeep does what belongs to no table's job: it brings abandoned runs to
// their end, purges what has been in the trash for its time and is referenced
// by nothing, and drops old journals. All of it may be stopped and done again.
// Purging needs a Tenancy that can also tell what is referenced.
func (r *Runner) Housekeep(ctx context.Context) error {
	tr, err := trash.New(r.o.Filer, r.o.Clock, trash.Options{Grace: trashGrace})
	if err != nil {
		return err
	}
	now, err := journal.TrustedTime(ctx, r.o.Filer, r.o.Clock)
	if err != nil {
		return err
	}
	failures := r.resolveAbandoned(ctx, tr, now)
	if ck, ok := r.o.Tenancy.(trash.Checker); ok {
		failures = errors.Join(failures, r.purge(ctx, tr, ck, now))
	}
	_, err = r.store.Prune(ctx, tr, journal.PruneOptions{Keep: keepJournals})
	return errors.Join(failures, fault.In("drop old journals", err))
}

func (r *Runner) resolveAbandoned(ctx context.Context, tr *trash.Trash, now time.Time) error {
	c := commit.New(r.o.Filer, r.o.Clock, commit.Options{Profile: r.o.Profile, Draw: r.o.Draw})
	var failures error
	for st, err := range r.store.List(ctx) {
		if err != nil {
			failures = errors.Join(failures, err)
			continue
		}
		if !st.Live() || st.Phase() == journal.Open && !st.Expired(now) {
			continue
		}
		res, err := r.store.Resolve(ctx, st, c.Resolver(), tr, journal.ResolveOptions{OrphanAge: stagedAge})
		r.o.Events.resolved(st.Table(), res, err)
		failures = errors.Join(failures, err)
	}
	return failures
}

// purge goes through the trash of every table bucket.
func (r *Runner) purge(ctx context.Context, tr *trash.Trash, ck trash.Checker, now time.Time) error {
	var failures error
	for b, err := range r.o.Filer.List(ctx, filer.BucketsRoot, filer.ListOptions{}) {
		if err != nil {
			return errors.Join(failures, fault.In("list buckets", err))
		}
		if !b.IsDir || string(b.Extended[iceberg.AttrTableBucket]) != "true" {
			continue
		}
		rep, err := tr.Purge(ctx, trash.Selection{Bucket: b.Path.Name()}, now, ck)
		failures = errors.Join(failures, err, rep.Err())
		r.o.Events.purged(rep.Count(trash.Purged), rep.Bytes(trash.Purged))
	}
	return failures
}
