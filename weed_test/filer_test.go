// Package weed_test runs Seaice against a real SeaweedFS.
package weed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seaice/seaice/fault"
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
func env(c *cluster.Cluster, f filer.Filer, bucket, other string) filertest.Env {
	n := fmt.Sprintf("suite-%d", envs.Add(1))
	return filertest.Env{
		Filer: f, Root: filer.BucketPath(bucket).Join("ns", n), Other: filer.BucketPath(other).Join(n),
		Twin: func(t *testing.T, e *filer.Entry, to filer.Path) { twin(t, c, e, to) },
	}
}

// twin makes a second entry with the chunks of e, which the client never does.
func twin(t *testing.T, c *cluster.Cluster, e *filer.Entry, to filer.Path) {
	t.Helper()
	o := grpc.WithTransportCredentials(insecure.NewCredentials())
	if c.TLS() {
		var err error
		o, err = security.LoadClientTLSFromFile(c.Security, "grpc.client")
		require.NoError(t, err)
	}
	conn, err := grpc.NewClient(c.FilerGRPC, o)
	require.NoError(t, err)
	defer conn.Close()
	pb := proto.CloneOf(e.PB)
	pb.Name = to.Name()
	r, err := filer_pb.NewSeaweedFilerClient(conn).CreateEntry(t.Context(), &filer_pb.CreateEntryRequest{Directory: to.Dir().String(), Entry: pb, OExcl: true})
	require.NoError(t, err)
	require.Empty(t, r.GetError())
}

func TestFilerSuiteRealWeed(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", Buckets: []string{"other"}})
	f := dial(t, c, filer.Config{})
	filertest.Suite(t, func(*testing.T) filertest.Env { return env(c, f, "lake", "other") })
	t.Run("AnswersAreWhatIsStored", func(t *testing.T) { testAnswersAreWhatIsStored(t, c) })
}

// TestFilerSuiteTLSJWTCipher: mTLS on every connection, signed access to the
// volumes, encrypted chunks.
func TestFilerSuiteTLSJWTCipher(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", Buckets: []string{"other"}, TLS: true, JWT: true, EncryptVolumes: true})
	f := dial(t, c, filer.Config{})
	caps, err := f.Probe(t.Context(), filer.BucketPath("lake"))
	require.NoError(t, err)
	require.True(t, caps.Cipher)
	filertest.Suite(t, func(*testing.T) filertest.Env { return env(c, f, "lake", "other") })
}

// testAnswersAreWhatIsStored: an entry that a call returns can be asserted as a
// whole by the next call.
func testAnswersAreWhatIsStored(t *testing.T, c *cluster.Cluster) {
	t.Helper()
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

// send makes an unsigned request, which an open cluster takes.
func send(t *testing.T, method, url string, header map[string]string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Less(t, resp.StatusCode, 300, "%s %s: %s", method, url, text)
}

// TestFilerSuiteVersionedBucket: versioning changes nothing for what is written
// through the filer; what clients write through S3 becomes a directory of
// versions, which is recognised and not read as something else.
func TestFilerSuiteVersionedBucket(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", Buckets: []string{"other"}})
	f := dial(t, c, filer.Config{})
	send(t, http.MethodPut, c.S3+"/lake?versioning", nil,
		[]byte(`<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>`))
	object := filer.BucketPath("lake").Join("ns", "t", "data", "x.parquet")
	for _, content := range []string{"first", "second"} {
		send(t, http.MethodPut, c.S3+"/lake/ns/t/data/x.parquet", nil, []byte(content))
	}
	_, err := f.Open(t.Context(), object)
	require.Equal(t, fault.Unsupported, fault.Of(err), "%v", err)
	require.ErrorContains(t, err, "versioned bucket")
	var names []string
	versions := 0
	for e, err := range filer.WalkTree(t.Context(), f, filer.BucketPath("lake").Join("ns", "t"), filer.WalkOptions{}) {
		require.NoError(t, err)
		names = append(names, e.Path.Name())
		if e.Versions() {
			versions++
			require.Equal(t, object.String()+filer.VersionsSuffix, e.Path.String())
		}
	}
	require.Equal(t, 1, versions, "%v", names)
	require.Len(t, names, 4, "data, x.parquet.versions and two versions: %v", names)

	filertest.Suite(t, func(*testing.T) filertest.Env { return env(c, f, "lake", "other") })
}

// TestFilerReadsWhatOthersWrite: files of many small chunks, whose list the
// filer moves into chunks of its own, and files that the filer's own interface
// stored compressed; with and without encryption.
func TestFilerReadsWhatOthersWrite(t *testing.T) {
	for name, o := range map[string]cluster.Options{"plain": {}, "encrypted": {EncryptVolumes: true}} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, o)
			f := dial(t, c, filer.Config{ChunkBytes: 128, Parallel: 16})
			want := []byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 16_000))
			u, err := f.Create(t.Context(), "/many", filer.CreateOptions{})
			require.NoError(t, err)
			_, err = u.Write(want)
			require.NoError(t, err)
			e, err := u.Commit(t.Context())
			require.NoError(t, err)
			require.Less(t, len(e.PB.GetChunks()), 4500)
			require.True(t, e.PB.GetChunks()[0].GetIsChunkManifest() || e.PB.GetChunks()[len(e.PB.GetChunks())-1].GetIsChunkManifest(), "%d chunks", len(e.PB.GetChunks()))
			got, _, err := filer.ReadAll(t.Context(), f, "/many", 1<<30)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			// A move and an update carry the lists along.
			e, err = f.Update(t.Context(), filer.Update{Base: e, Expect: filer.Expectation(e, "k"), Set: map[string][]byte{"k": []byte("v")}})
			require.NoError(t, err)
			got, _, err = filer.ReadAll(t.Context(), f, e.Path, 1<<30)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))

			send(t, http.MethodPut, c.FilerHTTP+"/text/a.txt", map[string]string{"Content-Type": "text/plain"}, want)
			e, err = f.Stat(t.Context(), "/text/a.txt")
			require.NoError(t, err)
			require.True(t, e.PB.GetChunks()[0].GetIsCompressed(), "the filer compresses text")
			require.Equal(t, o.EncryptVolumes, len(e.PB.GetChunks()[0].GetCipherKey()) > 0)
			got, _, err = filer.ReadAll(t.Context(), f, "/text/a.txt", 1<<30)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
		})
	}
}
