package main

import (
	"context"
	"fmt"

	builtin "github.com/seaweedfs/seaweedfs/weed/worker/tasks/iceberg"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

const (
	// expireManifests are shared by all snapshots of a table.
	expireManifests = 20
	expireEntries   = 50 // of a manifest

	rewriteManifests  = 100
	rewriteEntries    = 500 // of a manifest
	rewritePartitions = 50
)

// expireShared expires all snapshots but the head of a table in which every
// snapshot has the same manifests: a list of each snapshot is removed. Peer:
// the built-in worker on a table of the same content.
func expireShared(name string, snapshots int, peer bool) harness.Bench {
	return harness.Bench{Name: name, Unit: "snapshots/s", Runs: 3, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		l, err := openLake(ctx)
		if err != nil {
			return nil, err
		}
		c := l.expireShared(snapshots)
		if !peer {
			c.Peer = nil
		}
		return c, nil
	}}
}

func (l *lake) expireShared(snapshots int) *harness.Contest {
	table := model.SyntheticOptions{
		Manifests: expireManifests, EntriesPerManifest: expireEntries, Snapshots: snapshots, Churn: -1,
		Properties: map[string]string{"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "1"},
	}
	expired := snapshots - 1
	return &harness.Contest{
		Ours: l.onFreshTable(float64(expired), table, func(ctx context.Context, id iceberg.TableID) error {
			res, err := l.run(ctx, id, config.ExpireSnapshots)
			if err != nil {
				return err
			}
			if res.Actual.After.Snapshots != 1 || res.Actual.RemovedFiles != int64(expired) {
				return fmt.Errorf("%d snapshots are left and %d files removed", res.Actual.After.Snapshots, res.Actual.RemovedFiles)
			}
			return nil
		}),
		Peer: l.onFreshTable(float64(expired), table, func(ctx context.Context, id iceberg.TableID) error {
			c := builtin.ParseConfig(nil)
			c.MaxSnapshotsToKeep, c.SnapshotRetentionMs = 1, 1
			_, m, err := l.builtin.ExpireSnapshots(ctx, l.weed(), id.Bucket, id.Namespace+"/"+id.Name, c)
			if err != nil {
				return err
			}
			if err := did(m, builtin.MetricSnapshotsExpired, expired); err != nil {
				return err
			}
			return did(m, builtin.MetricFilesDeleted, expired)
		}),
		Close: l.close,
	}
}

// rewriteManifestsBench merges the manifests of a partitioned table, each of which
// has entries of every partition. Ours sorts by partition and proves that the
// entries are the same; the peer, the built-in worker, does neither.
func rewriteManifestsBench() harness.Bench {
	return harness.Bench{Name: "rewrite_manifests", Unit: "entries/s", Runs: 3, Prepare: func(ctx context.Context) (*harness.Contest, error) {
		l, err := openLake(ctx)
		if err != nil {
			return nil, err
		}
		return l.rewriteManifests(rewriteManifests, rewriteEntries), nil
	}}
}

func (l *lake) rewriteManifests(manifests, entries int) *harness.Contest {
	table := model.SyntheticOptions{Manifests: manifests, EntriesPerManifest: entries, Partitions: rewritePartitions}
	all := manifests * entries
	return &harness.Contest{
		Ours: l.onFreshTable(float64(all), table, func(ctx context.Context, id iceberg.TableID) error {
			res, err := l.run(ctx, id, config.RewriteManifests)
			if err != nil {
				return err
			}
			if res.Actual.After.DataFiles != int64(all) || res.Actual.After.Manifests >= int64(manifests) {
				return fmt.Errorf("%d manifests with %d files are left", res.Actual.After.Manifests, res.Actual.After.DataFiles)
			}
			return nil
		}),
		Peer: l.onFreshTable(float64(all), table, func(ctx context.Context, id iceberg.TableID) error {
			c := builtin.ParseConfig(nil)
			c.MinManifestsToRewrite = 2
			_, m, err := l.builtin.RewriteManifests(ctx, l.weed(), id.Bucket, id.Namespace+"/"+id.Name, c)
			if err != nil {
				return err
			}
			return did(m, builtin.MetricEntriesTotal, all)
		}),
		Close: l.close,
	}
}
