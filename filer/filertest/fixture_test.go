package filertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
)

func TestUnreadableFiles(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{})
	f.PutFile(root.Join("sse"), []byte("secret"))
	f.MarkEncrypted(root.Join("sse"), filer_pb.SSEType_SSE_C)
	_, err := f.Open(ctx, root.Join("sse"))
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	e, err := f.Stat(ctx, root.Join("sse"))
	require.NoError(t, err)
	require.Equal(t, "SSE_C", e.Encrypted())

	f.PutFile(root.Join("lost"), make([]byte, 1<<20))
	f.LoseChunks(root.Join("lost"))
	o, err := f.Open(ctx, root.Join("lost"))
	require.NoError(t, err)
	_, err = o.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, filer.ErrNotFound)

	f.SetEntry(root, &filer_pb.Entry{Name: "foreign", Chunks: []*filer_pb.FileChunk{{FileId: "7,1234", Size: 10}}})
	_, _, err = filer.ReadAll(ctx, f, root.Join("foreign"), 100)
	require.ErrorIs(t, err, filer.ErrNotFound)
}

func TestRemoteFiles(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{ChunkSize: 10})
	want := []byte("what the remote store has")
	e := f.PutRemote(root.Join("r"), 0, want)
	require.True(t, e.RemoteOnly())
	got, read, err := filer.ReadAll(ctx, f, e.Path, 100)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, read.RemoteBacked())
	require.False(t, read.RemoteOnly(), "cached by the first open")
	require.True(t, fault.Is(f.Delete(ctx, e.Path, filer.Guard{}), fault.Unsupported))
	require.True(t, fault.Is(f.Move(ctx, filer.Move{From: read, To: root.Join("m"), ID: "id"}), fault.Unsupported))
	f.PutRemote(root.Join("gone"), 1000, nil)
	_, err = f.Open(ctx, root.Join("gone"))
	require.True(t, fault.Is(err, fault.Transient), "%v", err)
}

// F109: entries without times, with only one, and with a newer chunk.
func TestF109EntryTimes(t *testing.T) {
	f := filertest.New(filertest.Options{})
	p := root.Join("f")
	f.PutFile(p, make([]byte, 1<<20))
	day := 24 * time.Hour
	for _, c := range []struct {
		times  filertest.Times
		newest time.Time
	}{
		{filertest.Times{}, time.Time{}},
		{filertest.Times{Crtime: filertest.Epoch}, filertest.Epoch},
		{filertest.Times{Mtime: filertest.Epoch.Add(time.Nanosecond)}, filertest.Epoch.Add(1)},
		{filertest.Times{Mtime: filertest.Epoch, Chunks: filertest.Epoch.Add(day)}, filertest.Epoch.Add(day)},
	} {
		f.SetTimes(p, c.times)
		e, err := f.Stat(t.Context(), p)
		require.NoError(t, err)
		require.True(t, c.newest.Equal(e.Newest), "%+v: %v", c.times, e.Newest)
		require.True(t, c.times.Mtime.Equal(e.Mtime))
		if c.newest.IsZero() {
			guard := filer.Guard{NotModifiedAfter: filertest.Epoch.Add(day)}
			require.ErrorIs(t, f.Delete(t.Context(), p, guard), filer.ErrPrecondition, "no time is as good as now")
		}
	}
}

func TestVersionedObjects(t *testing.T) {
	f := filertest.New(filertest.Options{})
	dir := f.PutVersions(root.Join("data/x.parquet"), []byte("one"), []byte("second"))
	require.Equal(t, root.Join("data/x.parquet.versions"), dir.Path)
	require.True(t, dir.Versions())
	name := string(dir.Extended["Seaweed-X-Amz-Latest-Version-File-Name"])
	require.Equal(t, []byte("second"), f.Content(dir.Path.Join(name)))
	require.Len(t, f.Files(dir.Path), 2)
	require.False(t, f.Exists(root.Join("data/x.parquet")))
	_, err := f.Open(t.Context(), root.Join("data/x.parquet"))
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
}

// Later chunks cover earlier ones, holes are zero.
func TestOverlappingChunks(t *testing.T) {
	f := filertest.New(filertest.Options{ChunkSize: 100_000})
	a := f.PutFile(root.Join("a"), noiseOf("a", 300_000))
	b := f.PutFile(root.Join("b"), noiseOf("b", 300_000))
	early, late := a.PB.Chunks[0], b.PB.Chunks[1]
	late.Offset, late.ModifiedTsNs = 2, early.ModifiedTsNs+1
	f.SetEntry(root, &filer_pb.Entry{
		Name: "mixed", Chunks: []*filer_pb.FileChunk{late, early}, Attributes: &filer_pb.FuseAttributes{FileSize: 100_004},
	})
	require.Equal(t, "aa"+strings.Repeat("b", 100_000)+"\x00\x00", string(f.Content(root.Join("mixed"))))
}

