// Package ops says what an operation is: a planner that reads and decides, an
// executor that writes new files and hands back a change, and what both say
// about it: the plan with its reasons, the effects predicted and measured, and
// the result.
//
// Every operation lives in a package of its own below this one, and none of
// them knows another. Detection, dry runs and execution all run the same
// planner; an operation that has nothing to do says why.
package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
)

// Kind is an operation by its wire name, which is Iceberg's procedure name.
type Kind = config.Operation

// Input is all a planner may look at.
type Input struct {
	View     *iceberg.View
	Reader   filer.Reader
	Settings *config.Settings
	// Now is the time that ages are measured from: the filer's.
	Now time.Time
}

// PlanFormat is the version of the JSON of plans. A plan of another version is
// refused.
const PlanFormat = 1

// Header is what every plan says about itself.
type Header struct {
	Format    int            `json:"format"`
	Operation Kind           `json:"operation"`
	Base      commit.Base    `json:"base"`
	Guarantee commit.Profile `json:"guarantee"`
	// PlannedAt is Input.Now.
	PlannedAt time.Time `json:"planned-at"`
	// Digest identifies the decision: plans made from the same state with the
	// same settings have the same one.
	Digest string `json:"digest"`
	// Effects are predicted.
	Effects Effects `json:"effects"`
	// Reasons say for everything that was looked at and left alone why.
	Reasons []Reason `json:"reasons,omitempty"`
}

// Plan is a finished decision: immutable, printable, and tied to the state it
// was made from.
type Plan interface {
	// Head is what the plan says about itself.
	Head() Header
	// Empty reports that there is nothing to do.
	Empty() bool
	// Summary is the plan in one line for people, with its numbers.
	Summary() string
	json.Marshaler
}

// Reporter is a plan that tells in one line for people what of it was done.
// Without it the result of a run shows the summary of the plan.
type Reporter interface {
	// Report is made of what a run measured, or several runs of its parts
	// together. Reasons say what they left out.
	Report(e Effects, counters map[string]int64, reasons []Reason) string
}

// Planner decides. It reads and never writes; the same input gives the same
// plan.
type Planner[P Plan] interface {
	Plan(ctx context.Context, in Input) (P, error)
}

// Executor stages the work of a plan and returns what is to be committed. It
// commits and removes nothing.
type Executor[P Plan] interface {
	Execute(ctx context.Context, p P, st *commit.Stage, pr Progress) (Work, error)
}

// Work is what an executor staged: the change to commit and what follows it.
type Work struct {
	Change commit.Change
	// After is called once the change is committed, and never otherwise. It
	// measures what happened and, through Done.Remove, removes what the commit
	// freed. Its error is a warning: the commit stands.
	After func(ctx context.Context, d Done) (Actual, error)
	// Left, if set, says what was left out and why when the head left nothing to
	// change and After is not called.
	Left func() []Reason
}

// Done is a commit that happened.
type Done struct {
	Commit commit.Result
	Stage  *commit.Stage
	// Head is the table as read again after the commit. Others may have
	// committed since.
	Head *iceberg.View
	// Remove moves files to the trash on behalf of the run. It refuses paths
	// that the table does not own alone, and files whose identity changed. It may
	// be called several times; batches of some thousands keep memory low.
	Remove func(ctx context.Context, files []journal.File) (Removed, error)
}

// Removed is what became of files that were to be removed.
type Removed struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Gone were not there any more.
	Gone int64 `json:"gone"`
	// Kept were left, each with its reason.
	Kept []journal.Kept `json:"kept,omitempty"`
}

// Actual is what an operation measured of itself.
type Actual struct {
	Effects  Effects
	Counters map[string]int64
	Reasons  []Reason
	Warnings []string
	// Proof is what shows that the commit changed no row, if the operation has
	// such a thing.
	Proof json.RawMessage
}

// Progress is told how far an execution is. Implementations are safe for
// concurrent use and cheap.
type Progress interface {
	// Step reports done out of total of something named, as in "manifests".
	Step(what string, done, total int64)
	// Note reports something a person should see while the run goes on.
	Note(text string)
}

// Silent is a Progress that nobody watches.
type Silent struct{}

