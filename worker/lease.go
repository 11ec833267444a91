package worker

import (
	"context"
	"sync"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
)

// keepLease renews the run's lease every third of it, until stop. A run that was
// revoked has its context cancelled, with the reason as cause: what it stages
// from then on nobody will commit.
func (r *Runner) keepLease(ctx context.Context, run *journal.Run, lease time.Duration) (held context.Context, stop func()) {
	held, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	beat, end := context.WithCancel(held)
	wg.Add(1)
	go func() {
		defer wg.Done()
		for r.o.Beat.Sleep(beat, lease/3) == nil {
			// A renewal that fails for another reason is tried again with the next
			// beat; the fence before the swap decides in the end.
			if err := run.Renew(beat); fault.Is(err, fault.Stale) {
				cancel(err)
				return
			}
		}
	}()
	return held, func() {
		end()
		wg.Wait()
		cancel(nil)
	}
}

// locks hold one lock for each table that is worked on.
type locks struct {
	mu   sync.Mutex
	held map[iceberg.TableID]chan struct{}
}

// acquire waits until nobody else works on the table.
func (l *locks) acquire(ctx context.Context, id iceberg.TableID) (release func(), err error) {
	for {
		l.mu.Lock()
		if l.held == nil {
			l.held = map[iceberg.TableID]chan struct{}{}
		}
		busy, taken := l.held[id]
		if !taken {
			mine := make(chan struct{})
			l.held[id] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, id)
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Canceled, "wait for another operation on table "+id.String(), context.Cause(ctx))
		}
	}
}
