package trash

import (
	"context"
	"errors"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Restore brings the chosen items back to where they came from. It never
// overwrites: an item whose origin is taken is a Conflict and stays. The error
// is not nil only if the trash could not be listed to its end; what was done
// until then is in the report.
func (t *Trash) Restore(ctx context.Context, s Selection) (Report, error) {
	var out collector
	g := t.pool()
	var failed error
	for it, err := range t.Select(ctx, s) {
		if err != nil {
			failed = err
			break
		}
		g.run(func() { out.add(t.restore(ctx, it)) })
	}
	g.wait()
	return out.report(), failed
}

// RestoreRun undoes the removals of one run as far as that is possible. Its
// journal says what it removed: besides what was restored the report names the
// files that are at their origin (Present), and those that cannot be brought
// back because they are at neither place (Gone) or changed since (Stale).
func (t *Trash) RestoreRun(ctx context.Context, run string) (Report, error) {
	st, err := t.journals.Find(ctx, run)
	if err != nil {
		return Report{}, fault.In("undo run "+run, err)
	}
	rep, err := t.Restore(ctx, Selection{Bucket: st.Table().Bucket, Run: run})
	if err != nil {
		return rep, fault.In("undo run "+run, err)
	}
	out := collector{Report: rep}
	done := map[filer.Path]bool{}
	for _, x := range rep.Results {
		done[x.Path] = true
	}
	g := t.pool()
	for rm, err := range st.Removals(ctx) {
		if err != nil {
			g.wait()
			return out.report(), fault.In("undo run "+run, err)
		}
		if done[rm.Path] {
			continue
		}
		done[rm.Path] = true
		g.run(func() { out.add(t.missing(ctx, rm)) })
	}
	g.wait()
	return out.report(), nil
}

// missing says what became of a removal that is not in the trash.
func (t *Trash) missing(ctx context.Context, rm journal.Removal) Result {
	res := Result{Path: rm.Path, Trash: rm.To}
	e, err := t.find(ctx, rm.Path)
	switch {
	case err != nil:
		return res.as(Failed, "").because(fault.In("look at "+rm.Path.String(), err))
	case e == nil:
		return res.as(Gone, "it was purged, or somebody else removed it: it cannot be brought back")
	case e.Identity() != rm.Identity:
		return res.as(Stale, "another file is at its origin, and it is not in the trash any more")
	}
	res.Bytes = e.Size
	return res.as(Present, "")
}

// restore brings one item back.
func (t *Trash) restore(ctx context.Context, it Item) Result {
	res := Result{Path: it.Origin, Trash: it.Path, Bytes: it.Bytes}
	if it.Problem != "" {
		return res.as(Kept, it.Problem)
	}
	clear := make(map[string][]byte, len(attributes)+1)
	for _, name := range attributes {
		clear[name] = nil
	}
	// Until the move is known to be whole the file says where it comes from: who
	// removes it again must not leave two entries of it in the trash.
	clear[AttrRestored] = []byte(it.Path)
	id := "restore-" + nonce()
	from, want := it.entry, it.entry.Identity()
	var last error
	for try := range attempts {
		if err := t.pause(ctx, try); err != nil {
			return res.as(Failed, "").because(errors.Join(fault.In("restore "+it.Path.String(), last), err))
		}
		if try > 0 && !fault.Is(last, fault.Unknown) {
			id = "restore-" + nonce()
		}
		if last = t.fl.Move(ctx, filer.Move{From: from, To: it.Origin, ID: id, Set: clear}); last == nil {
			return t.restored(ctx, it, res)
		}
		// Seen from here the origin is the place the file goes to.
		place, origin, err := t.both(ctx, it.Path, it.Origin)
		if err != nil {
			return res.as(Failed, "").because(errors.Join(fault.In("restore "+it.Path.String(), last), err))
		}
		switch {
		case origin != nil && place != nil && twins(origin, place):
			if last = t.keepOne(ctx, origin, place); last == nil {
				return t.restored(ctx, it, res)
			}
			if !again(last) {
				return res.as(Failed, "").because(fault.In("finish the restoring of "+it.Path.String(), last))
			}
			continue
		case place == nil && origin != nil && origin.Identity() == want:
			return t.restored(ctx, it, res)
		case place == nil:
			return res.as(Gone, "it is not in the trash any more")
		case origin != nil:
			return res.as(Conflict, "another file is at its origin")
		case place.Identity() != want:
			return res.as(Stale, "it changed in the trash meanwhile")
		}
		if !again(last) {
			break
		}
		from = place
	}
	return res.as(Failed, "").because(fault.In("restore "+it.Path.String(), last))
}

// restored ends a restoring: the file loses the mark of where it came from. If
// that cannot be done now, the next removal of the file does it.
func (t *Trash) restored(ctx context.Context, it Item, res Result) Result {
	res.Outcome = Restored
	e, err := t.find(ctx, it.Origin)
	if err == nil && e != nil && len(e.Extended[AttrRestored]) > 0 {
		_, err = t.fl.Update(ctx, filer.Update{
			Base: e, Expect: filer.Expectation(e), Set: map[string][]byte{AttrRestored: nil},
		})
	}
	if err != nil {
		res.Detail = "attribute " + AttrRestored + " is still on it: " + err.Error()
	}
	return res
}

// finishRestore ends a restoring of the file e that was cut short: the entry
// left in the trash goes.
func (t *Trash) finishRestore(ctx context.Context, e *filer.Entry) error {
	from := e.Extended[AttrRestored]
	if len(from) == 0 {
		return nil
	}
	p, err := filer.ParsePath(string(from))
	if err != nil || !p.Within(Root(e.Path.Bucket())) {
		return nil // not ours: such a mark means nothing
	}
	place, err := t.find(ctx, p)
	if err != nil || place == nil || !twins(e, place) {
		return err
	}
	return t.keepOne(ctx, e, place)
}
