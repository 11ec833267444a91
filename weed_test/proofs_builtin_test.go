package weed_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	builtin "github.com/seaweedfs/seaweedfs/weed/worker/tasks/iceberg"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// builtinWorker is SeaweedFS's own maintenance. Its filer may be wrapped.
type builtinWorker struct {
	*builtin.Handler
	weed filer_pb.SeaweedFilerClient
}

func (l *lake) builtin(t *testing.T) *builtinWorker {
	t.Helper()
	o := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(l.FilerGRPC, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &builtinWorker{Handler: builtin.NewHandler(o), weed: filer_pb.NewSeaweedFilerClient(conn)}
}

// lowThresholds lets it work on tables of a few files.
func lowThresholds() builtin.Config {
	c := builtin.ParseConfig(nil)
	c.MinInputFiles, c.MinManifestsToRewrite = 2, 2
	c.MaxSnapshotsToKeep, c.SnapshotRetentionMs = 1, 1
	return c
}

func (b *builtinWorker) rewriteManifests(p *proofTable) error {
	p.t.Helper()
	said, _, err := b.RewriteManifests(p.t.Context(), b.weed, lakeBucket, p.path(), lowThresholds())
	p.t.Logf("built-in rewrite_manifests: %q, error %v", said, err)
	return err
}

func (b *builtinWorker) expire(p *proofTable) error {
	p.t.Helper()
	said, _, err := b.ExpireSnapshots(p.t.Context(), b.weed, lakeBucket, p.path(), lowThresholds())
	p.t.Logf("built-in expire_snapshots: %q, error %v", said, err)
	return err
}

func (b *builtinWorker) compact(p *proofTable) error {
	p.t.Helper()
	said, _, err := b.CompactDataFiles(p.t.Context(), b.weed, lakeBucket, p.path(), lowThresholds())
	p.t.Logf("built-in compact: %q, error %v", said, err)
	return err
}

// detect runs its detection on one table and returns how much it proposed.
func (b *builtinWorker) detect(p *proofTable) int {
	p.t.Helper()
	text := func(s string) *plugin_pb.ConfigValue {
		return &plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_StringValue{StringValue: s}}
	}
	var out proposals
	require.NoError(p.t, b.Detect(p.t.Context(), &plugin_pb.RunDetectionRequest{
		JobType: jobTypeName, MaxResults: 10,
		AdminConfigValues:  map[string]*plugin_pb.ConfigValue{"table_filter": text(p.name)},
		WorkerConfigValues: map[string]*plugin_pb.ConfigValue{"operations": text("compact,rewrite_manifests")},
		ClusterContext:     &plugin_pb.ClusterContext{FilerAddresses: []string{p.l.Filer}},
	}, &out))
	return int(out)
}

const jobTypeName = "iceberg_maintenance"

// proposals counts what a detection proposes.
type proposals int

func (n *proposals) SendProposals(p *plugin_pb.DetectionProposals) error {
	*n += proposals(len(p.GetProposals()))
	return nil
}
func (n *proposals) SendComplete(*plugin_pb.DetectionComplete) error { return nil }
func (n *proposals) SendActivity(*plugin_pb.ActivityEvent) error     { return nil }

// weedAtSwap is to the built-in worker what atSwap is to ours.
type weedAtSwap struct {
	filer_pb.SeaweedFilerClient
	before func()
	after  func() error
}

func (w *weedAtSwap) UpdateEntry(ctx context.Context, in *filer_pb.UpdateEntryRequest, o ...grpc.CallOption) (*filer_pb.UpdateEntryResponse, error) {
	if w.before != nil {
		w.before()
	}
	r, err := w.SeaweedFilerClient.UpdateEntry(ctx, in, o...)
	if err == nil && w.after != nil {
		if lost := w.after(); lost != nil {
			return nil, lost
		}
	}
	return r, err
}

// weedAtList interferes when a manifest list is about to be written.
type weedAtList struct {
	filer_pb.SeaweedFilerClient
	before func()
}

func (w *weedAtList) CreateEntry(ctx context.Context, in *filer_pb.CreateEntryRequest, o ...grpc.CallOption) (*filer_pb.CreateEntryResponse, error) {
	if strings.HasPrefix(in.GetEntry().GetName(), "snap-") {
		w.before()
	}
	return w.SeaweedFilerClient.CreateEntry(ctx, in, o...)
}
