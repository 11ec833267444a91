package commit

import (
	"fmt"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Outcome is what is known about a commit after trying it. The zero value is
// the dangerous one, so that forgetting to set an outcome is safe.
type Outcome uint8

const (
	// Unknown: it may have happened. Keep every staged file.
	Unknown Outcome = iota
	// Committed: it happened.
	Committed
	// Refused: it did not happen and cannot happen any more.
	Refused
)

var outcomeNames = [...]string{"unknown", "committed", "refused"}

// String is the outcome in one word, as results show it.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "invalid"
}

// MarshalText renders the outcome for JSON results.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (o *Outcome) UnmarshalText(b []byte) error {
	for i, n := range outcomeNames {
		if n == string(b) {
			*o = Outcome(i)
			return nil
		}
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("%q is no commit outcome", b))
}

// Profile names the guarantee under which a commit is made. It is recorded in
// plans and results.
type Profile string

const (
	// FilerCAS swaps the record by UpdateEntry with the whole attribute set as
	// precondition. The default.
	FilerCAS Profile = "filer_cas"
	// FilerTxn swaps it by an ObjectTransaction on the whole entry, whose answer
	// the filer replays for two minutes when it is lost.
	FilerTxn Profile = "filer_txn"
)

// Base is the state of a table that a plan was made from.
type Base struct {
	Table            iceberg.TableID `json:"table"`
	UUID             string          `json:"table-uuid"`
	FormatVersion    int             `json:"format-version"`
	MetadataLocation string          `json:"metadata-location"`
	Branch           string          `json:"branch"`
	// Snapshot is the branch's head, 0 when the branch has none.
	Snapshot iceberg.SnapshotID `json:"snapshot-id,omitempty"`
	// Sequence is the snapshot's sequence number: the planning sequence number,
	// which outputs of a rewrite carry so that later equality deletes still
	// apply to them (F002).
	Sequence iceberg.SeqNum `json:"sequence-number,omitempty"`
	// Schema and Spec are the current schema and the default spec.
	Schema iceberg.SchemaID `json:"schema-id"`
	Spec   iceberg.SpecID   `json:"spec-id"`
}

// Result is what Commit found out.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Attempts counts the swaps that were prepared, Rebases those that were
	// prepared because the head had moved.
	Attempts int `json:"attempts"`
	Rebases  int `json:"rebases"`
	// Snapshot is the snapshot committed, 0 for a commit without one.
	Snapshot iceberg.SnapshotID `json:"snapshot-id,omitempty"`
	// MetadataLocation is what the record points at by this commit, or would
	// have if the outcome is unknown.
	MetadataLocation string `json:"metadata-location,omitempty"`
	// At is the commit's timestamp.
	At time.Time `json:"at,omitzero"`
	// Nothing is set when the head left nothing to change: Outcome is Refused
	// then, and no error is returned.
	Nothing bool `json:"nothing-to-change,omitempty"`
	// TrimmedLog are the metadata files that the commit took out of the metadata
	// log. They may be removed once it stands.
	TrimmedLog []string `json:"trimmed-metadata-log,omitempty"`
	// Warnings are failures after the commit, which undo nothing.
	Warnings []string `json:"warnings,omitempty"`
}
