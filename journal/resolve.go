package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Verdict is what the table says about a revoked run's last commit.
type Verdict uint8

const (
	// Unreadable: the table or something it needs could not be read. Nothing is
	// concluded and nothing is removed.
	Unreadable Verdict = iota
	// NotCommitted: no trace of the run's decision, and since the record has
	// changed since the run was revoked there cannot be one any more.
	NotCommitted
	// CommitFound: the head or one of its ancestors is the run's.
	CommitFound
)

var verdictNames = [...]string{"unreadable", "not committed", "committed"}

// String is the verdict for messages.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "invalid"
}

// References is one look at a table.
type References struct {
	Verdict Verdict
	// Referenced reports whether anything that must be kept names the path: any
	// retained snapshot, ref, pin, statistics, metadata log, map, other table. It
	// must not be nil unless Verdict is Unreadable.
	Referenced func(filer.Path) bool
}

// Resolver knows the table's record. The commit package implements it.
type Resolver interface {
	// Bump changes the record of the run's table, or sees that it changed since
	// the run was revoked, so that a swap the owner still has under way must
	// fail. It may be called again.
	Bump(ctx context.Context, st *State) error
	// References reads the table anew on every call.
	References(ctx context.Context, st *State) (References, error)
}

// Trasher removes files. Package trash implements it.
type Trasher interface {
	// Discard moves the staged files to the trash, journalling them in run, and
	// says what became of each.
	Discard(ctx context.Context, run *Run, files []File) (Discarded, error)
	// Repair finishes or takes back removals that were journalled and may have
	// been cut short: afterwards no file is at both of its places. It decides
	// nothing else, and may be called again.
	Repair(ctx context.Context, run *Run, removals []Removal) error
}

// Discarded is what became of a list of files.
type Discarded struct {
	// Moved files are in the trash or, with a grace of 0, gone.
	Moved int `json:"moved"`
	// Gone files were not there any more.
	Gone int `json:"gone"`
	// Kept are those that were left for a reason that will not go away: a
	// person or the orphan scan has to look.
	Kept []Kept `json:"kept,omitempty"`
}

// Kept is a file that was left alone and why.
type Kept struct {
	Path   filer.Path `json:"path"`
	Reason string     `json:"reason"`
}

// ResolveOptions set the waiting time.
type ResolveOptions struct {
	// OrphanAge is how old a staged file, and the revocation, must be before the
	// file is discarded.
	OrphanAge time.Duration
}

// Resolution is how far Resolve came.
type Resolution struct {
	Run     string  `json:"run"`
	Phase   Phase   `json:"phase"`
	Outcome Outcome `json:"outcome,omitempty"`
	// Until is the filer's time before which nothing more can be done: the end
	// of the lease, or the age of the staged files. Zero if there is nothing to
	// wait for.
	Until time.Time `json:"until,omitzero"`
	// Waiting counts the staged files that are still too young.
	Waiting int `json:"waiting,omitempty"`
	// Unknown is set when the references could not be read; Why says which.
	Unknown bool   `json:"unknown,omitempty"`
	Why     string `json:"why,omitempty"`
	Discarded
}

// Done reports whether the journal is closed.
func (r Resolution) Done() bool { return r.Phase == Closed || r.Phase == Pruning }

// takeOver returns a handle on the entry of st for a resolver.
func (s *Store) takeOver(ctx context.Context, st *State) (*Run, error) {
	r := newRun(s, resolver, st.head)
	r.next = max(1, st.head.Segments)
	if err := r.reload(ctx); err != nil {
		return nil, fault.In("read journal of run "+st.Run(), err)
	}
	return r, nil
}

// Revoke fences the owner of st: step (a). It refuses, as fault.Stale, a lease
// that has not run out by the filer's clock, and does nothing if the journal is
// past Open already. An owner who is still alive gives its lease up with
// Run.Release first.
func (s *Store) Revoke(ctx context.Context, st *State) error {
	r, err := s.takeOver(ctx, st)
	if err != nil {
		return err
	}
	return r.revoke(ctx)
}

func (r *Run) revoke(ctx context.Context) error {
	now, err := TrustedTime(ctx, r.s.fl, r.s.clk)
	if err != nil {
		return fault.In("revoke run "+r.id, err)
	}
	return fault.In("revoke run "+r.id, r.change(ctx, func(h *head) (bool, error) {
		if h.Phase != Open {
			return false, nil
		}
		if now.Before(h.Expires) {
			return false, fault.New(fault.Stale, "its lease runs until "+h.Expires.Format(time.RFC3339))
		}
		t := later(h.Opened, now.UTC())
		h.Phase, h.Revoked = Revoked, &t
		return true, nil
	}))
}

