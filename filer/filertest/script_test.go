package filertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
)

// ops are all calls that change something, each on a state of its own.
var ops = map[filertest.Op]func(ctx context.Context, f *filertest.Filer) error{
	filertest.OpPut: func(ctx context.Context, f *filertest.Filer) error {
		_, err := f.Put(ctx, root.Join("new"), []byte("x"), filer.CreateOptions{})
		return err
	},
	filertest.OpCommit: func(ctx context.Context, f *filertest.Filer) error {
		u, err := f.Create(ctx, root.Join("new"), filer.CreateOptions{})
		if err != nil {
			return err
		}
		defer u.Abort(ctx)
		_, err = u.Commit(ctx)
		return err
	},
	filertest.OpUpdate: func(ctx context.Context, f *filertest.Filer) error {
		e, err := f.Stat(ctx, root.Join("f"))
		if err != nil {
			return err
		}
		_, err = f.Update(ctx, filer.Update{Base: e, Expect: filer.Expectation(e), Set: map[string][]byte{"k": []byte("v")}})
		return err
	},
	filertest.OpPatch: func(ctx context.Context, f *filertest.Filer) error {
		e, err := f.Stat(ctx, root.Join("f"))
		if err != nil {
			return err
		}
		return f.Patch(ctx, e, map[string][]byte{"k": []byte("v")}, "id")
	},
	filertest.OpMove: func(ctx context.Context, f *filertest.Filer) error {
		e, err := f.Stat(ctx, root.Join("f"))
		if err != nil {
			return err
		}
		return f.Move(ctx, filer.Move{From: e, To: root.Join("g"), ID: "id"})
	},
	filertest.OpDelete: func(ctx context.Context, f *filertest.Filer) error {
		return f.Delete(ctx, root.Join("f"), filer.Guard{})
	},
}

func TestModesOfFaults(t *testing.T) {
	for op, run := range ops {
		for _, c := range []struct {
			mode    filertest.Mode
			happens bool
			kind    fault.Kind
		}{
			{filertest.BeforeEffect, false, fault.Transient},
			{filertest.AfterEffect, true, fault.Unknown},
			{filertest.CrashBefore, false, fault.Halt},
			{filertest.CrashAfter, true, fault.Halt},
		} {
			t.Run(string(op)+"/"+c.mode.String(), func(t *testing.T) {
				f := filertest.New(filertest.Options{Count: filertest.CountWrites})
				f.PutFile(root.Join("f"), []byte("x"))
				before := f.Dump()
				f.Fail(filertest.Fault{Call: 1, Mode: c.mode})
				err := run(t.Context(), f)
				require.Equal(t, c.kind, fault.Of(err), "%v", err)
				require.Equal(t, 1, f.Fired())
				require.Equal(t, c.happens, len(before.Changes(f.Dump())) > 0)
				crash := c.kind == fault.Halt
				require.Equal(t, crash, errors.Is(err, filertest.ErrCrashed))
				require.Equal(t, !crash, errors.Is(err, filertest.ErrInjected))
				_, err = f.Stat(t.Context(), root)
				require.Equal(t, crash, err != nil, "a dead handle answers nothing, a living one goes on")
				_, err = f.Reopen().Stat(t.Context(), root)
				require.NoError(t, err)
			})
		}
	}
}

// Ambiguous calls happen or not as the seed says, and the error never tells.
func TestAmbiguousFaults(t *testing.T) {
	for op, run := range ops {
		seen := map[bool]bool{}
		for seed := range uint64(16) {
			outcome := func() bool {
				f := filertest.New(filertest.Options{Count: filertest.CountWrites, Seed: seed})
				f.PutFile(root.Join("f"), []byte("x"))
				before := f.Dump()
				f.Fail(filertest.Fault{Call: 1, Mode: filertest.Ambiguous})
				err := run(t.Context(), f)
				require.True(t, fault.Is(err, fault.Unknown), "%v", err)
				return len(before.Changes(f.Dump())) > 0
			}
			first := outcome()
			require.Equal(t, first, outcome(), "the same seed, the same outcome")
			seen[first] = true
		}
		require.Len(t, seen, 2, "%s: both outcomes over 16 seeds", op)
	}
}

func TestFaultKinds(t *testing.T) {
	f := filertest.New(filertest.Options{})
	cause := errors.New("disk on fire")
	f.Fail(filertest.Fault{Call: 2, Kind: fault.Corrupt, Err: cause})
	_, err := f.Stat(t.Context(), "/")
	require.NoError(t, err)
	_, err = f.Stat(t.Context(), "/")
	require.True(t, fault.Is(err, fault.Corrupt))
	require.ErrorIs(t, err, cause)
	_, err = f.Stat(t.Context(), "/")
	require.NoError(t, err, "a fault fires once")
}

