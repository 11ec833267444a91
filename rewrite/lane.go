package rewrite

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
)

// laneWindow is how many bytes the column that is being written may be ahead of
// the file.
const laneWindow = 4 << 20

// lane carries the pages of one column chunk from the worker that makes them to
// the file. Columns are made several at a time and written one after the other:
// the first lane streams, the later ones hold their pages in memory, as far as
// the budget goes.
type lane struct {
	budget *semaphore.Weighted
	// head is closed when it is this lane's turn to be written.
	head chan struct{}

	mu    sync.Mutex
	cond  *sync.Cond
	items []item
	bytes int64 // of items
	done  bool
	err   error

	// chunk is set before the lane is finished without an error.
	chunk chunk
}

// itemKind is the kind of an item.
type itemKind uint8

const (
	itemPage itemKind = iota
	itemDictionary
	// itemBeginPart and itemEndPart enclose the pages of a whole chunk of a
	// source.
	itemBeginPart
	itemEndPart
)

// item is a page on its way, or what is to be said between pages.
type item struct {
	kind itemKind
	page encode.Page
	// memory is what the page lies in, which is held until it is written, and takes
	// charge bytes. Of pages that share it the first is charged, and gives that back
	// when it is written: in the lane that is being written more may be held, by as
	// much as one piece of a file.
	memory     *column.Memory
	charge     int64
	statistics *format.Statistics
	sizes      *format.SizeStatistics
	// held is what it holds of the budget.
	held int64
}

// itemOverhead is what a page takes beside its bytes.
const itemOverhead = 400

func (it *item) size() int64 { return it.charge + itemOverhead }

func newLane(budget *semaphore.Weighted) *lane {
	l := &lane{budget: budget, head: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	return l
}

// wakeOn wakes who waits when ctx ends, until the function it returns is called.
func (l *lane) wakeOn(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cond.Broadcast()
	})
}

func (l *lane) isHead() bool {
	select {
	case <-l.head:
		return true
	default:
		return false
	}
}

// put hands over a page, which nobody may change from then on. It waits for
// memory; the lane that is written never waits for anything but the file, so
// some lane always goes on.
func (l *lane) put(ctx context.Context, it item) error {
	if it.memory != nil {
		it.charge = it.memory.Charge()
	}
	held, err := l.admit(ctx, it.size())
	if err != nil {
		return err
	}
	it.held = held
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wakeOn(ctx)()
	for held == 0 && l.bytes > laneWindow && ctx.Err() == nil {
		l.cond.Wait()
	}
	if err := ctx.Err(); err != nil {
		l.release(held)
		return err
	}
	l.items = append(l.items, it)
	l.bytes += it.size()
	l.cond.Broadcast()
	return nil
}

// admit takes n bytes of the budget, or none if it is this lane's turn.
func (l *lane) admit(ctx context.Context, n int64) (int64, error) {
	if l.isHead() {
		return 0, nil
	}
	if l.budget.TryAcquire(n) {
		return n, nil
	}
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.head:
			cancel()
		case <-wait.Done():
		}
	}()
	if l.budget.Acquire(wait, n) == nil {
		return n, nil
	}
	return 0, ctx.Err()
}

func (l *lane) release(held int64) {
	if held > 0 {
		l.budget.Release(held)
	}
}

// finish says that there are no more pages.
func (l *lane) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done, l.err = true, err
	l.cond.Broadcast()
}

// drain gives every page to write, in order, until the column is finished.
func (l *lane) drain(ctx context.Context, write func(item) error) error {
	close(l.head)
	defer l.wakeOn(ctx)()
	for {
		it, ok, err := l.take(ctx)
		if !ok {
			return err
		}
		err = write(it)
		it.memory.Release()
		l.release(it.held)
		if err != nil {
			return err
		}
	}
}

func (l *lane) take(ctx context.Context) (item, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.items) == 0 && !l.done && ctx.Err() == nil {
		l.cond.Wait()
	}
	if err := ctx.Err(); err != nil {
		return item{}, false, err
	}
	if len(l.items) == 0 {
		return item{}, false, l.err
	}
	it := l.items[0]
	l.items[0] = item{}
	l.items = l.items[1:]
	l.bytes -= it.size()
	l.cond.Broadcast()
	return it, true, nil
}

// drop gives back what the pages hold that nobody will write.
func (l *lane) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, it := range l.items {
		it.memory.Release()
		l.release(it.held)
	}
	l.items = nil
}
