package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

type role uint8

const (
	// owner made the entry and appends until somebody seals it.
	owner role = iota
	// resolver took over after the owner's lease had run out.
	resolver
)

// Run is the handle of whoever writes to a journal. It is safe for concurrent
// use; its calls go one at a time. Once a call found the run fenced, every
// later one answers the same fault.Stale.
type Run struct {
	s    *Store
	role role
	path filer.Path
	// writer tells this handle's writes from all others.
	writer string
	// id, token, uuid and table never change.
	id, token, uuid string
	table           iceberg.TableID

	mu      sync.Mutex
	head    head
	base    *filer.Entry
	version int
	writes  int
	// next is the number of the next segment.
	next   int
	names  map[filer.Path]struct{}
	fenced error
	// unsettled: see Unsettled.
	unsettled bool
	// finished counts the units journalled.
	finished int
}

func newRun(s *Store, as role, h head) *Run {
	return &Run{
		s: s, role: as, path: headPath(h.UUID, h.Run), writer: nonce(8),
		id: h.Run, token: h.Token, uuid: h.UUID, table: h.Table,
		head: h, version: 1, next: 1, names: map[filer.Path]struct{}{},
	}
}

// ID is the run's name.
func (r *Run) ID() string { return r.id }

// Token is what the name of every file the run stages must hold.
func (r *Run) Token() string { return r.token }

// Table is the table the run works on.
func (r *Run) Table() iceberg.TableID { return r.table }

// UUID is the table's uuid in lower case.
func (r *Run) UUID() string { return r.uuid }

// Path is the entry of the run.
func (r *Run) Path() filer.Path { return r.path }

// Owns says, with an error, that p is not a file this run may have staged: not
// in the table's bucket nor a movement map, or not named after the run or one it
// adopted.
func (r *Run) Owns(p filer.Path) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head.owns(p)
}

// Holds reports whether the run recorded p, itself or by adopting another run.
func (r *Run) Holds(p filer.Path) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.names[p]
	return ok
}

func (r *Run) fence(err error) error {
	if r.fenced == nil {
		r.fenced = err
	}
	return err
}

// lock begins a call, unless the run is fenced.
func (r *Run) lock() (unlock func(), err error) {
	r.mu.Lock()
	if r.fenced != nil {
		defer r.mu.Unlock()
		return nil, r.fenced
	}
	return r.mu.Unlock, nil
}

// Record journals names before their files are created. Every name holds the
// run's Token and lies in the table's bucket or below Maps. Many names may be
// reserved at once; names already recorded cost nothing. When Record fails, no
// file of these names may be created.
func (r *Run) Record(ctx context.Context, names ...filer.Path) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	fresh := make([]filer.Path, 0, len(names))
	seen := make(map[filer.Path]struct{}, len(names))
	for _, p := range names {
		if _, old := r.names[p]; old {
			continue
		}
		if _, twice := seen[p]; twice {
			continue
		}
		if err := r.head.owns(p); err != nil {
			return err
		}
		seen[p] = struct{}{}
		fresh = append(fresh, p)
	}
	for _, part := range batches(fresh, func(p filer.Path) int { return len(p) + 3 }) {
		if err := r.append(ctx, segment{Names: part}); err != nil {
			return fault.In(fmt.Sprintf("journal %d names of run %s", len(part), r.id), err)
		}
		for _, p := range part {
			r.names[p] = struct{}{}
		}
	}
	return nil
}

// Finish journals a unit that is whole and verified, so that it can be resumed
// instead of being done again. All its files must have been recorded.
func (r *Run) Finish(ctx context.Context, u Unit) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if u.ID == "" {
		return fault.New(fault.Unsupported, "journal a unit without an id")
	}
	for _, p := range u.files() {
		if _, ok := r.names[p]; !ok {
			return fault.New(fault.Unsupported, fmt.Sprintf("journal unit %s: its file %s was never recorded", u.ID, p))
		}
	}
	err = r.append(ctx, segment{Unit: &u})
	if err == nil {
		r.finished++
	}
	return fault.In("journal unit "+u.ID+" of run "+r.id, err)
}

