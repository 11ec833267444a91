package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// sight is what a look at the record told about a swap.
type sight uint8

const (
	// seenUnknown: it may have happened.
	seenUnknown sight = iota
	// seenOurs: one of our marks is in the table.
	seenOurs
	// seenLost: it did not happen and cannot any more.
	seenLost
	// seenSame: the record still is what the swap expects, so it did not happen
	// yet, and may.
	seenSame
	// seenFenced: it was not sent.
	seenFenced
)

// enoughRefusals ends the repetition of a swap that is refused without reason.
const enoughRefusals = 3

// settle finds out what became of the last swap of marks, whose answer was
// cause. Whatever the answer was, the record is read first: a conflict may be
// with ourselves (F116), and an answer may have been lost (F115).
func (c *Committer) settle(ctx context.Context, st *Stage, marks []mark, cause error) (sight, *mark, error) {
	m := &marks[len(marks)-1]
	deadline := c.clk.Now().Add(c.o.SettleFor)
	var trouble error
	// refusals counts the answers while every one of them was a refusal.
	refusals := 0
	if errors.Is(cause, filer.ErrPrecondition) {
		refusals = 1
	}
	for try := 1; ; try++ {
		found, won, err := c.look(ctx, st, marks, refusals == 0)
		switch {
		case err != nil:
			trouble = err
		case found == seenSame && refusals >= enoughRefusals:
			// Every copy that was sent was answered, by a refusal, though the record
			// looks as expected: the filer compares more than we do.
			return seenLost, nil, nil
		case found == seenSame:
			// The identical swap decides: it is refused if an earlier copy of it is
			// still under way and comes first, and then the next look finds it.
			err := c.send(ctx, m)
			if err == nil {
				return seenOurs, m, nil
			}
			if !errors.Is(err, filer.ErrPrecondition) {
				trouble, refusals = err, 0
			} else if refusals > 0 {
				refusals++
			}
		case found != seenUnknown:
			return found, won, nil
		default:
			return seenUnknown, nil, fault.Wrap(fault.Unknown,
				fmt.Sprintf("the outcome is unknown: neither %s nor what it was based on is in the table's history", m.location), cause)
		}
		if !c.clk.Now().Before(deadline) || ctx.Err() != nil {
			return seenUnknown, nil, fault.Wrap(fault.Unknown, "the outcome is unknown, the table cannot be read", errors.Join(cause, trouble))
		}
		if err := c.backoff(ctx, try); err != nil {
			return seenUnknown, nil, fault.Wrap(fault.Unknown, "the outcome is unknown", errors.Join(cause, trouble, err))
		}
	}
}

// look reads the record once. An error says that nothing could be read now.
// underway says that a copy of the last swap may still arrive.
func (c *Committer) look(ctx context.Context, st *Stage, marks []mark, underway bool) (sight, *mark, error) {
	m := &marks[len(marks)-1]
	e, err := c.fl.Stat(ctx, m.head.RecordPath)
	if err != nil {
		return seenUnknown, nil, err
	}
	if c.meets(e, m) {
		return seenSame, nil, nil
	}
	now, err := iceberg.LoadEntry(ctx, c.fl, m.head.ID, e)
	if err != nil {
		return seenUnknown, nil, err
	}
	if won := findMark(now, marks); won != nil {
		return seenOurs, won, nil
	}
	if inHistory(now, m.head.MetadataLocation) {
		if underway && bytes.Equal(e.Extended[iceberg.AttrMetadata], m.expect[iceberg.AttrMetadata]) {
			// Only another attribute differs, a tag for one. If that is taken back, a
			// swap that comes late finds what it expects.
			if err := c.bump(ctx, e, now.Record); err != nil {
				return seenUnknown, nil, err
			}
		}
		return seenLost, nil, nil
	}
	// The base is gone from the log. Only a file of ours that a snapshot reaches
	// tells now.
	reached, err := reaches(ctx, c.fl, now, st.holds)
	if err != nil {
		return seenUnknown, nil, err
	}
	if reached {
		// By which attempt is not known, so none of the files is superfluous.
		won := *m
		won.used = nil
		return seenOurs, &won, nil
	}
	return seenUnknown, nil, nil
}

// bump gives the record e a new version token, so that no swap that expects its
// present content can succeed.
func (c *Committer) bump(ctx context.Context, e *filer.Entry, rec *iceberg.Record) error {
	attr, err := rec.Touched(iceberg.NewVersionToken())
	if err != nil {
		return err
	}
	_, err = c.fl.Update(ctx, filer.Update{
		Base: e, Expect: filer.Expectation(e, iceberg.CatalogAttributes()...),
		Set: map[string][]byte{iceberg.AttrMetadata: attr},
	})
	return err
}

// meets reports whether the swap of m would be let through.
func (c *Committer) meets(e *filer.Entry, m *mark) bool {
	if c.o.Profile == FilerTxn {
		return e.Same(m.head.Entry)
	}
	for k, v := range m.expect {
		if !bytes.Equal(e.Extended[k], v) {
			return false
		}
	}
	return true
}

// findMark returns the mark that is in the table: its location is the head or
// in the log, or its snapshot is in the list. A snapshot counts only with our
// manifest list, because an id alone is a number that others can draw.
func findMark(v *iceberg.View, marks []mark) *mark {
	for i := range marks {
		m := &marks[i]
		if inHistory(v, m.location) {
			return m
		}
		if m.snapshot == 0 {
			continue
		}
		if s, ok := v.Snapshot(m.snapshot); ok && s.ManifestList == m.list {
			return m
		}
	}
	return nil
}

// inHistory reports whether a metadata file is the head or in its log.
func inHistory(v *iceberg.View, location string) bool {
	if v.MetadataLocation == location {
		return true
	}
	for _, e := range v.Metadata.MetadataLog {
		if e.MetadataFile == location {
			return true
		}
	}
	return false
}
