package commit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/journal"
)

// Options tune a Committer.
type Options struct {
	// Profile is the guarantee; FilerCAS when empty.
	Profile Profile
	// Retries is how often a lost swap is tried again on the new head.
	Retries int
	// SettleFor bounds how long an answer that was lost is looked for; 2 minutes
	// when 0.
	SettleFor time.Duration
	// Draw gives random numbers for snapshot ids and for backoff; the runtime's
	// when nil.
	Draw func() uint64
}

// Committer makes changes to tables.
type Committer struct {
	fl  filer.Filer
	clk clock.Clock
	o   Options
}

// New returns a Committer on fl.
func New(fl filer.Filer, clk clock.Clock, o Options) *Committer {
	if o.Profile == "" {
		o.Profile = FilerCAS
	}
	if o.SettleFor == 0 {
		o.SettleFor = 2 * time.Minute
	}
	if o.Draw == nil {
		o.Draw = rand.Uint64
	}
	return &Committer{fl: fl, clk: clk, o: o}
}

// Stage returns the stage of a run on the table that v shows.
func (c *Committer) Stage(run *journal.Run, v *iceberg.View) *Stage {
	return newStage(c.fl, c.clk, c.o.Draw, run, v)
}

const (
	backoffStart = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// backoff waits before try n, from 1 on.
func (c *Committer) backoff(ctx context.Context, n int) error {
	return c.clk.Sleep(ctx, backoffFor(n, c.o.Draw()))
}

// backoffFor is how long to wait before try n, from 1 on: doubling, with up to
// half of it random.
func backoffFor(n int, random uint64) time.Duration {
	d := min(backoffStart<<min(n-1, 10), backoffMost)
	return d/2 + time.Duration(random%uint64(d/2+1))
}

// Commit makes ch on the table's head, again on each new head if it loses, as
// often as Options say. The error explains every outcome but Committed and
// Nothing. Staged files are left as they are, see Finish.
func (c *Committer) Commit(ctx context.Context, ch Change, st *Stage) (Result, error) {
	var res Result
	var marks []mark
	for {
		m, err := c.prepare(ctx, ch, st, len(marks))
		if err != nil || m == nil {
			// Every swap sent so far is known to have lost, and this one was not
			// sent.
			res.Outcome, res.Nothing = Refused, err == nil
			return res, err
		}
		res.Attempts++
		if m.head.MetadataLocation != ch.Base.MetadataLocation {
			res.Rebases++
		}
		marks = append(marks, *m)
		res.Snapshot, res.MetadataLocation, res.At = m.snapshot, m.location, m.at
		found, won, err := c.swap(ctx, ch, st, marks)
		if won != nil {
			res.Snapshot, res.MetadataLocation, res.At = won.snapshot, won.location, won.at
		}
		switch found {
		case seenOurs:
			res.Outcome = Committed
			if won != nil {
				res.TrimmedLog = won.trimmed
				st.stands(won.used)
			}
			return res, nil
		case seenUnknown:
			res.Outcome = Unknown
			return res, fault.WithHint("run `seaice journal resolve`; nothing was removed and every staged file is kept", err)
		case seenFenced:
			res.Outcome = Refused
			return res, err
		}
		if res.Attempts > c.o.Retries {
			res.Outcome = Refused
			return res, fault.New(fault.Stale, fmt.Sprintf("commit %s on %s: the head moved before each of %d attempts",
				ch.Operation, ch.Base.Table, res.Attempts))
		}
		if err := c.backoff(ctx, res.Attempts); err != nil {
			res.Outcome = Refused
			return res, fault.In("commit "+ch.Operation, err)
		}
	}
}

// mark is what an attempt leaves behind in a table if it succeeds.
type mark struct {
	head     *iceberg.View
	location string
	snapshot iceberg.SnapshotID
	list     string
	at       time.Time
	// expect and attr are the swap itself: the precondition and the new record.
	expect map[string][]byte
	attr   []byte
	id     string
	// trimmed fell out of the metadata log.
	trimmed []string
	// used are the staged files that the attempt refers to; nil means all.
	used map[filer.Path]bool
}

// prepare does everything of an attempt before the swap. It returns nil without
// an error if the head leaves nothing to change.
func (c *Committer) prepare(ctx context.Context, ch Change, st *Stage, attempt int) (*mark, error) {
	head, err := iceberg.Load(ctx, c.fl, ch.Base.Table)
	if err != nil {
		return nil, fault.In("commit "+ch.Operation, err)
	}
	same := SameTable{UUID: ch.Base.UUID, FormatVersion: ch.Base.FormatVersion}
	for _, r := range append([]Requirement{same}, ch.Requirements...) {
		if err := r.Check(head); err != nil {
			return nil, fault.In(fmt.Sprintf("commit %s: require that %s", ch.Operation, r), err)
		}
	}
	st.restart()
	next, err := rebuild(ctx, ch, head, st)
	if err != nil {
		return nil, fault.In("rebuild "+ch.Operation+" on the head", err)
	}
	if next.Edit == nil {
		return nil, nil
	}
	m, err := c.write(ctx, head, next, st, attempt)
	if err != nil {
		return nil, fault.In("commit "+ch.Operation, err)
	}
	return m, nil
}

// rebuild calls the operation. A panic there is this program's fault and stops
// it everywhere; nothing was swapped yet.
func rebuild(ctx context.Context, ch Change, head *iceberg.View, st *Stage) (next Next, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Halt, fmt.Sprintf("panic: %v", p))
		}
	}()
	return ch.Rebuild(ctx, head, st)
}

