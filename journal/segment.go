package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

const (
	// maxSegments bounds a journal: names come a thousand to a segment.
	maxSegments = 1 << 20
	// maxSegmentBytes bounds one segment; larger documents are refused.
	maxSegmentBytes = 16 << 20
	// batchNames and batchBytes keep ordinary segments inline in their entry, so
	// that one listing reads them.
	batchNames = 1000
	batchBytes = filer.InlineLimit * 3 / 4
)

// File is a file to be removed, as it was seen when that was decided.
type File struct {
	Path filer.Path `json:"path"`
	// Identity is what the file was; anything else at the path is left alone.
	Identity filer.Identity `json:"identity"`
	// Reason says why, for people.
	Reason string `json:"reason"`
}

// Removal is a journalled removal: the file, where it goes, and until when it
// can be brought back.
type Removal struct {
	File
	// To is the file's place in the trash.
	To filer.Path `json:"to"`
	// PurgeAfter is the filer's time from which on it may be gone for good.
	PurgeAfter time.Time `json:"purge-after"`
	// Move is the id of the move, so that it can be sent again.
	Move string `json:"move"`
}

// Unit is a finished and verified piece of work. Only whole units are resumed
// (F137).
type Unit struct {
	// ID names the unit within the plan.
	ID string `json:"id"`
	// Outputs are the files it staged, all recorded before.
	Outputs []filer.Path `json:"outputs,omitempty"`
	// Map is its movement map, if it has one.
	Map filer.Path `json:"map,omitempty"`
	// Payload is what the operation needs to make its change again.
	Payload Raw `json:"payload,omitempty"`
}

// segment is one numbered document of a run. Exactly one of its parts is set.
type segment struct {
	Format   int          `json:"format"`
	Run      string       `json:"run"`
	N        int          `json:"n"`
	Names    []filer.Path `json:"names,omitempty"`
	Unit     *Unit        `json:"unit,omitempty"`
	Removals []Removal    `json:"removals,omitempty"`
	Result   Raw          `json:"result,omitempty"`
	// Seal ends what the owner may append: it was revoked.
	Seal bool `json:"seal,omitempty"`
}

func (g *segment) encode() ([]byte, error) {
	b, err := json.Marshal(g)
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, "encode a journal segment of run "+g.Run, err)
	}
	if len(b) > maxSegmentBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("journal segment of run %s has %d bytes, more than %d", g.Run, len(b), maxSegmentBytes))
	}
	return b, nil
}

func decodeSegment(p filer.Path, b []byte, h *head, n int) (segment, error) {
	var g segment
	if err := checkFormat(p, b); err != nil {
		return g, err
	}
	if err := json.Unmarshal(b, &g); err != nil {
		return g, corrupt(p, err)
	}
	if g.Run != h.Run || g.N != n {
		return g, corrupt(p, fmt.Errorf("it is segment %d of run %q", g.N, g.Run))
	}
	if g.Unit != nil && g.Unit.ID == "" {
		return g, corrupt(p, errors.New("a unit has no id"))
	}
	return g, nil
}

// belongs checks that everything the segment names may be touched on behalf of
// the run.
func (g *segment) belongs(h *head) error {
	for _, name := range g.Names {
		if err := h.owns(name); err != nil {
			return err
		}
	}
	for _, rm := range g.Removals {
		if err := h.removes(rm); err != nil {
			return err
		}
	}
	return nil
}

// owns checks that a staged file is one this run may create and, later, anybody
// may discard on its behalf: in the table's bucket or a movement map, and named
// after the run or one it adopted.
func (h *head) owns(p filer.Path) error {
	if _, err := filer.ParsePath(string(p)); err != nil {
		return err
	}
	if p.Bucket() != h.Table.Bucket && (p == Maps || !p.Within(Maps)) {
		return fault.New(fault.Unsupported, fmt.Sprintf("staged file %s is neither in bucket %s nor a movement map", p, h.Table.Bucket))
	}
	if strings.Contains(p.Name(), h.Token) ||
		slices.ContainsFunc(h.Adopted, func(a Adoption) bool { return strings.Contains(p.Name(), a.Token) }) {
		return nil
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("name of staged file %s does not hold the run's token %s", p, h.Token))
}

func (h *head) removes(rm Removal) error {
	for _, p := range []filer.Path{rm.Path, rm.To} {
		if _, err := filer.ParsePath(string(p)); err != nil {
			return err
		}
		if p.Bucket() != h.Table.Bucket || path.Dir(string(p)) == string(filer.BucketsRoot) {
			return fault.New(fault.Unsupported, fmt.Sprintf("removal of %s to %s leaves bucket %s", rm.Path, rm.To, h.Table.Bucket))
		}
	}
	switch {
	case rm.Identity == "":
		return fault.New(fault.Unsupported, fmt.Sprintf("removal of %s names no identity", rm.Path))
	case rm.PurgeAfter.IsZero():
		return fault.New(fault.Unsupported, fmt.Sprintf("removal of %s names no purge time", rm.Path))
	}
	return nil
}

// batches cuts items so that each part holds at most batchNames items and, by
// the given size of each, stays inline.
func batches[T any](items []T, size func(T) int) [][]T {
	var out [][]T
	start, bytes := 0, 0
	for i, it := range items {
		n := size(it)
		if i > start && (i-start >= batchNames || bytes+n > batchBytes) {
			out = append(out, items[start:i])
			start, bytes = i, 0
		}
		bytes += n
	}
	if start < len(items) {
		out = append(out, items[start:])
	}
	return out
}
