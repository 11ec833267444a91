// Package filertest holds a complete filer in memory, with a virtual clock and
// a script of faults, and the suite that it and the real client both pass.
//
// Filer implements filer.Filer in process: a tree of the same protobuf entries
// the real filer keeps, their chunks, the change feed, the conditions and the
// memory of request ids. Its state is copied in constant time, so a test can
// run one operation many times from the same start and make it fail at every
// call (EveryCall) or let a peer come between (EveryGap).
package filertest

import (
	"sync"
	"time"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
)

// Counting says which calls of a handle get a number.
type Counting uint8

const (
	// CountAll numbers every call, reads included.
	CountAll Counting = iota
	// CountWrites numbers only the calls that change what is stored.
	CountWrites
)

// Options describe the filer and the cluster behind it.
type Options struct {
	// Clock is the time of the world. The default starts at Epoch.
	Clock *clock.Virtual
	// Skew is how far the filer's clock is ahead of Clock. What is written through
	// a handle carries the times of Clock, as with the real client; what the
	// fixtures write, and directories, the filer's.
	Skew time.Duration
	// ChunkSize is the length in bytes of an upload's chunks and of a stream's
	// windows. The default is 4 MiB.
	ChunkSize int
	// PageSize is the number of entries of a listing's page. The default is 1000.
	PageSize int
	// Capabilities are what the filer does. The default is a present filer:
	// conditional updates and transactions, no cipher.
	Capabilities *filer.Capabilities
	// Count says which calls are numbered.
	Count Counting
	// Seed decides what Ambiguous calls do.
	Seed uint64
}

// Epoch is the time at which the default clock starts.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Filer is a handle on a filer in memory. It is safe for concurrent use. The
// script, the log and the counters belong to the handle, the state is shared
// with the handles made by Reopen.
type Filer struct {
	s    *store
	opts Options

	mu      sync.Mutex
	counted int
	fired   int
	calls   []Call
	reads   map[filer.Path]Reads
	faults  []Fault
	onCall  func(Call) *Fault
	before  []hook
	after   []hook
	dead    error
}

var _ filer.Filer = (*Filer)(nil)

// New returns a handle on a new, empty filer.
func New(o Options) *Filer {
	if o.Clock == nil {
		o.Clock = clock.NewVirtual(Epoch)
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = 4 << 20
	}
	if o.PageSize <= 0 {
		o.PageSize = 1000
	}
	if o.Capabilities == nil {
		o.Capabilities = &filer.Capabilities{ConditionalUpdate: true, Transactions: true}
	}
	return handle(&store{clk: o.Clock, opts: o, changed: make(chan struct{})})
}

func handle(s *store) *Filer {
	return &Filer{s: s, opts: s.opts, reads: map[filer.Path]Reads{}}
}

// Reopen returns a new handle on the same state: what a process sees that
// starts after a crash, or a peer. It has no script and counts from zero.
func (f *Filer) Reopen() *Filer { return handle(f.s) }

// Fork returns a handle on a copy of the state with a clock of its own that
// shows the same time. Nothing done to either is seen by the other.
func (f *Filer) Fork() *Filer {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	o := f.s.opts
	o.Clock = clock.NewVirtual(f.s.clk.Now())
	return handle(&store{clk: o.Clock, opts: o, state: f.s.state.clone(), changed: make(chan struct{})})
}

// Virtual is the clock of the world the filer lives in.
func (f *Filer) Virtual() *clock.Virtual { return f.s.clk }

// State is a copy of everything the filer stores.
type State struct{ state state }

// Snapshot copies the state in constant time.
func (f *Filer) Snapshot() *State {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return &State{f.s.state.clone()}
}

// Restore puts a snapshot back, for all handles. The clock is not moved.
func (f *Filer) Restore(st *State) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.state = st.state.clone()
}

// Close ends the handle; the state stays.
func (f *Filer) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead == nil {
		f.dead = errClosed
	}
	return nil
}
