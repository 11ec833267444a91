package filertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Op names a call as the log shows it.
type Op string

// The calls of a filer. An upload is one OpCreate, an OpChunk for every stored
// piece and an OpCommit; a listing is an OpList for every page; an open file is
// an OpOpen and an OpRead for every ranged read or streamed window.
const (
	OpStat      Op = "stat"
	OpList      Op = "list"
	OpOpen      Op = "open"
	OpRead      Op = "read"
	OpClock     Op = "clock"
	OpSubscribe Op = "subscribe"
	OpProbe     Op = "probe"
	OpCreate    Op = "create"
	OpChunk     Op = "chunk"
	OpCommit    Op = "commit"
	OpAbort     Op = "abort"
	OpPut       Op = "put"
	OpUpdate    Op = "update"
	OpPatch     Op = "patch"
	OpMove      Op = "move"
	OpDelete    Op = "delete"
	OpUnlink    Op = "unlink"
)

// Writes reports whether the call changes what the filer stores.
func (o Op) Writes() bool {
	switch o {
	case OpChunk, OpCommit, OpAbort, OpPut, OpUpdate, OpPatch, OpMove, OpDelete, OpUnlink:
		return true
	}
	return false
}

// Call is one numbered call through a handle.
type Call struct {
	// N counts from 1 in the order the calls began; 0 if the handle does not
	// count calls of this kind (see Options.Count).
	N    int
	Op   Op
	Path filer.Path
	// To is the target of a move.
	To filer.Path
	// Part is the number of the page, chunk or window within the operation,
	// from 0.
	Part int
}

// String is the call for messages: "12 commit /buckets/b/x".
func (c Call) String() string {
	s := fmt.Sprintf("%d %s %s", c.N, c.Op, c.Path)
	if c.To != "" {
		s += " -> " + c.To.String()
	}
	if c.Part > 0 {
		s += fmt.Sprintf(" part %d", c.Part)
	}
	return s
}

// Mode says what a fault does to a call.
type Mode uint8

const (
	// BeforeEffect: the call fails and nothing has happened. Transient.
	BeforeEffect Mode = iota
	// AfterEffect: the call took effect and its answer was lost. The error is
	// what the client makes of that: Unknown for calls that change an entry,
	// Transient for reads and chunks, which may be repeated.
	AfterEffect
	// Ambiguous: the call took effect or not, as Options.Seed decides for its
	// number. Unknown.
	Ambiguous
	// CrashBefore: the process dies before the call takes effect. This call and
	// every later one of the handle fail with ErrCrashed.
	CrashBefore
	// CrashAfter: the same, after it took effect.
	CrashAfter
)

var modeNames = [...]string{"before", "after", "ambiguous", "crash-before", "crash-after"}

// String is the mode's name.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "invalid"
}

// AllModes are all modes, for drivers.
func AllModes() []Mode {
	return []Mode{BeforeEffect, AfterEffect, Ambiguous, CrashBefore, CrashAfter}
}

var (
	// ErrInjected is the cause of every error a fault made.
	ErrInjected = errors.New("injected fault")
	// ErrCrashed is what a dead handle answers. Its kind is Halt, so that no
	// retry waits for the process to come back.
	ErrCrashed = errors.New("process has crashed")
	errClosed  = errors.New("filer is closed")
)

// Fault is one planned failure.
type Fault struct {
	// Call is the number of the call that fails. It is ignored in what an
	// OnCall function returns.
	Call int
	Mode Mode
	// Kind replaces the mode's kind of error, if it is not None.
	Kind fault.Kind
	// Err replaces ErrInjected as the cause, if not nil.
	Err error
}

