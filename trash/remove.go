package trash

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Batch is a list of files to remove.
type Batch struct {
	Files []journal.File
	// Allowed says, with an error, which paths the table does not own. Required.
	Allowed func(filer.Path) error
}

// attempts bounds how often one change of one file is sent.
const attempts = 3

// Remove moves the files of the batch to the trash on behalf of run, which must
// hold its lease. Every removal is in the run's journal before the first move.
// The caller has read the references right before and passes the identity each
// file had when its removal was decided.
//
// The error is not nil only if nothing was moved: bad input, a clock that is
// off, a locked bucket, a run that was revoked. What became of the single files
// the report says.
func (t *Trash) Remove(ctx context.Context, run *journal.Run, b Batch) (Report, error) {
	doing := "remove files for run " + run.ID()
	if b.Allowed == nil {
		return Report{}, fault.New(fault.Halt, doing+": nobody says which paths the table owns")
	}
	now, err := journal.TrustedTime(ctx, t.fl, t.clk)
	if err != nil {
		return Report{}, fault.In(doing, err)
	}
	if len(b.Files) == 0 {
		return Report{}, nil
	}
	if err := t.checkBucket(ctx, run.Table().Bucket); err != nil {
		return Report{}, fault.In(doing, err)
	}
	var out collector
	todo := t.examine(ctx, run, b, now, &out)
	removals := make([]journal.Removal, len(todo))
	for i, x := range todo {
		removals[i] = x.removal
	}
	if err := run.Removals(ctx, removals...); err != nil {
		return Report{}, fault.In(doing, err)
	}
	held, err := t.held(ctx, run, todo)
	if err != nil {
		return Report{}, fault.In(doing, err)
	}
	g := t.pool()
	for _, x := range todo {
		if by := held[x.removal.Path]; by != "" {
			out.add(Result{Path: x.removal.Path, Bytes: x.entry.Size}.as(Refused, "run "+by+" journalled its removal and has not ended"))
			continue
		}
		g.run(func() {
			res := t.move(ctx, x)
			if res.Outcome == Failed {
				run.Unsettled()
			}
			out.add(res)
		})
	}
	g.wait()
	return out.report(), nil
}

// held finds the files whose removal another run of the table has journalled
// without having ended. That move may be half made: a second one would leave two
// entries of one file in the trash. It is called with the own removals
// journalled, so of two runs at least one sees the other.
func (t *Trash) held(ctx context.Context, run *journal.Run, todo []task) (map[filer.Path]string, error) {
	held := map[filer.Path]string{}
	mine := make(map[filer.Path]bool, len(todo))
	for _, x := range todo {
		mine[x.removal.Path] = true
	}
	for st, err := range t.journals.OpenRuns(ctx, run.UUID()) {
		if err != nil {
			return nil, fault.In("read what other runs remove", err)
		}
		if st.Path() == run.Path() || !st.Removes() || len(todo) == 0 {
			continue
		}
		for rm, err := range st.Removals(ctx) {
			if err != nil {
				return nil, fault.In("read what run "+st.Run()+" removes", err)
			}
			if mine[rm.Path] {
				held[rm.Path] = st.Run()
			}
		}
	}
	return held, nil
}

// task is one file that passed all checks.
type task struct {
	removal journal.Removal
	entry   *filer.Entry
	set     map[string][]byte
}

// examine sorts out what may be moved and puts the rest into out. Each path is
// taken once.
func (t *Trash) examine(ctx context.Context, run *journal.Run, b Batch, now time.Time, out *collector) []task {
	found := make([]*task, len(b.Files))
	id := nonce()
	seen := map[filer.Path]bool{}
	g := t.pool()
	for i, f := range b.Files {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		g.run(func() {
			e, res, ok := t.admit(ctx, run.Table().Bucket, f, b.Allowed)
			if !ok {
				out.add(res)
				return
			}
			purge := now.Add(t.o.Grace).UTC()
			found[i] = &task{
				entry: e,
				removal: journal.Removal{
					File: f, To: Place(run.ID(), f.Path), PurgeAfter: purge, Move: fmt.Sprintf("%s-%s-%d", run.Token(), id, i),
				},
				set: labels(f, run.ID(), run.UUID(), now, purge),
			}
		})
	}
	g.wait()
	var todo []task
	for _, x := range found {
		if x != nil {
			todo = append(todo, *x)
		}
	}
	return todo
}