func TestCallNumbers(t *testing.T) {
	run := func(f *filertest.Filer) {
		ctx := t.Context()
		f.PutFile(root.Join("other"), nil)
		u, err := f.Create(ctx, root.Join("f"), filer.CreateOptions{})
		require.NoError(t, err)
		_, err = u.Write(make([]byte, 2500))
		require.NoError(t, err)
		_, err = u.Commit(ctx)
		require.NoError(t, err)
		for _, err := range f.List(ctx, root, filer.ListOptions{}) {
			require.NoError(t, err)
		}
		_, _, err = filer.ReadAll(ctx, f, root.Join("f"), 5000)
		require.NoError(t, err)
		require.NoError(t, f.Delete(ctx, root.Join("f"), filer.Guard{}))
	}
	all := filertest.New(filertest.Options{ChunkSize: 1000, PageSize: 1})
	run(all)
	p := root.Join("f")
	require.Equal(t, []filertest.Call{
		{N: 1, Op: filertest.OpCreate, Path: p},
		{N: 2, Op: filertest.OpChunk, Path: p},
		{N: 3, Op: filertest.OpChunk, Path: p, Part: 1},
		{N: 4, Op: filertest.OpChunk, Path: p, Part: 2},
		{N: 5, Op: filertest.OpCommit, Path: p},
		{N: 6, Op: filertest.OpList, Path: root},
		{N: 7, Op: filertest.OpList, Path: root, Part: 1},
		{N: 8, Op: filertest.OpList, Path: root, Part: 2},
		{N: 9, Op: filertest.OpOpen, Path: p},
		{N: 10, Op: filertest.OpRead, Path: p},
		{N: 11, Op: filertest.OpRead, Path: p, Part: 1},
		{N: 12, Op: filertest.OpRead, Path: p, Part: 2},
		{N: 13, Op: filertest.OpDelete, Path: p},
	}, all.Calls())
	require.Equal(t, 13, all.Count())

	writes := filertest.New(filertest.Options{ChunkSize: 1000, PageSize: 1, Count: filertest.CountWrites})
	run(writes)
	require.Equal(t, 5, writes.Count())
	require.Len(t, writes.Calls(), 13, "the log has all of them")
	require.Equal(t, 4, writes.Calls()[4].N)
}

func TestReadsFail(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{ChunkSize: 100_000, PageSize: 1})
	f.PutFile(root.Join("f"), make([]byte, 1<<19))
	f.PutFile(root.Join("g"), nil)
	f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Part == 1 && !c.Op.Writes() {
			return &filertest.Fault{Mode: filertest.AfterEffect}
		}
		return nil
	})
	n := 0
	for _, err := range f.List(ctx, root, filer.ListOptions{}) {
		if n++; n == 2 {
			require.True(t, fault.Is(err, fault.Transient), "the second page fails")
		}
	}
	require.Equal(t, 2, n)
	_, _, err := filer.ReadAll(ctx, f, root.Join("f"), 1<<20)
	require.True(t, fault.Is(err, fault.Transient), "%v", err)
	f.OnCall(nil)
	_, _, err = filer.ReadAll(ctx, f, root.Join("f"), 1<<20)
	require.NoError(t, err)
}

func TestUploadsFail(t *testing.T) {
	ctx := t.Context()
	content := make([]byte, 2500)
	for call := 2; call <= 5; call++ {
		for _, mode := range []filertest.Mode{filertest.BeforeEffect, filertest.AfterEffect} {
			f := filertest.New(filertest.Options{ChunkSize: 1000})
			f.Fail(filertest.Fault{Call: call, Mode: mode})
			u, err := f.Create(ctx, root.Join("f"), filer.CreateOptions{})
			require.NoError(t, err)
			_, _ = u.Write(content)
			_, err = u.Commit(ctx)
			require.Error(t, err)
			u.Abort(ctx)
			if call == 5 && mode == filertest.AfterEffect {
				require.True(t, fault.Is(err, fault.Unknown), "%v", err)
				require.Equal(t, content, f.Content(root.Join("f")), "an abort after an open outcome takes no data away")
				continue
			}
			require.True(t, fault.Is(err, fault.Transient), "%v", err)
			require.False(t, f.Exists(root.Join("f")))
			require.Empty(t, f.OrphanChunks(), "an abort frees the chunks")
		}
	}
	f := filertest.New(filertest.Options{})
	f.Fail(filertest.Fault{Call: 2})
	u, err := f.Create(ctx, root.Join("f"), filer.CreateOptions{})
	require.NoError(t, err)
	_, err = u.Commit(ctx)
	require.True(t, fault.Is(err, fault.Transient))
	_, err = u.Commit(ctx)
	require.NoError(t, err, "nothing happened, so it may be tried again")
}

func TestHooks(t *testing.T) {
	ctx := t.Context()
	f := filertest.New(filertest.Options{})
	e := f.PutFile(root.Join("f"), []byte("x"))
	f.Before(2, func(c filertest.Call) {
		require.Equal(t, filertest.OpUpdate, c.Op)
		f.Reopen().SetAttributes(c.Path, map[string][]byte{"peer": []byte("1")})
		f.Virtual().Advance(time.Hour)
	})
	var seen bool
	f.After(2, func(filertest.Call) { seen = true })
	_, err := f.Stat(ctx, e.Path)
	require.NoError(t, err)
	_, err = f.Update(ctx, filer.Update{Base: e, Expect: filer.Expectation(e, "peer"), Set: map[string][]byte{"k": []byte("v")}})
	require.ErrorIs(t, err, filer.ErrPrecondition, "the peer was first")
	require.True(t, seen)

	release := make(chan struct{})
	f.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpDelete {
			<-release
		}
		return nil
	})
	done := make(chan error)
	go func() { done <- f.Delete(ctx, e.Path, filer.Guard{}) }()
	_, err = f.Stat(ctx, e.Path)
	require.NoError(t, err, "a blocked call holds no lock")
	close(release)
	require.NoError(t, <-done)
	require.False(t, f.Exists(e.Path))
}
