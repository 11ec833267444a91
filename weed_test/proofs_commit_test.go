package weed_test

import (
	"sync"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/ops"
)

// P9: the record was changed and the answer was lost.
func TestP9LostAnswer(t *testing.T) {
	l := proofLake(t)
	b := l.builtin(t)
	theirs := l.table(t, enough, nil)
	b.weed = &weedAtSwap{SeaweedFilerClient: b.weed, after: func() error { return status.Error(codes.Unavailable, "the connection broke") }}
	require.Error(t, b.rewriteManifests(theirs))
	require.False(t, theirs.exists(theirs.load().CurrentSnapshot().ManifestList), "the catalog points at files that the built-in worker removed")
	_, err := theirs.read(icetable.MainBranch)
	require.Error(t, err, "the table is lost")
	// What cannot be read might name any file, so nothing is removed beside it.
	require.NoError(t, l.cat.DropTable(t.Context(), theirs.ident()))

	for _, k := range []ops.Kind{config.RewriteManifests, config.ExpireSnapshots} {
		t.Run(string(k), func(t *testing.T) {
			ours := l.table(t, enough, expirable)
			rows := ours.rows(icetable.MainBranch)
			ours.settled()
			lost := 0
			res := ours.run(&atSwap{Filer: l.fl, after: func() error {
				lost++
				return fault.New(fault.Unknown, "update the record: the connection broke")
			}}, k)
			require.Equal(t, 1, lost, "the change is not made a second time")
			require.Equal(t, ops.Finished, res.Status, res.Error)
			require.Equal(t, commit.Committed, res.Commit.Outcome)
			require.Equal(t, 1, res.Commit.Attempts)
			require.Empty(t, res.Warnings)
			require.Equal(t, rows, ours.rows(icetable.MainBranch))
			require.Equal(t, ours.load().MetadataLocation(), res.Commit.MetadataLocation)
		})
	}
}

// P13: a writer commits while the operation runs, after everything was staged.
func TestP13HeadMoves(t *testing.T) {
	l := proofLake(t)
	for _, k := range []ops.Kind{config.RewriteManifests, config.ExpireSnapshots} {
		t.Run(string(k), func(t *testing.T) {
			theirs := l.table(t, enough, expirable)
			b := l.builtin(t)
			b.weed = &weedAtSwap{SeaweedFilerClient: b.weed, before: sync.OnceFunc(func() { theirs.write(icetable.MainBranch) })}
			work := map[ops.Kind]func(*proofTable) error{config.RewriteManifests: b.rewriteManifests, config.ExpireSnapshots: b.expire}[k]
			require.ErrorContains(t, work(theirs), "stale")
			require.Len(t, theirs.manifests(), enough+1, "nothing was committed")
			require.Len(t, theirs.load().Metadata().Snapshots(), enough+1)

			ours := l.table(t, enough, expirable)
			first := ours.rows(icetable.MainBranch)
			ours.settled()
			var both []string
			res := ours.run(&atSwap{Filer: l.fl, before: sync.OnceFunc(func() {
				ours.write(icetable.MainBranch)
				both = ours.rows(icetable.MainBranch)
			})}, k)
			require.Equal(t, ops.Finished, res.Status, res.Error)
			require.Equal(t, commit.Committed, res.Commit.Outcome)
			require.Equal(t, 2, res.Commit.Attempts)
			require.Equal(t, 1, res.Commit.Rebases)
			require.Empty(t, res.Warnings)
			require.Subset(t, both, first)
			require.Greater(t, len(both), len(first))
			require.Equal(t, both, ours.rows(icetable.MainBranch), "the writer's rows are there")
			if k == config.RewriteManifests {
				require.Len(t, ours.manifests(), 2, "the merged manifest and the writer's")
				return
			}
			snapshots := ours.load().Metadata().Snapshots()
			require.Less(t, len(snapshots), enough, "the old snapshots are gone")
		})
	}
}
