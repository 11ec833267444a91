package compact

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/ops"
)

const (
	// defaultMemory is the budget of a plan that states none, and leastShare what a
	// unit gets of it at least when several run at a time.
	defaultMemory = 256 << 20
	leastShare    = 48 << 20
	// tries is how often a unit is begun that fails for a reason that passes.
	tries = 3
)

// memory is what the run may hold in buffers: half of its budget, because a
// collected heap grows to twice what lives in it.
func (x *execution) memory() int64 {
	if x.p.options.MemoryBytes > 0 {
		return x.p.options.MemoryBytes / 2
	}
	return defaultMemory / 2
}

// shares says how many of so many units run at a time and what each of them may
// take: one alone takes all.
func (x *execution) shares(units int) (width int, each int64) {
	all := x.memory()
	if x.cache != nil {
		all -= all / 4
	}
	width = int(min(max(1, all/leastShare), int64(max(1, min(units, runtime.GOMAXPROCS(0))))))
	return width, all / int64(width)
}

// run rewrites the units, several at a time. One that needs more memory than its
// share is tried once more with all of it.
func (x *execution) run(ctx context.Context) error {
	units, err := x.standing(ctx)
	if err != nil {
		return err
	}
	var read atomic.Int64
	total := int64(0)
	for _, u := range units {
		total += u.Bytes()
	}
	progress := func(n int64) { x.pr.Step("bytes rewritten", min(read.Add(n), total), total) }
	x.pr.Step("bytes rewritten", 0, total)
	width, each := x.shares(len(units))
	large := make([]*Unit, len(units))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(width)
	for i, u := range units {
		g.Go(func() error {
			again, err := x.unit(gctx, u, each, width == 1, progress)
			if again {
				large[i] = u
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, u := range large {
		if u == nil {
			continue
		}
		if _, err := x.unit(ctx, u, each*int64(width), true, progress); err != nil {
			return err
		}
	}
	x.order()
	return nil
}

// order sorts what was done and left: workers finish in any order, and what is
// committed must not depend on it.
func (x *execution) order() {
	place := map[string]int{}
	for i := range x.p.units {
		place[x.p.units[i].ID] = i + 1
	}
	slices.SortStableFunc(x.done, func(a, b *finished) int { return place[a.Unit.ID] - place[b.Unit.ID] })
	slices.SortStableFunc(x.dropped, func(a, b ops.Reason) int { return compareReasons(a, b) })
}

// unit rewrites one unit and takes it in, or leaves it out with a reason (fault
// kinds, "this unit"). It is to be tried again if it needs more memory and last
// is false.
func (x *execution) unit(ctx context.Context, u *Unit, memory int64, last bool, progress func(int64)) (again bool, err error) {
	f, err := x.attempt(ctx, u, memory, progress)
	if err == nil {
		x.mu.Lock()
		x.done = append(x.done, f)
		x.mu.Unlock()
		return false, nil
	}
	if ctx.Err() != nil {
		return false, fault.Wrap(fault.Canceled, "rewrite "+u.subject(), context.Cause(ctx))
	}
	switch fault.Of(err) {
	case fault.Stale:
		// The run itself may be what is stale: then nothing goes on.
		if lost := x.st.Run().Check(ctx); lost != nil {
			return false, lost
		}
	case fault.TooLarge:
		if !last {
			return true, nil
		}
	case fault.Unsupported:
	case fault.Corrupt:
		return false, fault.In("rewrite "+u.subject(), x.unlessExpired(ctx, err))
	default:
		return false, fault.In("rewrite "+u.subject(), err)
	}
	x.drop(u, fault.Of(err).String(), err.Error())
	x.pr.Note(fmt.Sprintf("%s is left out: %s", u.subject(), err))
	return false, nil
}

// unlessExpired is damage, or fault.Stale if the planning snapshot left the table
// while the run was at work: then its files may be gone, and nothing could be
// committed.
func (x *execution) unlessExpired(ctx context.Context, damage error) error {
	b := x.p.header.Base
	v, err := iceberg.Load(ctx, x.st.Reader(), b.Table)
	if err != nil {
		return damage
	}
	if _, ok := v.Snapshot(b.Snapshot); ok {
		return damage
	}
	return fault.Wrap(fault.Stale, fmt.Sprintf("the planning snapshot %d was expired", b.Snapshot), damage)
}

// attempt rewrites a unit, and begins again if what failed may pass.
func (x *execution) attempt(ctx context.Context, u *Unit, memory int64, progress func(int64)) (f *finished, err error) {
	for n := 1; ; n++ {
		err = guarded(func() (err error) {
			f, err = x.rewrite(ctx, u, memory, progress)
			return err
		})
		if !fault.Is(err, fault.Transient) || n == tries {
			return f, err
		}
		x.pr.Note(fmt.Sprintf("%s is begun again: %s", u.subject(), err))
		if err := x.st.Pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

// guarded turns a panic, which would end the process as it is not on the
// caller's goroutine, into an error that stops the operation.
func guarded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Halt, fmt.Sprintf("panic: %v", p))
		}
	}()
	return fn()
}
