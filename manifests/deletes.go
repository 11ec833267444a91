package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// DeleteID tells deletes apart: a Puffin file holds many vectors, so the path
// alone does not (F019).
type DeleteID struct {
	Path string
	// Offset and Size are -1 for a file that is one delete as a whole.
	Offset, Size int64
}

// DeleteID is the identity of a delete file or deletion vector.
func (e *Entry) DeleteID() DeleteID {
	return DeleteID{Path: e.Path, Offset: e.ContentOffset.Or(-1), Size: e.ContentSize.Or(-1)}
}

// filePathColumn is the reserved field id of a position delete's file_path.
const filePathColumn iceberg.FieldID = 2147483546

// Target is the only data file a position delete or vector can name, if that
// is known: from referenced_data_file, or from bounds of file_path that are
// equal, which only full values can be.
func (e *Entry) Target() (string, bool) {
	if e.Content != PositionDeletes {
		return "", false
	}
	if path, ok := e.ReferencedDataFile.Get(); ok {
		return path, true
	}
	lower, ok := e.Lower.Of(filePathColumn)
	upper, ok2 := e.Upper.Of(filePathColumn)
	if ok && ok2 && len(lower) > 0 && bytes.Equal(lower, upper) {
		return string(lower), true
	}
	return "", false
}

// Rules decide which delete applies to which data file. GlobalSpecs are the
// specs whose equality deletes apply to the whole table: those without fields,
// or with void ones only.
type Rules struct {
	GlobalSpecs map[iceberg.SpecID]bool
}

// RulesFor are the rules of a table.
func RulesFor(m *iceberg.Metadata) (Rules, error) {
	r := Rules{GlobalSpecs: map[iceberg.SpecID]bool{}}
	for i := range m.Specs {
		id := iceberg.SpecID(m.Specs[i].ID())
		t, err := m.PartitionType(id)
		if err != nil {
			return r, err
		}
		if t.Unpartitioned() {
			r.GlobalSpecs[id] = true
		}
	}
	return r, nil
}

// Applies reports whether a delete applies to a data file (spec, "Scan
// Planning"; design/semantics.md, "Deletes"). Both must be live and have been
// read with path and partition. A position delete that applies by this rule is
// yet without effect on a file to which a deletion vector applies; the caller
// looks for that first.
func (r Rules) Applies(del, data *Entry) bool {
	if data.Content != Data || !del.Live() || !data.Live() {
		return false
	}
	// What is not assigned yet gets the number of a commit still to come.
	before, ds := data.DataSeq.Or(math.MaxInt64), del.DataSeq.Or(math.MaxInt64)
	switch del.Content {
	case EqualityDeletes:
		return before < ds && (r.GlobalSpecs[del.SpecID] || samePartition(del, data))
	case PositionDeletes:
		if before > ds || !samePartition(del, data) {
			return false
		}
		path, ok := del.ReferencedDataFile.Get()
		if del.IsVector() {
			return ok && path == data.Path
		}
		return !ok || path == data.Path
	}
	return false
}

func samePartition(a, b *Entry) bool {
	return a.SpecID == b.SpecID && a.Partition.Key() == b.Partition.Key()
}

// ErrTwoVectors: a data file has more than one live deletion vector.
var ErrTwoVectors = errors.New("a data file has two deletion vectors")

// Vectors finds data files with more than one live deletion vector, of which
// the spec allows one (F020).
type Vectors map[string]DeleteID

// Add takes a live deletion vector into account. A second one for a data file
// is Corrupt and ErrTwoVectors, with both named.
func (v Vectors) Add(e *Entry) error {
	path, ok := e.ReferencedDataFile.Get()
	if !ok {
		return fault.New(fault.Corrupt, "deletion vector in "+e.Path+" names no data file")
	}
	id := e.DeleteID()
	if other, twice := v[path]; twice && other != id {
		return fault.Wrap(fault.Corrupt, fmt.Sprintf("data file %s, vectors in %s at %d and %s at %d",
			path, other.Path, other.Offset, id.Path, id.Offset), ErrTwoVectors)
	}
	v[path] = id
	return nil
}

// Liveness decides which deletes are dangling: can hit no row of any live data
// file, and may leave the table. First every delete in question is given to
// Watch, then every data file that will be live to See, then Dangling answers.
// Its memory grows with the partitions and with the files that deletes name,
// not with the files of the table.
type Liveness struct {
	rules   Rules
	global  Opt[iceberg.SeqNum]
	parts   map[iceberg.PartitionKey]iceberg.SeqNum
	targets map[string]liveTarget
}

// liveTarget is a data file that a delete names.
type liveTarget struct {
	live bool
	seq  iceberg.SeqNum
	part iceberg.PartitionKey
	// mixed: the path is live in several partitions, which no table should have.
	mixed bool
}

// NewLiveness prepares the decision under the rules.
func NewLiveness(r Rules) *Liveness {
	return &Liveness{rules: r, parts: map[iceberg.PartitionKey]iceberg.SeqNum{}, targets: map[string]liveTarget{}}
}

// Watch notes a delete that Dangling will be asked about.
func (l *Liveness) Watch(del *Entry) {
	if path, ok := del.Target(); ok {
		if _, known := l.targets[path]; !known {
			l.targets[path] = liveTarget{}
		}
	}
}

// See notes a data file that will be live, with its effective or explicit data
// sequence number.
func (l *Liveness) See(data *Entry) {
	if data.Content != Data || !data.Live() {
		return
	}
	seq := data.DataSeq.Or(0) // too low only keeps deletes
	if !l.global.Known() || seq < l.global.Value {
		l.global = Some(seq)
	}
	key := data.PartitionKey()
	if least, ok := l.parts[key]; !ok || seq < least {
		l.parts[key] = seq
	}
	t, watched := l.targets[data.Path]
	switch {
	case !watched:
	case !t.live:
		l.targets[data.Path] = liveTarget{live: true, seq: seq, part: key}
	default:
		t.seq, t.mixed = min(t.seq, seq), t.mixed || t.part != key
		l.targets[data.Path] = t
	}
}

// Dangling reports whether a delete can hit nothing: an equality delete if no
// live file in its scope has a lower data sequence number; a position delete
// if no live file of its partition with a sequence number up to its own is, or
// may be, the one it names; a vector if its data file is not live or newer.
func (l *Liveness) Dangling(del *Entry) bool {
	ds, assigned := del.DataSeq.Get()
	if !assigned {
		return false
	}
	switch del.Content {
	case EqualityDeletes:
		if l.rules.GlobalSpecs[del.SpecID] {
			return !l.global.Known() || l.global.Value >= ds
		}
		least, ok := l.parts[del.PartitionKey()]
		return !ok || least >= ds
	case PositionDeletes:
		if path, ok := del.Target(); ok {
			if t, watched := l.targets[path]; watched {
				return !t.live || t.seq > ds || !t.mixed && t.part != del.PartitionKey()
			}
		}
		least, ok := l.parts[del.PartitionKey()]
		return !ok || least > ds
	}
	return false
}
