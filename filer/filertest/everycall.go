package filertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
)

// Scenario is one operation, what makes good a run that was cut short, and what
// must hold then.
//
// Every run gets a fork of the start state with a clock of its own
// (Filer.Virtual), so runs do not see each other. Run and Recover take their
// time from that clock and may move it.
type Scenario struct {
	// Options make the filer; its Clock must not be shared with anything else.
	Options Options
	// Start makes the state that every run begins with. It is called once.
	Start func(t testing.TB, f *Filer)
	// Run is the operation. Undisturbed it must succeed.
	Run func(t testing.TB, f *Filer) error
	// Recover, if set, is called with a fresh handle after the disturbed run, as
	// the next process would start. Undisturbed it must succeed.
	Recover func(t testing.TB, f *Filer) error
	// Verify fails the test if the state is not as it should be. It is called
	// after every run, the undisturbed one included, with a fresh handle.
	Verify func(t testing.TB, f *Filer, in Injection)
	// Modes are the faults to try; nil is all of them. Ambiguous is tried both
	// ways.
	Modes []Mode
	// Reads makes calls that only read fail too. They fail before their effect,
	// whatever the mode: it makes no difference to the filer.
	Reads bool
	// Pick, if set, chooses the calls that fail.
	Pick func(Call) bool
	// Deep also crashes Recover at every call, after every crash of Run, and
	// then recovers again. The number of runs grows with the product.
	Deep bool
	// Long says that a run takes long: with -short only some calls are struck.
	Long bool
}

// Injection is how a run was disturbed. The zero value is an undisturbed run.
type Injection struct {
	// Call is the call that was struck, as numbered in the undisturbed run.
	Call Call
	// Mode is the fault and Happened whether the call took effect.
	Mode     Mode
	Happened bool
	// Peer: nothing failed, a peer came before the call (EveryGap).
	Peer bool
	// Fired reports that the disturbance took place. An operation that runs
	// calls in parallel may need fewer of them than it did undisturbed.
	Fired bool
	// Err is what the disturbed run returned. It may be nil: a run need not care
	// for a failure behind its last decision.
	Err error
	// During is the injection into Run after which, with Deep, this one struck
	// Recover.
	During *Injection
}

// String names the injection for messages.
func (in Injection) String() string {
	switch {
	case in.Call.Op == "":
		return "undisturbed"
	case in.Peer:
		return fmt.Sprintf("%03d-%s-peer", in.Call.N, in.Call.Op)
	case in.Mode == Ambiguous && in.Happened:
		return fmt.Sprintf("%03d-%s-ambiguous-done", in.Call.N, in.Call.Op)
	case in.Mode == Ambiguous:
		return fmt.Sprintf("%03d-%s-ambiguous-lost", in.Call.N, in.Call.Op)
	}
	return fmt.Sprintf("%03d-%s-%s", in.Call.N, in.Call.Op, in.Mode)
}

// Tally counts what a driver did, so that a test can require that it did
// something.
type Tally struct {
	// Calls is the number of calls of the undisturbed run, Runs of the disturbed
	// runs, and Fired of those in which the disturbance took place.
	Calls, Runs, Fired int
}

// EveryCall runs the scenario once to count its calls, and then once for every
// call and every mode with that call failing. After each run it opens a fresh
// handle, recovers and verifies. Each run is a subtest named by call and mode.
func EveryCall(t *testing.T, s Scenario) Tally {
	t.Helper()
	start := New(s.Options)
	s.Start(t, start)
	calls := s.undisturbed(t, start)
	tally := Tally{Calls: len(calls)}
	for _, c := range s.struck(calls) {
		for _, in := range s.injections(c) {
			t.Run(in.String(), func(t *testing.T) { s.strike(t, start, in, &tally) })
		}
	}
	return tally
}

