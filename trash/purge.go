package trash

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Checker knows what is referenced now.
type Checker interface {
	// Referenced reports whether any retained snapshot of any table still names
	// the path. An error means that this cannot be told, and the item stays. It
	// is called by one goroutine at a time.
	Referenced(ctx context.Context, origin filer.Path) (bool, error)
}

// Purge deletes, for good, the chosen items whose purge time is over at now, a
// time of the filer that must not lie ahead of its clock. An item that is
// referenced after all goes back to its origin instead; one whose references
// cannot be read stays. The report names every item that was due; the error is
// not nil only if the trash could not be listed to its end, or nothing was
// begun.
func (t *Trash) Purge(ctx context.Context, s Selection, now time.Time, ck Checker) (Report, error) {
	doing := "purge the trash of bucket " + s.Bucket
	if err := s.check(); err != nil {
		return Report{}, fault.In(doing, err)
	}
	if ck == nil {
		return Report{}, fault.New(fault.Halt, doing+": nobody says what is referenced")
	}
	clock, err := journal.TrustedTime(ctx, t.fl, t.clk)
	if err != nil {
		return Report{}, fault.In(doing, err)
	}
	if now.After(clock.Add(journal.MaxSkew)) {
		return Report{}, fault.New(fault.Unsupported, fmt.Sprintf("%s: %s lies in the future", doing, now.Format(time.RFC3339)))
	}
	if err := t.checkBucket(ctx, s.Bucket); err != nil {
		return Report{}, fault.In(doing, err)
	}
	p := purge{t: t, now: now, ck: ck}
	g := t.pool()
	var failed error
	for it, err := range t.Select(ctx, s) {
		if err != nil {
			failed = fault.In(doing, err)
			break
		}
		if p.due(ctx, &it) {
			g.run(func() { p.out.add(p.one(ctx, it)) })
		}
	}
	g.wait()
	return p.out.report(), failed
}

type purge struct {
	t   *Trash
	now time.Time
	out collector

	mu sync.Mutex
	ck Checker

	// The journalled removals of the run whose items are at hand: the listing
	// goes run by run.
	run      string
	removals map[filer.Path]journal.Removal
	unknown  error
}

// due decides whether it is time for an item; what stays is counted or
// reported.
func (p *purge) due(ctx context.Context, it *Item) bool {
	res := Result{Path: it.Origin, Trash: it.Path, Bytes: it.Bytes}
	if it.Problem == "" && it.PurgeAfter.IsZero() {
		if err := p.complete(ctx, it); err != nil {
			p.out.add(res.as(Kept, "").because(err))
			return false
		}
	}
	switch {
	case it.Problem != "":
		p.out.add(res.as(Kept, it.Problem))
		return false
	case it.PurgeAfter.After(p.now):
		p.out.Waiting++ // by the listing's goroutine alone
		return false
	}
	return true
}

// complete finds the purge time of an item that has none, because its move was
// cut short, in the journal of its run.
func (p *purge) complete(ctx context.Context, it *Item) error {
	if p.run != it.Run {
		p.run, p.removals, p.unknown = it.Run, map[filer.Path]journal.Removal{}, nil
		st, err := p.t.journals.Find(ctx, it.Run)
		if err == nil {
			for rm, err2 := range st.Removals(ctx) {
				if err2 != nil {
					err = err2
					break
				}
				p.removals[rm.To] = rm
			}
		}
		p.unknown = err
	}
	if p.unknown != nil {
		return fault.In("find the purge time in the journal", p.unknown)
	}
	rm, ok := p.removals[it.Path]
	if !ok || rm.Identity != it.entry.Identity() {
		return fault.New(fault.Unsupported, "it has no purge time, and the journal of its run does not name it")
	}
	it.PurgeAfter, it.Reason = rm.PurgeAfter, rm.Reason
	return nil
}

// one purges an item that is due.
func (p *purge) one(ctx context.Context, it Item) Result {
	t, doing := p.t, "purge "+it.Path.String()
	res := Result{Path: it.Origin, Trash: it.Path, Bytes: it.Bytes}
	if err := refuse(it.entry); err != nil {
		return res.as(Kept, "").because(err)
	}
	origin, err := t.find(ctx, it.Origin)
	if err != nil {
		return res.as(Failed, "").because(fault.In(doing, err))
	}
	referenced, err := p.referenced(ctx, it.Origin)
	if err != nil {
		return res.as(Kept, "").because(fault.In(doing+": read its references", err))
	}
	switch {
	case origin != nil && twins(origin, it.entry):
		// Its removal was cut short. Deleting would take the data from the
		// origin, so only this entry goes; the file stays where readers and the
		// orphan scan find it.
		switch err := t.keepOne(ctx, origin, it.entry); {
		case err == nil:
			return res.as(Restored, "it was at its origin all the time")
		case fault.Is(err, fault.Stale):
			return res.as(Stale, "it is being moved")
		default:
			return res.as(Failed, "").because(fault.In(doing, err))
		}
	case referenced && origin != nil:
		return res.as(Kept, "its path is referenced, and another file is there")
	case referenced:
		r := t.restore(ctx, it)
		if r.Outcome == Restored {
			r.Detail = "a retained snapshot references it"
		}
		return r
	}
	switch err := t.erase(ctx, it.entry); {
	case err == nil:
		return res.as(Purged, "")
	case filer.NotFound(err):
		return res.as(Gone, "")
	case errors.Is(err, filer.ErrPrecondition):
		return res.as(Stale, "it changed in the trash meanwhile")
	default:
		return res.as(Failed, "").because(fault.In(doing, err))
	}
}

func (p *purge) referenced(ctx context.Context, origin filer.Path) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ck.Referenced(ctx, origin)
}
