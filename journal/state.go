package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// State is one journal as read. The head is a moment's; the segments are read
// when asked for.
type State struct {
	s    *Store
	head head
	path filer.Path
}

// Path is the journal's entry.
func (st *State) Path() filer.Path { return st.path }

// Run is the run's name.
func (st *State) Run() string { return st.head.Run }

// Token is held by the name of every file the run staged.
func (st *State) Token() string { return st.head.Token }

// Table is the table the run worked on, by the name it had then.
func (st *State) Table() iceberg.TableID { return st.head.Table }

// UUID is the table's uuid in lower case.
func (st *State) UUID() string { return st.head.UUID }

// Op is the wire name of the operation.
func (st *State) Op() string { return st.head.Op }

// PlanDigest identifies the plan that was executed.
func (st *State) PlanDigest() string { return st.head.PlanDigest }

// Base is the metadata location the plan was made from.
func (st *State) Base() string { return st.head.Base }

// Phase is how far the journal has come.
func (st *State) Phase() Phase { return st.head.Phase }

// Outcome is how the run ended, as far as that is known.
func (st *State) Outcome() Outcome { return st.head.Outcome }

// Opened is the filer's time at which the run began.
func (st *State) Opened() time.Time { return st.head.Opened }

// Expires is the filer's time at which the lease runs out.
func (st *State) Expires() time.Time { return st.head.Expires }

// Closed is the filer's time at which the journal was closed; zero before.
func (st *State) Closed() time.Time {
	if st.head.Closed == nil {
		return time.Time{}
	}
	return *st.head.Closed
}

// Live reports whether the journal still has to be finished: its staged files
// count as references until then.
func (st *State) Live() bool { return st.head.live() }

// Expired reports whether the lease has run out at the filer's time now, so
// that the run may be revoked.
func (st *State) Expired(now time.Time) bool { return !now.Before(st.head.Expires) }

// Removes reports whether the run may have journalled removals.
func (st *State) Removes() bool { return st.head.HeldUntil != nil }

// Decisions are the commits the run was about to try, oldest first. Only the
// last can be undecided.
func (st *State) Decisions() []Decision { return st.head.clone().Decisions }

// Adopted are the runs whose staged files this one took over.
func (st *State) Adopted() []Adoption { return st.head.clone().Adopted }

// Staged yields every file the run may have created, in the order in which it
// named them. A name may come twice. The sequence ends after the first error.
func (st *State) Staged(ctx context.Context) iter.Seq2[filer.Path, error] {
	return each(ctx, st, func(g *segment) []filer.Path { return g.Names })
}

// Removals yields the removals the run journalled. Whether they were made only
// the paths themselves can tell.
func (st *State) Removals(ctx context.Context) iter.Seq2[Removal, error] {
	return each(ctx, st, func(g *segment) []Removal { return g.Removals })
}

// Units are the finished units; of two with one id the later one counts. A unit
// whose files were never named is damage.
func (st *State) Units(ctx context.Context) ([]Unit, error) {
	var order []string
	units := map[string]Unit{}
	names := map[filer.Path]struct{}{}
	for g, err := range st.segments(ctx) {
		if err != nil {
			return nil, err
		}
		for _, p := range g.Names {
			names[p] = struct{}{}
		}
		if g.Unit == nil {
			continue
		}
		for _, p := range g.Unit.files() {
			if _, ok := names[p]; !ok {
				return nil, corrupt(st.path, fmt.Errorf("unit %s holds %s, which was not named before", g.Unit.ID, p))
			}
		}
		if _, twice := units[g.Unit.ID]; !twice {
			order = append(order, g.Unit.ID)
		}
		units[g.Unit.ID] = *g.Unit
	}
	out := make([]Unit, len(order))
	for i, id := range order {
		out[i] = units[id]
	}
	return out, nil
}

// Result is the run's result, or nil.
func (st *State) Result(ctx context.Context) (Raw, error) {
	var out Raw
	for g, err := range st.segments(ctx) {
		if err != nil {
			return nil, err
		}
		if g.Result != nil {
			out = g.Result
		}
	}
	return out, nil
}

func each[T any](ctx context.Context, st *State, of func(*segment) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for g, err := range st.segments(ctx) {
			if err != nil {
				yield(none, err)
				return
			}
			for _, it := range of(g) {
				if !yield(it, nil) {
					return
				}
			}
		}
	}
}

// segments yields the segments in order and without a gap. The head is read
// again when a segment names what the head at hand does not cover: an adoption
// may have come in between.
func (st *State) segments(ctx context.Context) iter.Seq2[*segment, error] {
	return func(yield func(*segment, error) bool) {
		h := st.head
		if h.Phase == Pruning {
			return // what is left of it says nothing
		}
		n := 0
		dir := tableDir(h.UUID).Join(segmentsDir)
		for e, err := range st.s.fl.List(ctx, dir, filer.ListOptions{Prefix: h.Run + "."}) {
			if err != nil {
				yield(nil, fault.In("list the segments of journal "+st.path.String(), err))
				return
			}
			n++
			g, err := st.segment(ctx, e, &h, n)
			if !yield(g, err) || err != nil {
				return
			}
		}
		if n < h.Segments {
			yield(nil, corrupt(st.path, fmt.Errorf("it has %d segments and should have %d", n, h.Segments)))
		}
	}
}

