package filertest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Env is what the suite runs on.
type Env struct {
	Filer filer.Filer
	// Root is a fresh directory inside a bucket. It need not exist.
	Root filer.Path
	// Other is a directory in another bucket; tests of moves across buckets are
	// skipped without it.
	Other filer.Path
	// Skew is how far the filer's clock is ahead of the client's.
	Skew time.Duration
	// Twin makes a second entry at `to` with the chunks of e, as a move that was
	// cut short leaves it. Without it that part of Unlink is not tested.
	Twin func(t *testing.T, e *filer.Entry, to filer.Path)
	// SkipSubscribe leaves out the change feed.
	SkipSubscribe bool
}

// Suite runs every promise of package filer against what open returns, each in
// an environment of its own. It assumes nothing about clocks but that they do
// not stand still for ever, and looks at sentinels and kinds, never at texts.
func Suite(t *testing.T, open func(t *testing.T) Env) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"PutAndRead", testPutAndRead},
		{"RangedReads", testRangedReads},
		{"Streams", testStreams},
		{"ReadAll", testReadAll},
		{"OpenRefuses", testOpenRefuses},
		{"CreateIsExclusive", testCreateIsExclusive},
		{"CreateRace", testCreateRace},
		{"Replace", testReplace},
		{"UploadIsInvisible", testUploadIsInvisible},
		{"UploadAbort", testUploadAbort},
		{"Attributes", testAttributes},
		{"Stat", testStat},
		{"Identity", testIdentity},
		{"List", testList},
		{"ListNames", testListNames},
		{"ListPages", testListPages},
		{"WalkTree", testWalkTree},
		{"Update", testUpdate},
		{"UpdateContent", testUpdateContent},
		{"UpdateData", testUpdateData},
		{"UpdateDirectory", testUpdateDirectory},
		{"UpdateRace", testUpdateRace},
		{"Patch", testPatch},
		{"PatchReplay", testPatchReplay},
		{"Move", testMove},
		{"MoveReplay", testMoveReplay},
		{"MoveRefuses", testMoveRefuses},
		{"MoveRace", testMoveRace},
		{"Delete", testDelete},
		{"DeleteGuards", testDeleteGuards},
		{"DeleteDirectory", testDeleteDirectory},
		{"Unlink", testUnlink},
		{"History", testHistory},
		{"LargeAttributes", testLargeAttributes},
		{"Subscribe", testSubscribe},
		{"SubscribeLive", testSubscribeLive},
		{"Clock", testClock},
		{"Probe", testProbe},
		{"Canceled", testCanceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := open(t)
			c.run(t, &suite{T: t, Env: env, ctx: t.Context()})
		})
	}
}

// suite is one test's environment with shorthands.
type suite struct {
	*testing.T
	Env
	ctx context.Context //nolint:containedctx // the test's own
}

func (s *suite) path(name string) filer.Path { return filer.Path(s.Root.String() + "/" + name) }

// put creates a file in one call.
func (s *suite) put(name string, content []byte) *filer.Entry {
	s.Helper()
	e, err := s.Filer.Put(s.ctx, s.path(name), content, filer.CreateOptions{})
	require.NoError(s, err)
	return e
}

// stream creates a file through an upload.
func (s *suite) stream(name string, content []byte, o filer.CreateOptions) *filer.Entry {
	s.Helper()
	u, err := s.Filer.Create(s.ctx, s.path(name), o)
	require.NoError(s, err)
	for at := 0; at < len(content); at += 1_000_003 {
		n, err := u.Write(content[at:min(at+1_000_003, len(content))])
		require.NoError(s, err)
		require.Positive(s, n)
	}
	e, err := u.Commit(s.ctx)
	require.NoError(s, err)
	u.Abort(s.ctx)
	return e
}

func (s *suite) stat(name string) *filer.Entry {
	s.Helper()
	e, err := s.Filer.Stat(s.ctx, s.path(name))
	require.NoError(s, err)
	return e
}

// content reads a whole file.
func (s *suite) content(name string) []byte {
	s.Helper()
	b, _, err := filer.ReadAll(s.ctx, s.Filer, s.path(name), 1<<30)
	require.NoError(s, err)
	return b
}

// absent requires that there is nothing at name.
func (s *suite) absent(name string) {
	s.Helper()
	_, err := s.Filer.Stat(s.ctx, s.path(name))
	s.is(err, fault.Stale, filer.ErrNotFound)
}

// is requires an error of a kind with one of the sentinels.
func (s *suite) is(err error, kind fault.Kind, sentinels ...error) {
	s.Helper()
	require.Error(s, err)
	require.Equal(s, kind, fault.Of(err), "kind of %v", err)
	for _, want := range sentinels {
		if isAny(err, sentinels) {
			return
		}
		require.ErrorIs(s, err, want)
	}
}

func (s *suite) names(o filer.ListOptions) []string {
	s.Helper()
	var out []string
	for e, err := range s.Filer.List(s.ctx, s.Root, o) {
		require.NoError(s, err)
		require.Equal(s, s.path(e.Path.Name()), e.Path)
		out = append(out, e.Path.Name())
	}
	return out
}

// seeded returns a source of chance whose seed a failure names.
func (s *suite) seeded() *rand.Rand {
	seed := rand.Uint64()
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// noise is incompressible content that differs by seed.
func noise(seed uint64, size int) []byte {
	b := make([]byte, size)
	src := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 7})
	_, _ = src.Read(b)
	return b
}

// text is compressible content.
func text(size int) []byte {
	return bytes.Repeat([]byte("all work and no play. "), size/22+1)[:size]
}

func same(t testing.TB, want, got []byte) {
	t.Helper()
	if !bytes.Equal(want, got) {
		at := 0
		for at < min(len(want), len(got)) && want[at] == got[at] {
			at++
		}
		require.FailNow(t, "content differs", "%d bytes, want %d; first difference at %d", len(got), len(want), at)
	}
}