// write completes the metadata, writes its file and decides the attempt.
func (c *Committer) write(ctx context.Context, head *iceberg.View, next Next, st *Stage, attempt int) (*mark, error) {
	at := c.clk.Now()
	m := &mark{head: head}
	ms := max(at.UnixMilli(), head.Metadata.LastUpdatedMs)
	if s := next.Snapshot; s != nil {
		ms = max(ms, s.TimestampMs)
		m.snapshot, m.list = s.ID, s.ManifestList
	}
	m.at = time.UnixMilli(ms).UTC()
	next.Edit.SetLastUpdatedMs(ms)
	next.Edit.AppendMetadataLog(head.MetadataLocation)
	edited, err := next.Edit.Build()
	if err != nil {
		return nil, fault.In("build the metadata", err)
	}
	name := head.Locations.Pointer().Join(fmt.Sprintf("v%d-%s-%d.metadata.json", head.Record.MetadataVersion+1, st.run.Token(), attempt))
	if err := st.Record(ctx, name); err != nil {
		return nil, err
	}
	file, err := st.Put(ctx, name, edited.JSON)
	if err != nil {
		return nil, err
	}
	st.Use(name)
	m.used = st.usage()
	for _, e := range edited.TrimmedLog {
		m.trimmed = append(m.trimmed, e.MetadataFile)
	}
	m.location, m.id = file.Location, file.Location
	m.attr, err = head.Record.Successor(iceberg.Next{
		MetadataLocation: file.Location, FullMetadata: edited.JSON, VersionToken: iceberg.NewVersionToken(), ModifiedAt: m.at,
	})
	if err != nil {
		return nil, err
	}
	m.expect = filer.Expectation(head.Entry, iceberg.CatalogAttributes()...)
	return m, nil
}

// fence makes sure that this run may still commit: the decision is journalled,
// which fails for a revoked run, then the lease is looked at and every file the
// commit would make visible.
func (c *Committer) fence(ctx context.Context, st *Stage, m *mark) error {
	if err := st.run.Decide(ctx, journal.Decision{SnapshotID: m.snapshot, MetadataLocation: m.location}); err != nil {
		return err
	}
	if err := st.run.Check(ctx); err != nil {
		return err
	}
	return st.verify(ctx)
}

// swap fences and sends the swap of the last mark, and settles what it did.
// The mark returned is the one found in the table, if any.
func (c *Committer) swap(ctx context.Context, ch Change, st *Stage, marks []mark) (sight, *mark, error) {
	m := &marks[len(marks)-1]
	doing := fmt.Sprintf("commit %s on %s", ch.Operation, ch.Base.Table)
	if err := c.fence(ctx, st, m); err != nil {
		return seenFenced, nil, fault.In(doing, err)
	}
	err := c.send(ctx, m)
	if err == nil {
		return seenOurs, m, nil
	}
	// From here on the caller's context must not decide what is known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.SettleFor+time.Minute)
	defer cancel()
	found, won, err := c.settle(ctx, st, marks, err)
	return found, won, fault.In(doing, err)
}

func (c *Committer) send(ctx context.Context, m *mark) error {
	if c.o.Profile == FilerTxn {
		return c.fl.Patch(ctx, m.head.Entry, map[string][]byte{iceberg.AttrMetadata: m.attr}, m.id)
	}
	_, err := c.fl.Update(ctx, filer.Update{
		Base: m.head.Entry, Expect: m.expect, Set: map[string][]byte{iceberg.AttrMetadata: m.attr},
	})
	return err
}
