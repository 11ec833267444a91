package journal

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Eraser removes entries of this program's own state below Home for good.
// Package trash implements it.
type Eraser interface {
	// Erase removes the entry if it still is what e was. A missing one is no
	// error.
	Erase(ctx context.Context, e *filer.Entry) error
}

// PruneOptions bound the history.
type PruneOptions struct {
	// Keep is how long a closed journal stays.
	Keep time.Duration
	// Limit is the greatest number of journals removed by one call; 0 is 1000.
	Limit int
}

// Pruned is what Prune did.
type Pruned struct {
	Removed int `json:"removed"`
	// Kept counts the closed journals that stay for now.
	Kept int `json:"kept"`
	// Live counts those that somebody still has to finish. They are never
	// removed.
	Live int `json:"live"`
	// Unreadable counts damaged or newer entries. They are never removed.
	Unreadable int `json:"unreadable"`
}

// Prune removes closed journals whose time is over: closed longer than Keep ago
// and with nothing in the trash that undo could bring back. It may be stopped
// anywhere and called again.
func (s *Store) Prune(ctx context.Context, er Eraser, o PruneOptions) (Pruned, error) {
	var done Pruned
	if o.Limit <= 0 {
		o.Limit = 1000
	}
	if o.Keep < 0 {
		return done, fault.New(fault.Unsupported, "prune journals: the time to keep them is negative")
	}
	now, err := TrustedTime(ctx, s.fl, s.clk)
	if err != nil {
		return done, fault.In("prune journals", err)
	}
	for st, err := range s.List(ctx) {
		switch {
		case err != nil && (fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported)):
			done.Unreadable++
			continue
		case err != nil:
			return done, fault.In("prune journals", err)
		case st.Live():
			done.Live++
			continue
		case !st.head.over(now, o.Keep) || done.Removed >= o.Limit:
			done.Kept++
			continue
		}
		if err := s.prune(ctx, er, st); err != nil {
			return done, fault.In("prune journal "+st.path.String(), err)
		}
		done.Removed++
	}
	return done, nil
}

func (h *head) over(now time.Time, keep time.Duration) bool {
	return h.Phase == Pruning || now.After(h.Closed.Add(keep)) && (h.HeldUntil == nil || now.After(h.HeldUntil.Add(keep)))
}

// prune removes one journal: marked first, so that missing segments are not
// taken for damage, then the segments, the head last.
func (s *Store) prune(ctx context.Context, er Eraser, st *State) error {
	// While the segments can still say which they are.
	if err := s.pruneMaps(ctx, er, st); err != nil {
		return err
	}
	r, err := s.takeOver(ctx, st)
	if filer.NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = r.change(ctx, func(h *head) (bool, error) {
		if h.live() {
			return false, fault.New(fault.Stale, "it is "+string(h.Phase)+" again")
		}
		dirty := h.Phase != Pruning
		h.Phase = Pruning
		return dirty, nil
	})
	if err != nil {
		return err
	}
	dir := tableDir(r.uuid).Join(segmentsDir)
	for e, err := range s.fl.List(ctx, dir, filer.ListOptions{Prefix: r.id + "."}) {
		if err != nil {
			return err
		}
		if err := er.Erase(ctx, e); err != nil {
			return err
		}
	}
	return er.Erase(ctx, r.base)
}

// pruneMaps removes the movement maps of a committed run, which are of use as
// long as its journal is. Those of a run that was adopted are the adopter's; those
// of others went with their staged files.
func (s *Store) pruneMaps(ctx context.Context, er Eraser, st *State) error {
	if st.Outcome() != Committed || st.Phase() == Pruning {
		return nil
	}
	maps := map[filer.Path]struct{}{}
	for p, err := range st.Staged(ctx) {
		if err != nil {
			return err
		}
		if p.Within(Maps) {
			maps[p] = struct{}{}
		}
	}
	entries, err := statAll(ctx, s.fl, maps)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := er.Erase(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// statWidth is how many lookups run at once.
const statWidth = 8

// statAll returns the entries of those names that exist, in order of path.
func statAll(ctx context.Context, r filer.Reader, names map[filer.Path]struct{}) ([]*filer.Entry, error) {
	var mu sync.Mutex
	var out []*filer.Entry
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(statWidth)
	for _, p := range sorted(names) {
		g.Go(func() error {
			e, err := r.Stat(ctx, p)
			if filer.NotFound(err) {
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, e)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b *filer.Entry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out, nil
}

func sorted(names map[filer.Path]struct{}) []filer.Path {
	out := make([]filer.Path, 0, len(names))
	for p := range names {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}
