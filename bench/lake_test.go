package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/internal/cluster"
)

// Each side does its whole work on a small table, or its own checks fail.
func TestBothSidesMaintainTables(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if _, err := cluster.Weed(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("no weed: %v", err)
	}
	l, err := openLake(t.Context())
	require.NoError(t, err)
	t.Cleanup(l.close)
	for name, c := range map[string]*harness.Contest{"expire": l.expireShared(5), "rewrite": l.rewriteManifests(6, 10)} {
		for who, side := range map[string]harness.Side{"ours": c.Ours, "peer": c.Peer} {
			figure, err := side(t.Context())
			require.NoError(t, err, "%s %s", name, who)
			require.Positive(t, figure)
		}
	}
}