func labels(f journal.File, run, uuid string, removed, purge time.Time) map[string][]byte {
	return map[string][]byte{
		AttrRestored:   nil,
		AttrOrigin:     []byte(f.Path),
		AttrReason:     []byte(f.Reason),
		AttrRun:        []byte(run),
		AttrTable:      []byte(uuid),
		AttrRemovedAt:  []byte(removed.UTC().Format(time.RFC3339Nano)),
		AttrPurgeAfter: []byte(purge.UTC().Format(time.RFC3339Nano)),
	}
}

// admit looks at one file and says whether it is the one that was planned and
// may be removed.
func (t *Trash) admit(ctx context.Context, bucket string, f journal.File, allowed func(filer.Path) error) (*filer.Entry, Result, bool) {
	res := Result{Path: f.Path}
	err := refusePath(f.Path, bucket)
	if err == nil {
		err = allowed(f.Path)
	}
	if err == nil && f.Identity == "" {
		err = fault.New(fault.Unsupported, fmt.Sprintf("remove %s: its identity was not planned", f.Path))
	}
	if err != nil {
		return nil, res.as(Refused, "").because(err), false
	}
	e, err := t.find(ctx, f.Path)
	switch {
	case err != nil:
		return nil, res.as(Failed, "").because(fault.In("remove "+f.Path.String(), err)), false
	case e == nil:
		return nil, res.as(Gone, ""), false
	}
	if err := refuse(e); err != nil {
		return nil, res.as(Refused, "").because(err), false
	}
	if e.Identity() != f.Identity {
		return nil, res.as(Stale, "it is not the file whose removal was planned"), false
	}
	if err := t.finishRestore(ctx, e); err != nil {
		return nil, res.as(Failed, "").because(fault.In("finish the restoring of "+f.Path.String(), err)), false
	}
	return e, res, true
}

// move makes one journalled removal.
func (t *Trash) move(ctx context.Context, x task) Result {
	rm := x.removal
	res := Result{Path: rm.Path, Trash: rm.To, Bytes: x.entry.Size}
	var last error
	for try := range attempts {
		if err := t.pause(ctx, try); err != nil {
			return res.as(Failed, "").because(errors.Join(fault.In("remove "+rm.Path.String(), last), err))
		}
		m := filer.Move{From: x.entry, To: rm.To, ID: rm.Move, Set: x.set}
		if try > 0 && !fault.Is(last, fault.Unknown) {
			// A refusal is remembered under its id; a new try needs a new one.
			m.ID = fmt.Sprintf("%s-%d", rm.Move, try)
		}
		last = t.fl.Move(ctx, m)
		if last == nil {
			return t.moved(ctx, rm, res)
		}
		origin, place, err := t.both(ctx, rm.Path, rm.To)
		if err != nil {
			return res.as(Failed, "").because(errors.Join(fault.In("remove "+rm.Path.String(), last), err))
		}
		here := origin != nil && origin.Identity() == rm.Identity
		switch {
		case origin == nil && place == nil:
			return res.as(Gone, "")
		case origin == nil && place.Identity() == rm.Identity:
			return t.moved(ctx, rm, res)
		case origin == nil:
			return res.as(Gone, "another file is at its place in the trash")
		case !here:
			return res.as(Stale, "it is not the file whose removal was planned")
		case place != nil && twins(origin, place):
			// The move was cut short. It was decided, so it is finished.
			if last = t.keepOne(ctx, place, origin); last == nil {
				return t.moved(ctx, rm, res)
			}
			if !again(last) {
				return res.as(Failed, "").because(fault.In("finish the removal of "+rm.Path.String(), last))
			}
			continue
		case place != nil:
			return res.as(Conflict, "another file is at its place in the trash")
		}
		if err := refuse(origin); err != nil {
			return res.as(Refused, "").because(err)
		}
		if !again(last) {
			break
		}
		x.entry = origin // its attributes may have changed: the guard compares them all
	}
	return res.as(Failed, "").because(fault.In("remove "+rm.Path.String(), last))
}

