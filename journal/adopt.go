package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Adopt takes over, into the run of the caller, what an abandoned run of the
// same table had staged, so that finished units can be committed instead of
// being done again. It runs (a) to (c) of Resolve. If the abandoned run's commit
// did not happen, every staged file that nothing references is recorded by into
// before the old journal is closed as Adopted: at no time does no journal hold
// it. The result says what became of the old run; Adopted is the only outcome
// with which its units may be used.
func (s *Store) Adopt(ctx context.Context, st *State, rs Resolver, into *Run) (Resolution, error) {
	res := Resolution{Run: st.Run(), Phase: st.Phase()}
	if st.UUID() != into.uuid || st.Run() == into.id || st.Table().Bucket != into.table.Bucket {
		return res, fault.New(fault.Unsupported, fmt.Sprintf("adopt run %s into run %s: they are not two runs of one table", st.Run(), into.id))
	}
	r, err := s.takeOver(ctx, st)
	if err != nil {
		return res, err
	}
	err = r.adopt(ctx, rs, into, &res)
	res.Phase, res.Outcome = r.head.Phase, r.head.Outcome
	return res, fault.In("adopt run "+r.id, err)
}

func (r *Run) adopt(ctx context.Context, rs Resolver, into *Run, res *Resolution) error {
	if !r.head.live() || r.head.Phase == Discarding {
		return fault.New(fault.Stale, fmt.Sprintf("its journal is %s", r.head.Phase))
	}
	refs, known, err := r.settle(ctx, rs, res)
	if err != nil || !known || r.head.Outcome != Refused || r.head.Phase != Settled {
		return err
	}
	if err := into.inherit(ctx, append(r.head.clone().Adopted, Adoption{Run: r.id, Token: r.token})); err != nil {
		return err
	}
	var names []filer.Path
	for p, err := range r.state().Staged(ctx) {
		if err != nil {
			return err
		}
		if !refs.Referenced(p) {
			names = append(names, p)
		}
	}
	if err := into.Record(ctx, names...); err != nil {
		return err
	}
	return r.change(ctx, func(h *head) (bool, error) {
		if h.Phase == Closed && h.Outcome == Adopted {
			return false, nil
		}
		if h.Phase != Settled {
			return false, fault.New(fault.Stale, fmt.Sprintf("its journal is %s meanwhile", h.Phase))
		}
		t := later(h.Opened, *h.Revoked)
		h.Phase, h.Outcome, h.Closed = Closed, Adopted, &t
		return true, nil
	})
}

// inherit lets the run record names that hold the tokens of others.
func (r *Run) inherit(ctx context.Context, from []Adoption) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return r.change(ctx, func(h *head) (bool, error) {
		if err := r.writable(h); err != nil {
			return false, err
		}
		dirty := false
		for _, a := range from {
			if !slices.Contains(h.Adopted, a) {
				h.Adopted = append(h.Adopted, a)
				dirty = true
			}
		}
		if len(h.Adopted) > maxAdoptions {
			return false, fault.New(fault.TooLarge, fmt.Sprintf("more than %d runs adopted", maxAdoptions))
		}
		return dirty, nil
	})
}