func noiseOf(s string, n int) []byte { return []byte(strings.Repeat(s, n)) }

// What nothing refers to any more is freed, and only that.
func TestChunksAreFreed(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{ChunkSize: 100_000})
	p := root.Join("f")
	f.PutFile(p, make([]byte, 300_000))
	e := f.PutFile(p, make([]byte, 400_000))
	require.Empty(t, f.OrphanChunks(), "replaced")
	_, err := f.Update(ctx, filer.Update{Base: e, Content: []byte("inline now")})
	require.NoError(t, err)
	require.Empty(t, f.OrphanChunks(), "content replaced")
	e = f.PutFile(p, make([]byte, 300_000))
	require.NoError(t, f.Unlink(ctx, p, filer.Guard{Identity: e.Identity()}))
	require.Len(t, f.OrphanChunks(), 3, "unlinked: the data stays")
	f.SetEntry(root, e.PB)
	require.NoError(t, f.Delete(ctx, p, filer.Guard{}))
	require.Empty(t, f.OrphanChunks(), "deleted")
}

func TestFileBelowFile(t *testing.T) {
	f := filertest.New(filertest.Options{})
	f.PutFile(root.Join("f"), []byte("x"))
	f.PutFile(root.Join("f/below"), nil)
	e, err := f.Stat(t.Context(), root.Join("f"))
	require.NoError(t, err)
	require.True(t, e.IsDir, "S3's flat names make a file a directory")
	_, err = f.Put(t.Context(), root.Join(strings.Repeat("n", 256)), nil, filer.CreateOptions{})
	require.True(t, fault.Is(err, fault.Unsupported))
	_, err = f.Stat(t.Context(), "/buckets/../etc")
	require.True(t, fault.Is(err, fault.Unsupported))
	_, err = f.Stat(t.Context(), "/")
	require.NoError(t, err)
}

func TestRenameInTheFeed(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{})
	f.PutFile(root.Join("d/a"), []byte("a"))
	f.PutFile(root.Join("d/s/b"), []byte("b"))
	since, err := f.Clock(ctx)
	require.NoError(t, err)
	f.PutFile(root.Join("e/old"), nil)
	f.Rename(root.Join("d"), root.Join("e"))
	require.Equal(t, []filer.Path{root.Join("e/a"), root.Join("e/s/b")}, f.Files(root))
	require.Equal(t, []byte("b"), f.Content(root.Join("e/s/b")))
	require.Empty(t, f.OrphanChunks())
	until, err := f.Clock(ctx)
	require.NoError(t, err)
	renames := map[filer.Path]filer.Path{}
	for ev, err := range f.Subscribe(ctx, filer.SubscribeOptions{Prefix: "/", Since: since, Until: until}) {
		require.NoError(t, err)
		if ev.Old != nil && ev.New != nil && ev.Old.Path != ev.New.Path {
			renames[ev.Old.Path] = ev.New.Path
		}
	}
	require.Equal(t, map[filer.Path]filer.Path{
		root.Join("d"): root.Join("e"), root.Join("d/a"): root.Join("e/a"), root.Join("d/s"): root.Join("e/s"), root.Join("d/s/b"): root.Join("e/s/b"),
	}, renames)
}

func TestListings(t *testing.T) {
	f := filertest.New(filertest.Options{})
	f.Mkdir("/etc/seaice", nil)
	f.PutFile("/buckets/b/keep", []byte("1"))
	f.PutFile("/buckets/b/swap", []byte("1"))
	f.Mkdir("/buckets/b/rec", map[string][]byte{"m": []byte("1")})
	before := f.Dump()
	require.Empty(t, before.Changes(f.Dump()))
	f.PutFile("/buckets/b/swap", []byte("1"))
	f.SetAttributes("/buckets/b/rec", map[string][]byte{"m": []byte("2")})
	f.PutFile("/etc/seaice/journal/x", nil)
	f.RemoveAll("/buckets/b/keep")
	var paths []string
	for _, c := range before.Changes(f.Dump(), "/etc/seaice") {
		paths = append(paths, c[:strings.IndexByte(c, ':')])
	}
	require.Equal(t, []string{"/buckets/b/keep", "/buckets/b/rec", "/buckets/b/swap"}, paths)
}
