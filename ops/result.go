package ops

import (
	"encoding/json"
	"time"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Status is how a run ended.
type Status string

// The statuses.
const (
	// Finished: the change is committed.
	Finished Status = "done"
	// NothingToDo: the plan was empty, or the head left nothing to change.
	NothingToDo Status = "nothing-to-do"
	// DryRun: the plan was made and not executed.
	DryRun Status = "dry-run"
	// PartlyDone: some parts of the plan are committed, and Error says why the
	// rest is not.
	PartlyDone Status = "partly-done"
	// Failed: nothing was committed; Error says why.
	Failed Status = "failed"
	// OutcomeUnknown: it may have been committed. The journal is open and every
	// staged file kept.
	OutcomeUnknown Status = "outcome-unknown"
)

// Result is what became of one operation on one table. The same JSON is stored
// in the journal, shown by the command line and by the admin.
type Result struct {
	Run       string          `json:"run"`
	Table     iceberg.TableID `json:"table"`
	TableUUID string          `json:"table-uuid"`
	Operation Kind            `json:"operation"`
	Status    Status          `json:"status"`
	Started   time.Time       `json:"started"`
	Ended     time.Time       `json:"ended"`
	// PlanDigest identifies the plan that was executed.
	PlanDigest string         `json:"plan-digest,omitempty"`
	Guarantee  commit.Profile `json:"guarantee,omitempty"`
	Commit     *commit.Result `json:"commit,omitempty"`
	Predicted  Effects        `json:"predicted"`
	Actual     *Effects       `json:"actual,omitempty"`
	// Counters are the operation's own numbers under stable names.
	Counters map[string]int64 `json:"counters,omitempty"`
	// Proof is what shows that the commits changed no row: one document of the
	// operation's own form for each commit.
	Proof []json.RawMessage `json:"proof,omitempty"`
	// Parts are the results of the parts of a plan that was committed in several.
	Parts []Part `json:"parts,omitempty"`
	// Reasons say what was left alone and why.
	Reasons  []Reason `json:"reasons,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Message is the result in one line for people, with its numbers.
	Message string `json:"message"`
	// Error, Kind and Hints are set when Status is Failed, PartlyDone or
	// OutcomeUnknown.
	Error string     `json:"error,omitempty"`
	Kind  fault.Kind `json:"kind,omitempty"`
	Hints []string   `json:"hints,omitempty"`
	// Kept names the staged files that were kept because the outcome is unknown.
	Kept []string `json:"kept-files,omitempty"`
}

// Part is what became of one part of a plan.
type Part struct {
	Run    string         `json:"run"`
	Status Status         `json:"status"`
	Commit *commit.Result `json:"commit,omitempty"`
	Error  string         `json:"error,omitempty"`
	Kind   fault.Kind     `json:"kind,omitempty"`
}
