// Package weed_test runs Seaice against a real SeaweedFS.
package weed_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/cluster"
)

// startCluster starts a cluster that ends with the test. Without weed the test
// is skipped, but not under CI.
func startCluster(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if _, err := cluster.Weed(ctx); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("no weed: %v", err)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := cluster.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	return c
}

// dial connects to the cluster's filer as the product does.
func dial(t *testing.T, c *cluster.Cluster, cfg filer.Config) *filer.Client {
	t.Helper()
	cfg.Addresses, cfg.Security = []string{c.Filer}, c.Security
	f, err := filer.Dial(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

var envs atomic.Int64

// env is a fresh directory in each of two buckets.
func env(f filer.Filer, bucket, other string) filertest.Env {
	n := fmt.Sprintf("suite-%d", envs.Add(1))
	return filertest.Env{Filer: f, Root: filer.BucketPath(bucket).Join("ns", n), Other: filer.BucketPath(other).Join(n)}
}

func TestFilerSuiteRealWeed(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", Buckets: []string{"other"}})
	f := dial(t, c, filer.Config{})
	filertest.Suite(t, func(*testing.T) filertest.Env { return env(f, "lake", "other") })
}

// TestFilerSuiteTLSJWTCipher: mTLS on every connection, signed access to the
// volumes, encrypted chunks.
func TestFilerSuiteTLSJWTCipher(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", Buckets: []string{"other"}, TLS: true, JWT: true, EncryptVolumes: true})
	f := dial(t, c, filer.Config{})
	caps, err := f.Probe(t.Context(), filer.BucketPath("lake"))
	require.NoError(t, err)
	require.True(t, caps.Cipher)
	filertest.Suite(t, func(*testing.T) filertest.Env { return env(f, "lake", "other") })
}

// TestFilerAnswersAreWhatIsStored: an entry that a call returns can be asserted
// as a whole by the next call.
func TestFilerAnswersAreWhatIsStored(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake"})
	f := dial(t, c, filer.Config{ChunkBytes: 64 << 10})
	dir := filer.BucketPath("lake").Join("answers")
	stored := func(e *filer.Entry, err error) *filer.Entry {
		t.Helper()
		require.NoError(t, err)
		now, err := f.Stat(t.Context(), e.Path)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(now.PB, e.PB, protocmp.Transform()))
		require.Equal(t, now.Size, e.Size)
		return e
	}
	for _, o := range []filer.CreateOptions{{}, {Mime: "application/json", Extended: map[string][]byte{"k": []byte("v"), "empty": {}}}, {Replace: true}} {
		for _, size := range []int{0, 10, filer.InlineLimit + 5} {
			p := dir.Join(fmt.Sprintf("%s-%t-%d", o.Mime, o.Replace, size))
			e := stored(f.Put(t.Context(), p, make([]byte, size), o))
			if o.Replace {
				e = stored(f.Put(t.Context(), p, make([]byte, size), o))
			}
			require.NoError(t, f.Patch(t.Context(), e, map[string][]byte{"patched": []byte("1")}, p.String()))
			e, err := f.Stat(t.Context(), p)
			require.NoError(t, err)
			e = stored(f.Update(t.Context(), filer.Update{Base: e, Expect: filer.Expectation(e), Set: map[string][]byte{"patched": nil}}))
			e = stored(f.Update(t.Context(), filer.Update{Base: e, Expect: filer.Expectation(e, "none")}))
			e = stored(f.Update(t.Context(), filer.Update{Base: e, Expect: filer.Expectation(e, "none"), Content: []byte("other")}))
			for l, err := range f.List(t.Context(), dir, filer.ListOptions{Prefix: p.Name()}) {
				stored(l, err)
			}
			require.NoError(t, f.Delete(t.Context(), p, filer.Guard{Identity: e.Identity()}))
		}
	}
}