// seal ends what the owner can name: its next segment's place is taken. Every
// file a well-behaved owner can still create is named before the seal.
func (r *Run) seal(ctx context.Context) error {
	st := r.state()
	n := 0
	for g, err := range st.segments(ctx) {
		if err != nil {
			return err
		}
		n = g.N
		if g.Seal {
			r.next = max(r.next, n+1)
			return nil
		}
	}
	r.next = n + 1
	return fault.In("seal the journal of run "+r.id, r.append(ctx, segment{Seal: true}))
}

func (r *Run) state() *State { return &State{s: r.s, head: r.head.clone(), path: r.path} }

// Resolve brings a run that its owner left to its end, or as far as that is
// possible now. It may be stopped at any call and started again by anybody.
//
//	(a) the entry is swapped to revoked, and sealed: the owner can neither commit
//	    nor name further files;
//	(b) the table's record is bumped, so that a swap under way must fail;
//	(c) the references are read, which settles whether the commit happened;
//	(d) staged files that nothing references, and that are old enough, go to the
//	    trash; the journal is closed.
//
// While the lease lasts, or the files are too young, the result says until when;
// while references cannot be read it says so, and nothing is removed.
func (s *Store) Resolve(ctx context.Context, st *State, rs Resolver, tr Trasher, o ResolveOptions) (Resolution, error) {
	if o.OrphanAge < 0 {
		return Resolution{}, fault.New(fault.Unsupported, fmt.Sprintf("resolve run %s: orphan age %s is negative", st.Run(), o.OrphanAge))
	}
	r, err := s.takeOver(ctx, st)
	if err != nil {
		return Resolution{Run: st.Run(), Phase: st.Phase()}, err
	}
	res := Resolution{Run: r.id}
	err = r.resolve(ctx, rs, tr, o, &res)
	res.Phase, res.Outcome = r.head.Phase, r.head.Outcome
	return res, fault.In("resolve run "+r.id, err)
}

func (r *Run) resolve(ctx context.Context, rs Resolver, tr Trasher, o ResolveOptions, res *Resolution) error {
	now, err := TrustedTime(ctx, r.s.fl, r.s.clk)
	if err != nil {
		return err
	}
	if !r.head.live() {
		return nil
	}
	if r.head.Phase == Open && now.Before(r.head.Expires) {
		res.Until = r.head.Expires
		return nil
	}
	if r.head.Phase == Settled && now.Before(r.head.NotBefore) {
		res.Until, res.Waiting = r.head.NotBefore, r.head.Left
		return nil
	}
	refs, known, err := r.settle(ctx, rs, res)
	if err != nil || !known {
		return err
	}
	if err := r.repair(ctx, tr); err != nil {
		return err
	}
	ripe, err := r.leftovers(ctx, refs, now, o, res)
	if err != nil {
		return err
	}
	if len(ripe) > 0 {
		if err := r.discard(ctx, rs, tr, ripe, res); err != nil || res.Unknown {
			return err
		}
	}
	if res.Waiting > 0 {
		return r.postpone(ctx, res)
	}
	return r.finish(ctx, Closed)
}

// postpone notes until when there is nothing to do, so that whoever comes by
// before does not read all references for nothing.
func (r *Run) postpone(ctx context.Context, res *Resolution) error {
	return fault.In("note the time to wait", r.change(ctx, func(h *head) (bool, error) {
		if h.Phase != Settled || h.NotBefore.Equal(res.Until) {
			return false, nil
		}
		h.NotBefore, h.Left = res.Until.UTC(), res.Waiting
		return true, nil
	}))
}

// settle runs (a) to (c). It returns the references it read, and whether they
// could be read.
func (r *Run) settle(ctx context.Context, rs Resolver, res *Resolution) (References, bool, error) {
	if err := r.revoke(ctx); err != nil {
		return References{}, false, err
	}
	if err := r.seal(ctx); err != nil {
		return References{}, false, err
	}
	if r.head.Phase == Revoked {
		if err := rs.Bump(ctx, r.state()); err != nil {
			return References{}, false, fault.In("bump the table's record", err)
		}
	}
	refs, known, err := r.look(ctx, rs, res)
	if err != nil || !known {
		return refs, known, err
	}
	found := Refused
	if refs.Verdict == CommitFound {
		found = Committed
	}
	err = r.change(ctx, func(h *head) (bool, error) {
		if h.Phase != Revoked {
			return false, nil
		}
		h.Phase, h.Outcome = Settled, found
		h.Segments = max(h.Segments, r.next-1)
		return true, nil
	})
	if err != nil {
		return refs, false, fault.In("settle", err)
	}
	if r.head.Outcome == Refused && found == Committed {
		// The fence did not hold. Whatever the cause, deleting must stop.
		return refs, false, fault.New(fault.Halt, "its commit was refused for good, and now it is in the table")
	}
	return refs, r.head.live(), nil
}

