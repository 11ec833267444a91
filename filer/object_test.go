package filer

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

const testFile Path = "/buckets/b/f"

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// stored puts a chunk with content data at offset; how says how it is kept.
func (w *wire) stored(offset int64, data []byte, how ...string) *filer_pb.FileChunk {
	c := &filer_pb.FileChunk{Offset: offset, Size: uint64(len(data)), ModifiedTsNs: w.reqs.Add(1)}
	for _, h := range how {
		switch h {
		case "packed":
			data, c.IsCompressed = packed(data), true
		case "sealed":
			key := util.GenCipherKey()
			sealed, err := util.Encrypt(data, key)
			require.NoError(w.t, err)
			data, c.CipherKey = sealed, key
		}
	}
	c.FileId = w.needle(data)
	return c
}

// listed puts a manifest of chunks.
func (w *wire) listed(chunks ...*filer_pb.FileChunk) *filer_pb.FileChunk {
	b, err := proto.Marshal(&filer_pb.FileChunkManifest{Chunks: chunks})
	require.NoError(w.t, err)
	c := &filer_pb.FileChunk{FileId: w.needle(b), IsChunkManifest: true, Offset: math.MaxInt64}
	stop := int64(0)
	for _, x := range chunks {
		c.Offset, stop = min(c.Offset, x.Offset), max(stop, end(x))
	}
	c.Size = uint64(stop - c.Offset)
	return c
}

func readFile(t *testing.T, c *Client) []byte {
	t.Helper()
	b, _, err := ReadAll(t.Context(), c, testFile, 1<<30)
	require.NoError(t, err)
	return b
}

func TestReadsEveryWayOfKeeping(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	want := pattern(100_000)
	half := 50_000
	for _, s := range []struct {
		name string
		e    *filer_pb.Entry
	}{
		{"inline", &filer_pb.Entry{Content: want}},
		{"plain", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want)}}},
		{"two", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(int64(half), want[half:]), w.stored(0, want[:half])}}},
		{"sealed", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want, "sealed")}}},
		{"packed and sealed", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want, "packed", "sealed")}}},
		{"one of each", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want[:10]), w.stored(10, want[10:half], "sealed"), w.stored(int64(half), want[half:], "packed", "sealed")}}},
		{"manifest", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.listed(w.stored(0, want[:half]), w.stored(int64(half), want[half:]))}}},
		{"nested manifests", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.listed(w.listed(w.stored(0, want[:half])), w.stored(int64(half), want[half:]))}}},
		{"overwritten", &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, make([]byte, len(want))), w.stored(0, want)}}},
	} {
		t.Run(s.name, func(t *testing.T) {
			w.put(testFile, s.e)
			require.Equal(t, want, readFile(t, c))
			o, err := c.Open(t.Context(), testFile)
			require.NoError(t, err)
			defer o.Close()
			for _, r := range [][2]int{{0, 1}, {9, 2}, {half - 1, 2}, {half, 100}, {len(want) - 1, 1}, {5, half}, {0, len(want)}} {
				b := make([]byte, r[1])
				n, err := o.ReadAt(b, int64(r[0]))
				require.NoError(t, err)
				require.Equal(t, want[r[0]:r[0]+r[1]], b[:n])
			}
		})
	}
}

// TestServersUnpackWhatTheyPacked: a compressed chunk outside of encryption is
// unpacked by the volume server, which knows that it packed it.
func TestServersUnpackWhatTheyPacked(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	want := pattern(50_000)
	ch := w.stored(0, want)
	ch.IsCompressed = true
	w.http = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Range") != "" {
			t.Errorf("compressed chunk is asked for with %v", r.Header)
		}
		return false
	}
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{ch}})
	require.Equal(t, want, readFile(t, c))
}

func TestHolesAreZero(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.put(testFile, &filer_pb.Entry{
		Attributes: &filer_pb.FuseAttributes{FileSize: 30},
		Chunks:     []*filer_pb.FileChunk{w.stored(5, []byte("aaaaa")), w.stored(20, []byte("bbb"))},
	})
	want := "\x00\x00\x00\x00\x00aaaaa\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00bbb\x00\x00\x00\x00\x00\x00\x00"
	require.Equal(t, want, string(readFile(t, c)))
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	for from := range len(want) {
		for to := from + 1; to <= len(want); to++ {
			b := bytes.Repeat([]byte{9}, to-from)
			n, err := o.ReadAt(b, int64(from))
			require.NoError(t, err)
			require.Equal(t, want[from:to], string(b[:n]))
		}
	}
}

