package weed_test

import (
	"maps"
	"slices"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/ops"
)

// P6: the manifest of a rewrite names what it replaced, as removed. That is no
// reference: once the snapshots that had the files expire, the files go.
func TestP6ReplacedFilesAreReclaimed(t *testing.T) {
	l := proofLake(t)
	b := l.builtin(t)
	// shape is a table whose head replaced all files of the snapshots before.
	shape := func() (p *proofTable, replaced []string) {
		p = l.table(t, enough, expirable)
		replaced = slices.Sorted(maps.Keys(p.entries()))
		require.Len(t, replaced, enough)
		rows := p.rows(icetable.MainBranch)
		require.NoError(t, b.compact(p))
		require.Equal(t, icetable.OpReplace, p.load().CurrentSnapshot().Summary.Operation)
		require.Equal(t, rows, p.rows(icetable.MainBranch))
		return p, replaced
	}

	theirs, replaced := shape()
	require.NoError(t, b.expire(theirs))
	require.Len(t, theirs.load().Metadata().Snapshots(), 1)
	for _, f := range replaced {
		require.True(t, theirs.exists(f), "the built-in worker leaves %s, which no snapshot reads", f)
	}

	ours, replaced := shape()
	rows := ours.rows(icetable.MainBranch)
	ours.settled()
	res := ours.run(l.fl, config.ExpireSnapshots)
	require.Equal(t, ops.Finished, res.Status, res.Error)
	require.Equal(t, commit.Committed, res.Commit.Outcome)
	require.Empty(t, res.Warnings)
	require.NotNil(t, res.Actual)
	require.Equal(t, res.Predicted.RemovedFiles, res.Actual.RemovedFiles, "as predicted")
	require.GreaterOrEqual(t, res.Actual.RemovedFiles, int64(len(replaced)))
	require.Len(t, ours.load().Metadata().Snapshots(), 1)
	for _, f := range replaced {
		require.False(t, ours.exists(f), "%s is read by no snapshot", f)
	}
	require.Equal(t, rows, ours.rows(icetable.MainBranch))
}