// look reads the references. What cannot be read is no error: the journal just
// stays as it is.
func (r *Run) look(ctx context.Context, rs Resolver, res *Resolution) (References, bool, error) {
	refs, err := rs.References(ctx, r.state())
	switch {
	case err != nil && (fault.Is(err, fault.Canceled) || fault.Is(err, fault.Halt)):
		return refs, false, fault.In("read the references", err)
	case err != nil:
		res.Unknown, res.Why = true, err.Error()
		return refs, false, nil
	case refs.Verdict != NotCommitted && refs.Verdict != CommitFound, refs.Referenced == nil:
		res.Unknown, res.Why = true, "the references are "+refs.Verdict.String()
		return refs, false, nil
	}
	return refs, true, nil
}

// discard is the destructive part of (d): the references are read once more
// right before the batch (F111), and the phase tells adopters that it is too
// late.
func (r *Run) discard(ctx context.Context, rs Resolver, tr Trasher, ripe []File, res *Resolution) error {
	refs, known, err := r.look(ctx, rs, res)
	if err != nil || !known {
		return err
	}
	kept := ripe[:0]
	for _, f := range ripe {
		if !refs.Referenced(f.Path) {
			kept = append(kept, f)
		}
	}
	if err := r.finish(ctx, Discarding); err != nil {
		return err
	}
	for _, part := range batches(kept, func(File) int { return 0 }) {
		d, err := tr.Discard(ctx, r, part)
		res.Moved += d.Moved
		res.Gone += d.Gone
		res.Kept = append(res.Kept, d.Kept...)
		if err != nil {
			return fault.In("discard what run "+r.id+" staged", err)
		}
	}
	return nil
}

// repair looks, once, at every removal the owner journalled and may have cut
// short. Those of a resolver are made again until they are whole.
func (r *Run) repair(ctx context.Context, tr Trasher) error {
	if r.head.Repaired {
		return nil
	}
	var part []Removal
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		err := tr.Repair(ctx, r, part)
		part = part[:0]
		return fault.In("repair the removals of run "+r.id, err)
	}
	for rm, err := range r.state().Removals(ctx) {
		if err != nil {
			return err
		}
		if part = append(part, rm); len(part) >= batchNames {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return fault.In("note the repair", r.change(ctx, func(h *head) (bool, error) {
		dirty := !h.Repaired && h.live()
		h.Repaired = true
		return dirty, nil
	}))
}

// finish moves the phase on to Discarding or Closed.
func (r *Run) finish(ctx context.Context, to Phase) error {
	now, err := r.s.fl.Clock(ctx)
	if err != nil {
		return fault.In("read the filer's clock", err)
	}
	err = r.change(ctx, func(h *head) (bool, error) {
		switch {
		case h.Phase == to:
			return false, nil
		case h.Phase == Settled, h.Phase == Discarding && to == Closed:
		default:
			return false, fault.New(fault.Stale, fmt.Sprintf("its journal is %s meanwhile", h.Phase))
		}
		h.Phase = to
		h.Segments = max(h.Segments, r.next-1)
		if to == Closed {
			t := later(h.Opened, now.UTC())
			h.Closed = &t
		}
		return true, nil
	})
	return fault.In(string(to), err)
}

// leftovers finds the staged files that are there, that nothing references and
// that no other open journal names, and returns those that are old enough. The
// listing comes before the references are read again (F111).
func (r *Run) leftovers(ctx context.Context, refs References, now time.Time, o ResolveOptions, res *Resolution) ([]File, error) {
	names := map[filer.Path]struct{}{}
	for p, err := range r.state().Staged(ctx) {
		if err != nil {
			return nil, err
		}
		// The map of a committed run belongs to its snapshot's history.
		if !refs.Referenced(p) && !(p.Within(Maps) && r.head.Outcome == Committed) {
			names[p] = struct{}{}
		}
	}
	for st, err := range r.s.OpenRuns(ctx, r.uuid) {
		if err != nil {
			return nil, fault.In("read what other runs hold", err)
		}
		if st.path == r.path || len(names) == 0 {
			continue
		}
		for p, err := range st.Staged(ctx) {
			if err != nil {
				return nil, fault.In("read what run "+st.Run()+" holds", err)
			}
			delete(names, p)
		}
	}
	return r.ripe(ctx, names, now, o, res)
}

func (r *Run) ripe(ctx context.Context, names map[filer.Path]struct{}, now time.Time, o ResolveOptions, res *Resolution) ([]File, error) {
	entries, err := statAll(ctx, r.s.fl, names)
	if err != nil {
		return nil, err
	}
	reason := fmt.Sprintf("staged by run %s, which ended %s", r.id, r.head.Outcome)
	var out []File
	for _, e := range entries {
		// A file whose age is unknown counts as just written (F109).
		newest := now
		if !e.Newest.IsZero() {
			newest = e.Newest
		}
		until := later(newest, *r.head.Revoked).Add(o.OrphanAge)
		if now.Before(until) {
			res.Waiting++
			res.Until = later(res.Until, until)
			continue
		}
		out = append(out, File{Path: e.Path, Identity: e.Identity(), Reason: reason})
	}
	return out, nil
}