// TestSealedChunksAreReadOnce: many small reads of an encrypted chunk cost one
// request, also at the same time.
func TestSealedChunksAreReadOnce(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	want := pattern(1 << 20)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want, "sealed")}})
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	before := w.reqs.Load()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			b := make([]byte, 1000)
			if _, err := o.ReadAt(b, int64(i*1000)); err != nil || !bytes.Equal(b, want[i*1000:i*1000+1000]) {
				t.Errorf("read %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, w.reqs.Load()-before)
	require.Empty(t, c.cache.turns)
}

func TestCacheKeepsToItsLimit(t *testing.T) {
	k := newChunkCache(100)
	for i := range 10 {
		k.put(fmt.Sprint(i), make([]byte, 30))
		require.LessOrEqual(t, k.bytes, int64(100))
	}
	require.NotNil(t, k.get("9"))
	require.NotNil(t, k.get("7"))
	require.Nil(t, k.get("6"))
	k.put("big", make([]byte, 101))
	require.Nil(t, k.get("big"))
	k.put("a", make([]byte, 30))
	require.Nil(t, k.get("8"), "the least recently used goes first")
	require.NotNil(t, k.get("7"))
}

func TestHostileFilesAreRefused(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	deep := w.stored(0, []byte("x"))
	for range maxManifestDepth + 1 {
		deep = w.listed(deep)
	}
	short := w.stored(0, pattern(10))
	short.Size = 1 << 40
	shortSealed := w.stored(0, pattern(10), "sealed")
	shortSealed.Size = 11
	hugeSealed := w.stored(0, pattern(10), "sealed")
	hugeSealed.Size = maxWholeBytes + 1
	bomb := w.stored(0, make([]byte, 1<<20), "packed", "sealed")
	bomb.Size = 1000
	wrongKey := w.stored(0, pattern(10), "sealed")
	wrongKey.CipherKey = bytes.Repeat([]byte{1}, 32)
	shortKey := w.stored(0, pattern(10), "sealed")
	shortKey.CipherKey = []byte{1}
	notAList := w.listed(w.stored(0, []byte("x")))
	notAList.FileId = w.needle([]byte("this is no list of chunks"))
	self := w.listed(w.stored(0, []byte("x")))
	b, err := proto.Marshal(&filer_pb.FileChunkManifest{Chunks: []*filer_pb.FileChunk{self}})
	require.NoError(t, err)
	w.needles[self.FileId] = b
	sse := w.stored(0, []byte("x"))
	sse.SseType = filer_pb.SSEType_SSE_S3
	for _, s := range []struct {
		name  string
		chunk *filer_pb.FileChunk
		kind  fault.Kind
	}{
		{"manifests nested too deep", deep, fault.Corrupt},
		{"manifest that lists itself", self, fault.Corrupt},
		{"manifest that is none", notAList, fault.Corrupt},
		{"shorter than said", short, fault.Corrupt},
		{"sealed and shorter than said", shortSealed, fault.Corrupt},
		{"sealed and too large to read whole", hugeSealed, fault.TooLarge},
		{"unpacks to more than said", bomb, fault.Corrupt},
		{"wrong key", wrongKey, fault.Corrupt},
		{"short key", shortKey, fault.Corrupt},
		{"encrypted by a client", sse, fault.Unsupported},
		{"encrypted by a client, in a manifest", w.listed(sse), fault.Unsupported},
	} {
		t.Run(s.name, func(t *testing.T) {
			w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{s.chunk}})
			o, err := c.Open(t.Context(), testFile)
			if err == nil {
				_, err = o.ReadAt(make([]byte, 11), 0)
			}
			require.Equal(t, s.kind, fault.Of(err), "%v", err)
			require.ErrorContains(t, err, testFile.String())
		})
	}
}

// TestHugeFilesAreNotAllocated: a file of holes may be of any length.
func TestHugeFilesAreNotAllocated(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.put(testFile, &filer_pb.Entry{Attributes: &filer_pb.FuseAttributes{FileSize: math.MaxInt64}})
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	require.EqualValues(t, int64(math.MaxInt64), o.Size())
	b := []byte{1, 2, 3}
	n, err := o.ReadAt(b, math.MaxInt64-2)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 2, n)
	require.Equal(t, []byte{0, 0, 3}, b)
	s := o.Stream(math.MaxInt64-5, -1)
	all, err := io.ReadAll(s)
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.NoError(t, s.Close())
	w.put(testFile, &filer_pb.Entry{Attributes: &filer_pb.FuseAttributes{FileSize: math.MaxUint64}})
	e, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	require.Zero(t, e.Size)
}

func TestOpenOfVersionedObject(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	_, err := c.Open(t.Context(), testFile)
	verdict(t, err, fault.Stale, ErrNotFound)
	w.put(testFile+VersionsSuffix, &filer_pb.Entry{IsDirectory: true})
	_, err = c.Open(t.Context(), testFile)
	verdict(t, err, fault.Unsupported, nil)
	require.ErrorContains(t, err, "versioned bucket")
	require.ErrorContains(t, err, testFile.String()+VersionsSuffix)
}