// Fail adds faults to the script. Each fires once.
func (f *Filer) Fail(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// OnCall installs fn, which is asked before every call, counted or not, whether
// it fails. It runs without locks held, in the goroutine of the call: it may
// use other handles on the same state, move the clock or block. A nil fn ends
// it.
func (f *Filer) OnCall(fn func(Call) *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onCall = fn
}

// Before runs fn right before call n. Like OnCall it holds no locks.
func (f *Filer) Before(n int, fn func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = append(f.before, hook{n, fn})
}

// After runs fn right after call n took effect, before its caller sees the
// answer.
func (f *Filer) After(n int, fn func(Call)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = append(f.after, hook{n, fn})
}

// Calls is the log of all calls through this handle, counted or not.
func (f *Filer) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Count is the number of calls counted so far.
func (f *Filer) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counted
}

// Fired reports how many faults have struck.
func (f *Filer) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

type hook struct {
	n  int
	fn func(Call)
}

// do runs one call: it numbers it, asks the script and applies the effect.
func (f *Filer) do(ctx context.Context, c Call, effect func() error) error {
	doing := string(c.Op) + " " + c.Path.String()
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, doing, context.Cause(ctx))
	}
	if _, err := filer.ParsePath(string(c.Path)); err != nil && c.Op != OpClock {
		return fault.In(doing, err)
	}
	c, flt, err := f.begin(c)
	if err != nil {
		return fault.In(doing, err)
	}
	if flt == nil {
		err = effect()
		f.ran(c)
		return err
	}
	happens := flt.Mode == AfterEffect || flt.Mode == CrashAfter || flt.Mode == Ambiguous && f.coin(c.N)
	if happens {
		// A refusal is an answer too, and it is lost like any other.
		_ = effect()
		f.ran(c)
	}
	if flt.Mode == CrashBefore || flt.Mode == CrashAfter {
		f.mu.Lock()
		f.dead = ErrCrashed
		f.mu.Unlock()
		return fault.Wrap(fault.Halt, doing, ErrCrashed)
	}
	return fault.Wrap(flt.kind(c.Op), doing, flt.cause())
}

func (f *Filer) begin(c Call) (Call, *Fault, error) {
	f.mu.Lock()
	if f.dead != nil {
		defer f.mu.Unlock()
		return c, nil, fault.Wrap(fault.Halt, "", f.dead)
	}
	if f.opts.Count == CountAll || c.Op.Writes() {
		f.counted++
		c.N = f.counted
	}
	f.calls = append(f.calls, c)
	var flt *Fault
	if i := slices.IndexFunc(f.faults, func(x Fault) bool { return x.Call == c.N && c.N > 0 }); i >= 0 {
		x := f.faults[i]
		flt = &x
		f.faults = slices.Delete(f.faults, i, i+1)
	}
	hooks, onCall := matching(f.before, c), f.onCall
	f.mu.Unlock()

	for _, fn := range hooks {
		fn(c)
	}
	if onCall != nil {
		if x := onCall(c); x != nil && flt == nil {
			flt = x
		}
	}
	if flt != nil {
		f.mu.Lock()
		f.fired++
		f.mu.Unlock()
	}
	return c, flt, nil
}

// ran runs the hooks that wait for the effect of c.
func (f *Filer) ran(c Call) {
	f.mu.Lock()
	hooks := matching(f.after, c)
	f.mu.Unlock()
	for _, fn := range hooks {
		fn(c)
	}
}

func matching(hooks []hook, c Call) []func(Call) {
	var out []func(Call)
	for _, h := range hooks {
		if h.n == c.N && c.N > 0 {
			out = append(out, h.fn)
		}
	}
	return out
}

// coin is a fair choice that depends on the seed and the call's number alone.
func (f *Filer) coin(n int) bool {
	return priority(fmt.Sprintf("%d/%d", f.opts.Seed, n))&1 == 1
}

func (x *Fault) kind(op Op) fault.Kind {
	switch {
	case x.Kind != fault.None:
		return x.Kind
	case x.Mode == Ambiguous:
		return fault.Unknown
	case x.Mode == AfterEffect && op.Writes() && op != OpChunk:
		return fault.Unknown
	}
	return fault.Transient
}

func (x *Fault) cause() error {
	if x.Err != nil {
		return x.Err
	}
	return ErrInjected
}