// Finished is the number of units that the run journalled: what another run can
// go on from if this one ends without a commit.
func (r *Run) Finished() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished
}

func (u *Unit) files() []filer.Path {
	if u.Map == "" {
		return u.Outputs
	}
	return append(slices.Clone(u.Outputs), u.Map)
}

// Removals journals removals before the first of them is made.
func (r *Run) Removals(ctx context.Context, removals ...Removal) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	var held time.Time
	for _, rm := range removals {
		if err := r.head.removes(rm); err != nil {
			return err
		}
		if rm.PurgeAfter.After(held) {
			held = rm.PurgeAfter
		}
	}
	if len(removals) == 0 {
		return nil
	}
	// The purge time comes first: history must not be pruned while a file it
	// names can still be brought back.
	if r.head.HeldUntil == nil || held.After(*r.head.HeldUntil) {
		err := r.change(ctx, func(h *head) (bool, error) {
			if err := r.writable(h); err != nil {
				return false, err
			}
			if h.HeldUntil != nil && !held.After(*h.HeldUntil) {
				return false, nil
			}
			t := held.UTC()
			h.HeldUntil = &t
			return true, nil
		})
		if err != nil {
			return fault.In("journal the purge time of run "+r.id, err)
		}
	}
	size := func(rm Removal) int { return len(rm.Path) + len(rm.To) + len(rm.Identity) + len(rm.Reason) + 200 }
	for _, part := range batches(removals, size) {
		if err := r.append(ctx, segment{Removals: part}); err != nil {
			return fault.In(fmt.Sprintf("journal %d removals of run %s", len(part), r.id), err)
		}
	}
	return nil
}

// Result journals the run's result as the operation reports it.
func (r *Run) Result(ctx context.Context, result Raw) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return fault.In("journal the result of run "+r.id, r.append(ctx, segment{Result: result}))
}

// Decide journals the commit that is about to be tried and renews the lease. It
// fails once the run was revoked.
func (r *Run) Decide(ctx context.Context, d Decision) error {
	return r.update(ctx, "journal a decision of run ", func(h *head, now time.Time) error {
		if err := r.writable(h); err != nil {
			return err
		}
		d.At = now
		if n := len(h.Decisions); n > 0 && h.Decisions[n-1].MetadataLocation == d.MetadataLocation &&
			h.Decisions[n-1].SnapshotID == d.SnapshotID {
			h.Decisions = h.Decisions[:n-1]
		}
		h.Decisions = append(h.Decisions, d)
		if n := len(h.Decisions) - maxDecisions; n > 0 {
			h.Decisions = h.Decisions[n:]
		}
		h.Expires = later(h.Expires, now.Add(h.Lease))
		return nil
	})
}

// Renew extends the lease from the filer's present time. A lease that has run
// out may be renewed as long as nobody has revoked it.
func (r *Run) Renew(ctx context.Context) error {
	return r.update(ctx, "renew the lease of run ", func(h *head, now time.Time) error {
		h.Expires = later(h.Expires, now.Add(h.Lease))
		return r.writable(h)
	})
}

// Hold makes sure that nobody takes over what the run staged while it is being
// discarded. An owner's lease is renewed, which is fault.Stale once the run was
// revoked: its files may be another's by then. Who resolves a run holds it.
func (r *Run) Hold(ctx context.Context) error {
	if r.role == resolver {
		return nil
	}
	return r.Renew(ctx)
}

// Release gives the lease up, so that anybody may resolve the run at once: for
// a run that ends without knowing its outcome.
func (r *Run) Release(ctx context.Context) error {
	return r.update(ctx, "release the lease of run ", func(h *head, now time.Time) error {
		if h.Expires.After(now) {
			h.Expires = later(h.Opened, now)
		}
		return r.writable(h)
	})
}