func (w *wire) CacheRemoteObjectToLocalCluster(_ context.Context, r *filer_pb.CacheRemoteObjectToLocalClusterRequest) (*filer_pb.CacheRemoteObjectToLocalClusterResponse, error) {
	p := Path(r.Directory).Join(r.Name)
	e := w.get(p)
	e.Chunks = []*filer_pb.FileChunk{w.stored(0, pattern(int(e.RemoteEntry.RemoteSize)))}
	w.put(p, e)
	return &filer_pb.CacheRemoteObjectToLocalClusterResponse{Entry: e}, nil
}

func TestRemoteFilesAreCachedFirst(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.put(testFile, &filer_pb.Entry{
		Attributes: &filer_pb.FuseAttributes{Mtime: 5, FileSize: 1000}, RemoteEntry: &filer_pb.RemoteEntry{RemoteSize: 1000, RemoteMtime: 5},
	})
	require.Equal(t, pattern(1000), readFile(t, c))
	require.Equal(t, 1, w.count("CacheRemoteObjectToLocalCluster"))
	require.Equal(t, pattern(1000), readFile(t, c))
	require.Equal(t, 1, w.count("CacheRemoteObjectToLocalCluster"))
}

// TestReadsGoOnElsewhere: a server that fails, answers short or breaks off is
// asked again; one that lacks the chunk is looked up anew.
func TestReadsGoOnElsewhere(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	want := pattern(3 << 20)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, want)}})
	fails := 0
	w.http = func(rw http.ResponseWriter, r *http.Request) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		fails++
		switch fails {
		case 1:
			http.Error(rw, "busy", http.StatusServiceUnavailable)
		case 2:
			rw.Header().Set("Content-Length", "2097152")
			rw.Header().Set("Content-Range", "bytes 0-2097151/3145728")
			rw.WriteHeader(http.StatusPartialContent)
			_, _ = rw.Write(want[:1000])
		case 3:
			rw.WriteHeader(http.StatusNotFound)
		case 4:
			rw.Header().Set("Location", "http://127.0.0.1:1"+r.URL.Path)
			rw.WriteHeader(http.StatusMovedPermanently)
		default:
			return false
		}
		return true
	}
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	b := make([]byte, 2<<20)
	for try := 0; ; try++ {
		require.Less(t, try, 3)
		// Two servers in a row without the chunk is a verdict.
		if _, err = o.ReadAt(b, 0); err == nil {
			break
		}
		require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
	}
	require.True(t, bytes.Equal(want[:2<<20], b))
	require.Equal(t, want, readFile(t, c))
}

func TestLostChunks(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	pb := &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(10))}}
	w.put(testFile, pb)
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	delete(w.needles, pb.Chunks[0].FileId)
	_, err = o.ReadAt(make([]byte, 1), 0)
	verdict(t, err, fault.Corrupt, nil)
	require.ErrorContains(t, err, pb.Chunks[0].FileId)
	w.put(testFile, &filer_pb.Entry{Content: []byte("other")})
	_, err = o.ReadAt(make([]byte, 1), 0)
	verdict(t, err, fault.Stale, ErrPrecondition)
	delete(w.entries, testFile)
	_, err = o.ReadAt(make([]byte, 1), 0)
	verdict(t, err, fault.Stale, ErrNotFound)
}

func TestAnswersToRangesAreChecked(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(1000))}})
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	b := make([]byte, 10)
	w.http = func(rw http.ResponseWriter, _ *http.Request) bool { // a server without ranges
		_, _ = rw.Write(pattern(1000))
		return true
	}
	_, err = o.ReadAt(b, 500)
	require.NoError(t, err)
	require.Equal(t, pattern(1000)[500:510], b)
	w.http = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("Content-Range", "bytes 400-409/1000")
		rw.WriteHeader(http.StatusPartialContent)
		_, _ = rw.Write(pattern(10))
		return true
	}
	_, err = o.ReadAt(b, 500)
	verdict(t, err, fault.Corrupt, nil)
	w.http = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	}
	_, err = o.ReadAt(b, 500)
	verdict(t, err, fault.Unsupported, nil)
	require.Contains(t, strings.Join(fault.Hints(err), " "), "jwt.signing")
}

func TestClosedAndCanceledObjects(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(20<<20))}})
	o, err := c.Open(t.Context(), testFile)
	require.NoError(t, err)
	s := o.Stream(0, -1)
	_, err = s.Read(make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, o.Close())
	_, err = io.ReadAll(s)
	require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
	require.NoError(t, s.Close())
	_, err = o.ReadAt(make([]byte, 1), 0)
	require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)

	ctx, cancel := context.WithCancel(t.Context())
	o, err = c.Open(ctx, testFile)
	require.NoError(t, err)
	cancel()
	_, err = o.ReadAt(make([]byte, 1), 0)
	require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
}