// Step does nothing.
func (Silent) Step(string, int64, int64) {}

// Note does nothing.
func (Silent) Note(string) {}

// Operation is an operation with its plan type hidden.
type Operation interface {
	Kind() Kind
	Plan(ctx context.Context, in Input) (Plan, error)
	// Execute refuses a plan of another operation.
	Execute(ctx context.Context, p Plan, st *commit.Stage, pr Progress) (Work, error)
	// Decode reads the JSON of a plan. A plan of another operation or format
	// version is fault.Unsupported.
	Decode(b []byte) (Plan, error)
}

// Parted is a plan that can be committed in parts, one after the other, so that
// what is finished first does not wait for the last. Each part is a plan on the
// same base; together they are the whole.
type Parted interface {
	Plan
	// Parts are the parts in order, at least one.
	Parts() []Plan
}

// Resumer is an operation that can commit what an abandoned run had finished
// instead of doing it again.
type Resumer interface {
	Operation
	// Resumes reports whether any of the finished units is of use to the plan.
	// The units are then given to Execute by Stage.Inherited.
	Resumes(p Plan, units []journal.Unit) bool
}

// resumer is an executor whose operation is a Resumer.
type resumer[P Plan] interface {
	Resumes(p P, units []journal.Unit) bool
}

// Bind makes an Operation of a planner and an executor that agree on P. decode
// reads what P's MarshalJSON wrote, without its header being checked.
func Bind[P Plan](k Kind, p Planner[P], e Executor[P], decode func([]byte) (P, error)) Operation {
	return &bound[P]{kind: k, planner: p, executor: e, decode: decode}
}

type bound[P Plan] struct {
	kind     Kind
	planner  Planner[P]
	executor Executor[P]
	decode   func([]byte) (P, error)
}

func (b *bound[P]) Kind() Kind { return b.kind }

func (b *bound[P]) Plan(ctx context.Context, in Input) (Plan, error) {
	p, err := b.planner.Plan(ctx, in)
	if err != nil {
		return nil, fault.In("plan "+string(b.kind), err)
	}
	return p, nil
}

func (b *bound[P]) Execute(ctx context.Context, p Plan, st *commit.Stage, pr Progress) (Work, error) {
	own, ok := p.(P)
	if !ok || p.Head().Operation != b.kind {
		return Work{}, fault.New(fault.Unsupported,
			fmt.Sprintf("execute %s: the plan is of operation %s", b.kind, p.Head().Operation))
	}
	w, err := b.executor.Execute(ctx, own, st, pr)
	return w, fault.In("execute "+string(b.kind), err)
}

// Resumes implements Resumer; an executor that cannot resume has no use for
// any unit.
func (b *bound[P]) Resumes(p Plan, units []journal.Unit) bool {
	own, ok := p.(P)
	r, can := b.executor.(resumer[P])
	return ok && can && r.Resumes(own, units)
}

func (b *bound[P]) Decode(raw []byte) (Plan, error) {
	var h struct {
		Format    int  `json:"format"`
		Operation Kind `json:"operation"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fault.Wrap(fault.Unsupported, "read plan", err)
	}
	if h.Format != PlanFormat {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("read plan: format %d, this program reads %d", h.Format, PlanFormat))
	}
	if h.Operation != b.kind {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("read plan: it is of operation %s, not %s", h.Operation, b.kind))
	}
	p, err := b.decode(raw)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "read plan of "+string(b.kind), err)
	}
	return p, nil
}

// Registry holds the operations a program offers.
type Registry struct{ byKind map[Kind]Operation }

// NewRegistry returns a registry of the operations given.
func NewRegistry(all ...Operation) *Registry {
	r := &Registry{byKind: map[Kind]Operation{}}
	for _, o := range all {
		r.byKind[o.Kind()] = o
	}
	return r
}

// Has reports whether the registry has an operation.
func (r *Registry) Has(k Kind) bool {
	_, ok := r.byKind[k]
	return ok
}

// Get returns the operation of a kind, or fault.Unsupported.
func (r *Registry) Get(k Kind) (Operation, error) {
	o, ok := r.byKind[k]
	if !ok {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("operation %s is not available in this version", k))
	}
	return o, nil
}
