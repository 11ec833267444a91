package commit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
)

// late holds the first swap of a record back, as a network does, and delivers it
// when it is told to.
type late struct {
	*filertest.Filer
	record filer.Path
	swaps  int
	held   filer.Update
	// first acts once the first swap is on its way, and second before the next
	// swap to a metadata file is delivered.
	first, second func()
	// answer is what the sender of the first swap gets.
	answer error
}

func (l *late) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	if u.Base.Path != l.record {
		return l.Filer.Update(ctx, u)
	}
	l.swaps++
	switch l.swaps {
	case 1:
		l.held = u
		l.first()
		return nil, l.answer
	case 2:
		l.second()
	}
	return l.Filer.Update(ctx, u)
}

// F115, F116: the answer to the first swap does not come, or a layer below sent
// two copies and has the answer to one. Somebody sets a tag of the table and takes
// it away again. The first swap, taken for lost, arrives then and wins. The files
// it refers to are the table's, whatever a later attempt uses.
func TestF115FirstSwapArrivesLate(t *testing.T) {
	for name, change := range changes {
		for _, answer := range []error{fault.New(fault.Unknown, "no answer"), fault.Wrap(fault.Stale, "refused", filer.ErrPrecondition)} {
			t.Run(name+" "+answer.Error(), func(t *testing.T) { arrivesLate(t, change, answer) })
		}
	}
}

func arrivesLate(t *testing.T, change func(*iceberg.View) commit.Change, answer error) {
	f := newFixture(t, 2)
	want := expect(t, f.table)
	a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, change)
	require.NoError(t, err)
	l := &late{Filer: f.fl, record: f.table.Record(), answer: answer}
	l.first = func() { f.fl.SetAttributes(l.record, map[string][]byte{iceberg.AttrTags: []byte(`{"a":"b"}`)}) }
	l.second = func() {
		f.fl.SetAttributes(l.record, map[string][]byte{iceberg.AttrTags: nil})
		_, _ = l.Filer.Update(t.Context(), l.held)
	}
	a.c = commit.New(l, f.fl.Virtual(), commit.Options{Retries: 3})
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Committed, res.Outcome)
	require.GreaterOrEqual(t, l.swaps, 2)
	f.rows()
	verifyNothingLost(t, f.fl, want)
	require.Equal(t, f.table.MetadataLocation(), res.MetadataLocation)
}

// F115: as above, but what the change requires does not hold any more when it is
// tried again. The run says that nothing happened and removes what it staged, so
// the first swap must not be able to arrive after that.
func TestF115RefusedSwapCannotArrive(t *testing.T) {
	f := newFixture(t, 2)
	want := expect(t, f.table)
	refuse := false
	a, err := begin(t, f.fl, "r1", commit.Options{Retries: 3}, func(v *iceberg.View) commit.Change {
		ch := relist(v)
		inner := ch.Rebuild
		ch.Rebuild = func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
			if refuse {
				return commit.Next{}, fault.New(fault.Stale, "the table has a tag now")
			}
			return inner(ctx, head, st)
		}
		return ch
	})
	require.NoError(t, err)
	l := &late{Filer: f.fl, record: f.table.Record(), second: func() {}, answer: fault.New(fault.Unknown, "no answer")}
	l.first = func() {
		refuse = true
		f.fl.SetAttributes(l.record, map[string][]byte{iceberg.AttrTags: []byte(`{"a":"b"}`)})
	}
	a.c = commit.New(l, f.fl.Virtual(), commit.Options{Retries: 3})
	res, err := a.commit(t.Context())
	require.Error(t, err)
	f.fl.SetAttributes(l.record, map[string][]byte{iceberg.AttrTags: nil})
	_, arrives := l.Filer.Update(t.Context(), l.held)
	require.Equal(t, commit.Refused, res.Outcome)
	require.ErrorIs(t, arrives, filer.ErrPrecondition)
	verifyNothingLost(t, f.fl, want)
}