// EveryGap runs the scenario once to count its calls, and then once for every
// call with peer acting right before it. The peer's handle shares the state and
// the clock. Recover and Verify follow as in EveryCall.
func EveryGap(t *testing.T, s Scenario, peer func(t testing.TB, peer *Filer)) Tally {
	t.Helper()
	start := New(s.Options)
	s.Start(t, start)
	calls := s.undisturbed(t, start)
	tally := Tally{Calls: len(calls)}
	for _, c := range s.struck(calls) {
		if s.Pick != nil && !s.Pick(c) {
			continue
		}
		in := Injection{Call: c, Peer: true}
		t.Run(in.String(), func(t *testing.T) {
			f := start.Fork()
			f.Before(c.N, func(Call) {
				in.Fired = true
				peer(t, f.Reopen())
			})
			in.Err = s.Run(t, f)
			tally.count(in)
			s.finish(t, f, in)
		})
	}
	return tally
}

// undisturbed returns the numbered calls of a run without faults.
func (s Scenario) undisturbed(t testing.TB, start *Filer) []Call {
	t.Helper()
	f := start.Fork()
	require.NoError(t, s.Run(t, f), "undisturbed run")
	s.finish(t, f, Injection{})
	return f.numbered()
}

// shortCalls is how many calls of a long run are struck with -short.
const shortCalls = 12

// struck are the calls to strike: all, or some from the whole run.
func (s Scenario) struck(all []Call) []Call {
	if !s.Long || !testing.Short() || len(all) <= shortCalls {
		return all
	}
	some := make([]Call, shortCalls)
	for i := range some {
		some[i] = all[i*(len(all)-1)/(shortCalls-1)]
	}
	return some
}

func (f *Filer) numbered() []Call {
	var out []Call
	for _, c := range f.Calls() {
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}

// injections are the ways to strike c.
func (s Scenario) injections(c Call) []Injection {
	if s.Pick != nil && !s.Pick(c) {
		return nil
	}
	if !c.Op.Writes() {
		if !s.Reads {
			return nil
		}
		return []Injection{{Call: c, Mode: BeforeEffect}}
	}
	modes := s.Modes
	if modes == nil {
		modes = AllModes()
	}
	var out []Injection
	for _, m := range modes {
		out = append(out, Injection{Call: c, Mode: m, Happened: m == AfterEffect || m == CrashAfter})
		if m == Ambiguous {
			out = append(out, Injection{Call: c, Mode: m, Happened: true})
		}
	}
	return out
}

// fault is what makes in happen. Both ways of an ambiguous call are spelled out
// so that no chance is left.
func (in Injection) fault() Fault {
	x := Fault{Call: in.Call.N, Mode: in.Mode}
	if in.Mode == Ambiguous {
		x.Mode, x.Kind = BeforeEffect, fault.Unknown
		if in.Happened {
			x.Mode = AfterEffect
		}
	}
	return x
}

func (in Injection) crash() bool { return in.Mode == CrashBefore || in.Mode == CrashAfter }

func (s Scenario) strike(t *testing.T, start *Filer, in Injection, tally *Tally) {
	f := start.Fork()
	f.Fail(in.fault())
	in.Err = s.Run(t, f)
	in.Fired = f.Fired() > 0
	tally.count(in)
	if s.Deep && in.Fired && in.crash() && s.Recover != nil {
		s.deep(t, f, in, tally)
	}
	s.finish(t, f, in)
}

// deep crashes the recovery from `first` at each of its calls.
func (s Scenario) deep(t *testing.T, crashed *Filer, first Injection, tally *Tally) {
	dry := crashed.Fork()
	require.NoError(t, s.Recover(t, dry), "undisturbed recovery")
	for _, c := range dry.numbered() {
		for _, in := range s.injections(c) {
			if !in.crash() {
				continue
			}
			t.Run("recover-"+in.String(), func(t *testing.T) {
				f := crashed.Fork()
				f.Fail(in.fault())
				in.Err = s.Recover(t, f)
				in.Fired, in.During = f.Fired() > 0, &first
				tally.count(in)
				s.finish(t, f, in)
			})
		}
	}
}

// finish recovers and verifies as the next process.
func (s Scenario) finish(t testing.TB, f *Filer, in Injection) {
	t.Helper()
	if s.Recover != nil {
		require.NoError(t, s.Recover(t, f.Reopen()), "recovery after %s (run returned: %v)", in, in.Err)
	}
	s.Verify(t, f.Reopen(), in)
}

func (y *Tally) count(in Injection) {
	y.Runs++
	if in.Fired {
		y.Fired++
	}
}