// Unsettled notes that a journalled removal may be half made. Close then leaves
// the journal Settled, so that Resolve repairs it.
func (r *Run) Unsettled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettled = true
}

// Close ends the run with what became of it. Only Committed and Refused are
// outcomes; a run that does not know its own stays open (see Release).
func (r *Run) Close(ctx context.Context, o Outcome) error {
	if o != Committed && o != Refused {
		return fault.New(fault.Unknown, fmt.Sprintf("close run %s: %q is no outcome to close with", r.id, o))
	}
	return r.update(ctx, "close the journal of run ", func(h *head, now time.Time) error {
		if h.Phase != Open {
			if h.Outcome == o {
				return errUnchanged
			}
			return fault.New(fault.Stale, fmt.Sprintf("it is %s as %q", h.Phase, h.Outcome))
		}
		t := later(h.Opened, now)
		h.Phase, h.Outcome, h.Closed = Closed, o, &t
		if r.unsettled {
			h.Phase, h.Closed, h.Revoked = Settled, nil, &t
		}
		return nil
	})
}

// errUnchanged ends an update that has nothing to do.
var errUnchanged = errors.New("nothing to change")

func (r *Run) update(ctx context.Context, doing string, fn func(h *head, now time.Time) error) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	now, err := r.s.fl.Clock(ctx)
	if err != nil {
		return fault.In(doing+r.id, err)
	}
	err = r.change(ctx, func(h *head) (bool, error) {
		h.Segments = max(h.Segments, r.next-1)
		switch err := fn(h, now.UTC()); {
		case err == nil:
			return true, nil
		case errors.Is(err, errUnchanged):
			return false, nil
		default:
			return false, err
		}
	})
	return fault.In(doing+r.id, err)
}

// Check is the fence: the entry is open, ours, and its lease lasts by the
// filer's clock. It is called right before every commit attempt. fault.Stale
// says that the run must not commit any more.
func (r *Run) Check(ctx context.Context) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.reload(ctx); err != nil {
		return fault.In("check the lease of run "+r.id, err)
	}
	now, err := r.s.fl.Clock(ctx)
	if err != nil {
		return fault.In("check the lease of run "+r.id, err)
	}
	switch {
	case r.head.Phase != Open:
		return fault.New(fault.Stale, fmt.Sprintf("check the lease of run %s: it is %s", r.id, r.head.Phase))
	case !now.Before(r.head.Expires):
		return fault.New(fault.Stale, fmt.Sprintf("check the lease of run %s: it ran out at %s", r.id, r.head.Expires.Format(time.RFC3339)))
	}
	return nil
}

// append creates the next segment. A number that is taken by an earlier try of
// this handle is passed over. One taken by somebody else means, to the owner,
// that it was revoked: the seal is what stops it from naming further files.
func (r *Run) append(ctx context.Context, g segment) error {
	if err := r.writable(&r.head); err != nil {
		return err
	}
	for r.next <= maxSegments {
		g.Format, g.Run, g.N = format, r.id, r.next
		content, err := g.encode()
		if err != nil {
			return err
		}
		done := false
		p := segmentPath(r.uuid, r.id, r.next)
		err = r.create(ctx, p, content, maxSegmentBytes, func(d document, mine bool) error {
			switch {
			case mine:
				done = true
			case d.writer == r.writer, r.role == resolver:
			default:
				return r.fence(fault.New(fault.Stale, fmt.Sprintf("run %s was revoked: %s is not its own", r.id, p)))
			}
			r.next++
			return nil
		})
		if err != nil || done {
			return err
		}
	}
	return fault.New(fault.TooLarge, fmt.Sprintf("journal of run %s has %d segments", r.id, maxSegments))
}

// writable refuses what an owner writes to a journal that is not open any more.
func (r *Run) writable(h *head) error {
	if r.role == owner && h.Phase != Open {
		return fault.New(fault.Stale, fmt.Sprintf("the journal of run %s is %s", r.id, h.Phase))
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
