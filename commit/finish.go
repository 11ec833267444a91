package commit

import (
	"context"
	"fmt"
	"time"

	"github.com/seaice/seaice/journal"
)

// finishFor bounds the clean-up after a commit.
const finishFor = 10 * time.Minute

// Finish ends the run of st according to res, and adds what went wrong to its
// warnings: nothing that fails here changes the outcome (F118).
//
// Committed: files of lost attempts, which the committed one does not use, go to
// the trash and the journal is closed. Refused: all staged files go. Unknown:
// nothing is touched; the lease is given up so that anybody may resolve the run.
// Work that ctx was cancelled in is finished all the same.
func (c *Committer) Finish(ctx context.Context, st *Stage, res *Result, tr journal.Trasher) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishFor)
	defer cancel()
	warn := func(doing string, err error) bool {
		if err != nil {
			res.Warnings = append(res.Warnings, doing+": "+err.Error())
		}
		return err != nil
	}
	var garbage []Staged
	end := journal.Committed
	switch res.Outcome {
	case Committed:
		garbage = st.superfluous()
	case Refused:
		garbage, end = st.Files(), journal.Refused
	default:
		warn("give up the lease", st.run.Release(ctx))
		return
	}
	if len(garbage) > 0 {
		files := make([]journal.File, len(garbage))
		for i, g := range garbage {
			files[i] = journal.File{Path: g.Path, Identity: g.Identity, Reason: fmt.Sprintf("staged by run %s and not committed", st.run.ID())}
		}
		d, err := tr.Discard(ctx, st.run, files)
		for _, k := range d.Kept {
			res.Warnings = append(res.Warnings, fmt.Sprintf("staged file %s was left: %s", k.Path, k.Reason))
		}
		if warn("discard staged files", err) {
			return // the journal stays open, so that somebody does it
		}
	}
	warn("close the journal", st.run.Close(ctx, end))
}