// moved ends a removal: with no grace the file is purged at once.
func (t *Trash) moved(ctx context.Context, rm journal.Removal, res Result) Result {
	res.Outcome = Moved
	if t.o.Grace > 0 {
		return res
	}
	place, err := t.find(ctx, rm.To)
	if err == nil && place != nil && place.Identity() == rm.Identity {
		err = absent(t.erase(ctx, place))
	}
	if err != nil {
		return res.because(fault.In("purge "+rm.To.String(), err))
	}
	res.Outcome = Purged
	return res
}

// both looks at the origin and at the place in the trash.
func (t *Trash) both(ctx context.Context, from, to filer.Path) (origin, place *filer.Entry, err error) {
	// The place first: a move under way elsewhere then cannot be missed at both.
	if place, err = t.find(ctx, to); err != nil {
		return nil, nil, err
	}
	origin, err = t.find(ctx, from)
	return origin, place, err
}

// lull is how long a filer without transactions is given to end a rename that
// may be under way.
const lull = 30 * time.Second

// keepOne ends the state in which a file has two entries: extra goes, the data
// and kept stay. A move that is being made at this moment looks the same as one
// that was cut short, and would take kept away after us; so kept is first
// patched, with nothing, under the lock that such a move holds. From then on no
// move can begin either, because the other place is taken. fault.Stale says
// that the state ended by itself.
func (t *Trash) keepOne(ctx context.Context, kept, extra *filer.Entry) error {
	var last error
	for try := range attempts {
		if err := t.pause(ctx, try); err != nil {
			return errors.Join(last, err)
		}
		last = t.fl.Patch(ctx, kept, nil, "keep-"+nonce())
		if last == nil {
			return absent(t.drop(ctx, extra, t.fl.Unlink))
		}
		waited := fault.Is(last, fault.Unsupported)
		if waited {
			if err := t.clk.Sleep(ctx, lull); err != nil {
				return fault.Wrap(fault.Canceled, "wait", err)
			}
		} else if !again(last) {
			return last
		}
		nowKept, nowExtra, err := t.both(ctx, kept.Path, extra.Path)
		switch {
		case err != nil:
			return errors.Join(last, err)
		case nowExtra == nil || nowKept == nil || !twins(nowExtra, nowKept):
			return fault.Wrap(fault.Stale, "settle "+extra.Path.String(), filer.ErrPrecondition)
		case waited:
			return absent(t.drop(ctx, nowExtra, t.fl.Unlink))
		}
		kept, extra = nowKept, nowExtra
	}
	return last
}

// erase deletes a file for good.
func (t *Trash) erase(ctx context.Context, e *filer.Entry) error {
	return t.drop(ctx, e, t.fl.Delete)
}

// drop repeats a guarded removal until its outcome is known. A file that was
// gone before is filer.ErrNotFound, one that changed filer.ErrPrecondition.
func (t *Trash) drop(ctx context.Context, e *filer.Entry, call func(context.Context, filer.Path, filer.Guard) error) error {
	guard := filer.Guard{Identity: e.Identity(), NotModifiedAfter: e.Newest}
	var last error
	for try := range attempts {
		if err := t.pause(ctx, try); err != nil {
			return errors.Join(last, err)
		}
		last = call(ctx, e.Path, guard)
		switch {
		case last == nil || try > 0 && filer.NotFound(last):
			return nil
		case !fault.Is(last, fault.Unknown) && !fault.Is(last, fault.Transient):
			return last
		}
		now, err := t.find(ctx, e.Path)
		switch {
		case err != nil:
			return errors.Join(last, err)
		case now == nil:
			return nil
		case now.Identity() != e.Identity():
			return fault.Wrap(fault.Stale, "remove "+e.Path.String(), filer.ErrPrecondition)
		}
	}
	return last
}

// pause waits before every try but the first.
func (t *Trash) pause(ctx context.Context, try int) error {
	if try == 0 {
		return nil
	}
	return fault.Wrap(fault.Canceled, "wait", t.clk.Sleep(ctx, 50*time.Millisecond<<try))
}

// absent takes it for success that a file was gone already.
func absent(err error) error {
	if filer.NotFound(err) {
		return nil
	}
	return err
}

// again reports whether a failed move may be sent once more.
func again(err error) bool {
	switch fault.Of(err) {
	case fault.Transient, fault.Unknown, fault.Stale:
		return true
	}
	return false
}

func nonce() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: the runtime stops the program instead
	return hex.EncodeToString(b)
}
