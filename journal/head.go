package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// format is the version of heads and segments. A reader refuses greater ones.
const format = 1

// Phase is how far a journal has come. It only ever moves forward.
type Phase string

const (
	// Open: the owner is at work, or died at it.
	Open Phase = "open"
	// Revoked: the owner is fenced; what it did is not known yet.
	Revoked Phase = "revoked"
	// Settled: the owner's last commit is known to have happened or not, and
	// cannot change any more. Staged files may be left.
	Settled Phase = "settled"
	// Discarding: staged files that nothing references are being trashed.
	Discarding Phase = "discarding"
	// Closed: nothing is left to do. Kept as history.
	Closed Phase = "closed"
	// Pruning: the history is being removed; segments may be missing.
	Pruning Phase = "pruning"
)

var phases = []Phase{Open, Revoked, Settled, Discarding, Closed, Pruning}

// Outcome is how a run ended.
type Outcome string

const (
	// NoOutcome: not known, or not yet.
	NoOutcome Outcome = ""
	// Committed: the run's change is in the table.
	Committed Outcome = "committed"
	// Refused: the run changed nothing and cannot any more.
	Refused Outcome = "refused"
	// Adopted: another run took over what this one had staged.
	Adopted Outcome = "adopted"
)

var outcomes = []Outcome{NoOutcome, Committed, Refused, Adopted}

// Decision is one commit that was about to be tried.
type Decision struct {
	// SnapshotID is the snapshot the commit adds; 0 for commits without one.
	SnapshotID iceberg.SnapshotID `json:"snapshot-id,omitempty"`
	// MetadataLocation is what the table's record was to point at.
	MetadataLocation string `json:"metadata-location"`
	// At is the filer's time of the decision.
	At time.Time `json:"at"`
}

// maxDecisions bounds the head. Only the last decision can be undecided: a run
// stops at the first commit whose outcome it does not know.
const maxDecisions = 32

// Adoption names a run whose staged files this one took over.
type Adoption struct {
	Run   string `json:"run"`
	Token string `json:"token"`
}

const maxAdoptions = 64

// head is the part of a journal that changes. It is stored inline in its entry
// and always replaced whole.
type head struct {
	Format     int             `json:"format"`
	Run        string          `json:"run"`
	Token      string          `json:"token"`
	Table      iceberg.TableID `json:"table"`
	UUID       string          `json:"uuid"`
	Op         string          `json:"op"`
	PlanDigest string          `json:"plan-digest,omitempty"`
	Base       string          `json:"base,omitempty"`
	Opened     time.Time       `json:"opened"`
	Expires    time.Time       `json:"expires"`
	Lease      time.Duration   `json:"lease-ns"`
	Phase      Phase           `json:"phase"`
	Outcome    Outcome         `json:"outcome,omitempty"`
	Revoked    *time.Time      `json:"revoked,omitempty"`
	Closed     *time.Time      `json:"closed,omitempty"`
	// Segments is the number of segments known to exist when the head was
	// written: fewer on reading means that some were lost.
	Segments  int        `json:"segments"`
	Decisions []Decision `json:"decisions,omitempty"`
	Adopted   []Adoption `json:"adopted,omitempty"`
	// HeldUntil is the latest purge time of what the run removed: the journal is
	// kept at least until then, because undo reads it.
	HeldUntil *time.Time `json:"held-until,omitempty"`
	// Repaired: no removal the owner journalled is half made.
	Repaired bool `json:"repaired,omitempty"`
	// NotBefore is when the Left staged files of a settled run will be old enough.
	NotBefore time.Time `json:"not-before,omitzero"`
	Left      int       `json:"left,omitempty"`
}

// maxHeadBytes bounds a head. What is written here stays far below it.
const maxHeadBytes = 128 << 10

func (h *head) clone() head {
	c := *h
	c.Decisions = slices.Clone(h.Decisions)
	c.Adopted = slices.Clone(h.Adopted)
	return c
}

func (h *head) encode() ([]byte, error) {
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "encode a journal head", err)
	}
	if len(b) > maxHeadBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("journal head of run %s has %d bytes, more than %d", h.Run, len(b), maxHeadBytes))
	}
	return b, nil
}

func decodeHead(p filer.Path, b []byte) (head, error) {
	var h head
	if err := checkFormat(p, b); err != nil {
		return h, err
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, corrupt(p, err)
	}
	var wrong []string
	bad := func(is bool, what string) {
		if is {
			wrong = append(wrong, what)
		}
	}
	bad(headPath(h.UUID, h.Run) != p, "its run and uuid do not belong to its path")
	bad(!uuidForm.MatchString(h.UUID), "its uuid is not a uuid")
	bad(!runForm.MatchString(h.Run), "its run is not a plain name")
	bad(!tokenForm.MatchString(h.Token), "its token is malformed")
	bad(!slices.Contains(phases, h.Phase), fmt.Sprintf("its phase %q is unknown", h.Phase))
	bad(!slices.Contains(outcomes, h.Outcome), fmt.Sprintf("its outcome %q is unknown", h.Outcome))
	bad(h.Lease < time.Second, "its lease is below a second")
	bad(h.Opened.IsZero() || h.Expires.Before(h.Opened), "its times are not in order")
	bad(h.Segments < 0 || h.Segments > maxSegments, "its count of segments is out of range")
	bad(len(h.Decisions) > maxDecisions || len(h.Adopted) > maxAdoptions, "its lists are too long")
	bad(h.Phase != Open && h.Phase != Closed && h.Phase != Pruning && h.Revoked == nil, "it is revoked without a time")
	bad((h.Phase == Closed || h.Phase == Pruning) && (h.Closed == nil || h.Outcome == NoOutcome), "it is closed without time or outcome")
	for _, a := range h.Adopted {
		bad(!tokenForm.MatchString(a.Token), "the token of an adopted run is malformed")
	}
	if len(wrong) > 0 {
		return h, corrupt(p, errors.New(wrong[0]))
	}
	return h, nil
}

// checkFormat looks at the version alone, so that what a newer program wrote is
// refused as such and not taken for damage.
func checkFormat(p filer.Path, b []byte) error {
	var v struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return corrupt(p, err)
	}
	switch {
	case v.Format > format:
		return fault.WithHint("resolve this journal with the version of the program that wrote it",
			fault.New(fault.Unsupported, fmt.Sprintf("journal %s has format %d, newer than %d", p, v.Format, format)))
	case v.Format < 1:
		return corrupt(p, fmt.Errorf("format %d does not exist", v.Format))
	}
	return nil
}

func corrupt(p filer.Path, err error) error {
	return fault.WithHint("the entry is left as it is; nothing of its table is removed while it is there",
		fault.Wrap(fault.Corrupt, "read journal "+p.String(), err))
}

// live reports whether the journal still has to be finished by somebody.
func (h *head) live() bool { return h.Phase != Closed && h.Phase != Pruning }