func (st *State) segment(ctx context.Context, e *filer.Entry, h *head, n int) (*segment, error) {
	if want := segmentPath(h.UUID, h.Run, n); e.Path != want {
		return nil, corrupt(st.path, fmt.Errorf("segment %s is missing, %s follows", want.Name(), e.Path.Name()))
	}
	d, err := read(ctx, st.s.fl, e, maxSegmentBytes)
	if err != nil {
		return nil, err
	}
	g, err := decodeSegment(e.Path, d.content, h, n)
	if err != nil {
		return nil, err
	}
	if err := g.belongs(h); err != nil {
		fresh, again := st.s.load(ctx, st.path)
		if again != nil {
			return nil, errors.Join(corrupt(e.Path, err), again)
		}
		*h = fresh.head
		if err := g.belongs(h); err != nil {
			return nil, corrupt(e.Path, err)
		}
	}
	return &g, nil
}

// Load reads the journal of a run of the table with the given uuid. A missing
// one is filer.ErrNotFound.
func (s *Store) Load(ctx context.Context, uuid, run string) (*State, error) {
	uuid = strings.ToLower(uuid)
	if !uuidForm.MatchString(uuid) || !runForm.MatchString(run) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("load journal: %q of table %q is no run", run, uuid))
	}
	return s.load(ctx, headPath(uuid, run))
}

func (s *Store) load(ctx context.Context, p filer.Path) (*State, error) {
	d, err := stat(ctx, s.fl, p, maxHeadBytes)
	if err != nil {
		return nil, err
	}
	h, err := decodeHead(p, d.content)
	if err != nil {
		return nil, err
	}
	return &State{s: s, head: h, path: p}, nil
}

// Find reads the journal of a run of any table. A run that exists nowhere is
// filer.ErrNotFound.
func (s *Store) Find(ctx context.Context, run string) (*State, error) {
	if !runForm.MatchString(run) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("find journal: %q is no run", run))
	}
	for dir, err := range s.tables(ctx) {
		if err != nil {
			return nil, err
		}
		st, err := s.load(ctx, headPath(dir, run))
		if err == nil || !filer.NotFound(err) {
			return st, err
		}
	}
	return nil, fault.WithHint("`seaice journal list` shows the runs that are known",
		fault.Wrap(fault.Stale, "find journal of run "+run, filer.ErrNotFound))
}

// List yields every journal, open or kept as history. A damaged or foreign one
// yields an error that names it, and the listing goes on; an error of the
// listing itself ends it.
func (s *Store) List(ctx context.Context) iter.Seq2[*State, error] {
	return func(yield func(*State, error) bool) {
		for uuid, err := range s.tables(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			for st, err := range s.Runs(ctx, uuid) {
				if !yield(st, err) {
					return
				}
			}
		}
	}
}

// Runs yields the journals of one table by its uuid, as List does.
func (s *Store) Runs(ctx context.Context, uuid string) iter.Seq2[*State, error] {
	uuid = strings.ToLower(uuid)
	return func(yield func(*State, error) bool) {
		if !uuidForm.MatchString(uuid) {
			yield(nil, fault.New(fault.Unsupported, fmt.Sprintf("list journals: table uuid %q is not a uuid", uuid)))
			return
		}
		for e, err := range s.fl.List(ctx, tableDir(uuid), filer.ListOptions{}) {
			if err != nil {
				yield(nil, fault.In("list journals of table "+uuid, err))
				return
			}
			if e.IsDir && e.Path.Name() == segmentsDir {
				continue
			}
			d, err := read(ctx, s.fl, e, maxHeadBytes)
			if filer.NotFound(err) {
				continue // pruned meanwhile
			}
			var st *State
			if err == nil {
				var h head
				if h, err = decodeHead(e.Path, d.content); err == nil {
					st = &State{s: s, head: h, path: e.Path}
				}
			}
			if !yield(st, err) {
				return
			}
		}
	}
}

// OpenRuns yields the journals of one table that somebody still has to finish,
// and an error for each that cannot be read: whoever removes files must take
// that for a reference source he could not read.
func (s *Store) OpenRuns(ctx context.Context, uuid string) iter.Seq2[*State, error] {
	return func(yield func(*State, error) bool) {
		for st, err := range s.Runs(ctx, uuid) {
			if err == nil && !st.Live() {
				continue
			}
			if !yield(st, err) {
				return
			}
		}
	}
}

// tables yields the uuids that have journals.
func (s *Store) tables(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for e, err := range s.fl.List(ctx, Root, filer.ListOptions{}) {
			switch {
			case err != nil:
				err = fault.In("list journals", err)
			case !e.IsDir || !uuidForm.MatchString(e.Path.Name()):
				continue // not ours to judge: nothing is stored there
			}
			name := ""
			if err == nil {
				name = e.Path.Name()
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
	}
}
