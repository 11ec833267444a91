package weed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/cluster"
)

// TestFilerStopStartMidSuite kills the filer again and again while every kind
// of call is running. Calls that may be repeated survive; the others end with
// an answer or with Unknown or Transient, and what they answered is true.
func TestFilerStopStartMidSuite(t *testing.T) {
	c := startCluster(t, cluster.Options{Split: true})
	f := dial(t, c, filer.Config{ChunkBytes: 256 << 10, RetryFor: 2 * time.Minute})
	s := &storm{t: t, f: f, dir: filer.BucketPath("lake").Join("storm")}
	s.prepare()

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	run := func(name string, step func(ctx context.Context, n int) error) {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := step(t.Context(), n); err != nil {
					t.Errorf("%s, step %d: %v (%s)", name, n, err, fault.Of(err))
					return
				}
				s.steps.Add(1)
			}
		})
	}
	run("read", s.read)
	run("list", s.list)
	run("create", s.create)
	run("upload", s.upload)
	run("update", s.update)
	run("patch", s.patch)
	run("move", s.move)
	run("delete", s.remove)
	var seen []string
	watch, unwatch := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- s.watch(watch, &seen) }()

	const rounds = 4
	for range rounds {
		before := s.steps.Load()
		require.Eventually(t, func() bool { return s.steps.Load() > before+200 || t.Failed() }, time.Minute, 50*time.Millisecond)
		require.NoError(t, c.KillFiler())
		select {
		case <-time.After(time.Second):
		case <-t.Context().Done():
		}
		sctx, done := context.WithTimeout(t.Context(), time.Minute)
		err := c.StartFiler(sctx)
		done()
		require.NoError(t, err)
		s.starts.Add(1)
	}
	before := s.steps.Load()
	require.Eventually(t, func() bool { return s.steps.Load() > before+200 || t.Failed() }, time.Minute, 50*time.Millisecond)
	cancel()
	wg.Wait()
	require.NoError(t, s.check())
	t.Logf("%d steps, %d outcomes unknown, %d calls refused while the filer was down", s.steps.Load(), s.unknown.Load(), s.transient.Load())

	// The feed shows the creations in order and once. A filer that is killed may
	// lose the changes that it has not yet written to its log, so only those
	// that were begun since the last start must all be there.
	covered := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.missing(seen)) == 0 }
	for deadline := time.Now().Add(time.Minute); !covered() && len(watched) == 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	s.mu.Lock()
	missing, shown := s.missing(seen), len(seen)
	s.mu.Unlock()
	require.Empty(t, missing, "the feed shows %d changes", shown)
	unwatch()
	if err := <-watched; err != nil {
		require.Equal(t, fault.Canceled, fault.Of(err), "%v", err)
	}
}

// storm is the state that the steps keep and check against the filer.
type storm struct {
	t         *testing.T
	f         *filer.Client
	dir       filer.Path
	big       []byte
	steps     atomic.Int64
	unknown   atomic.Int64
	transient atomic.Int64

	starts  atomic.Int64 // of the filer since the steps began
	mu      sync.Mutex
	created []creation // in order, by the only creator
	// counters hold the successes and the unknown outcomes of additions.
	updates, patches counter
	moved            int
	names            []string
}

// creation is a file that was created by a call begun after so many starts.
type creation struct {
	path   string
	starts int64
}

type counter struct{ sure, open int }

func (s *storm) prepare() {
	ctx := s.t.Context()
	s.big = bytes.Repeat([]byte("0123456789abcdef"), 128<<10/16*9)
	u, err := s.f.Create(ctx, s.dir.Join("big"), filer.CreateOptions{})
	require.NoError(s.t, err)
	_, err = u.Write(s.big)
	require.NoError(s.t, err)
	_, err = u.Commit(ctx)
	require.NoError(s.t, err)
	for i := range 1500 {
		n := fmt.Sprintf("n%04d", i)
		_, err := s.f.Put(ctx, s.dir.Join("list", n), []byte(n), filer.CreateOptions{})
		require.NoError(s.t, err)
		s.names = append(s.names, n)
	}
	for _, n := range []string{"updated", "patched"} {
		_, err := s.f.Put(ctx, s.dir.Join(n), nil, filer.CreateOptions{Extended: map[string][]byte{"n": []byte("0")}})
		require.NoError(s.t, err)
	}
	u, err = s.f.Create(ctx, s.dir.Join("moved", "0"), filer.CreateOptions{})
	require.NoError(s.t, err)
	_, err = u.Write(s.big)
	require.NoError(s.t, err)
	_, err = u.Commit(ctx)
	require.NoError(s.t, err)
}

// left lets the outcomes pass that a change may have while the filer is down,
// and counts them.
func (s *storm) left(err error) (open bool, fatal error) {
	switch fault.Of(err) {
	case fault.None:
		return false, nil
	case fault.Unknown:
		s.unknown.Add(1)
		return true, nil
	case fault.Transient:
		s.transient.Add(1)
		return false, nil
	}
	return false, err
}

func (s *storm) read(ctx context.Context, _ int) error {
	b, _, err := filer.ReadAll(ctx, s.f, s.dir.Join("big"), 1<<30)
	if err == nil && !bytes.Equal(b, s.big) {
		return errors.New("read other bytes than were written")
	}
	return err
}

func (s *storm) list(ctx context.Context, _ int) error {
	i := 0
	for e, err := range s.f.List(ctx, s.dir.Join("list"), filer.ListOptions{}) {
		if err != nil {
			return err
		}
		if i >= len(s.names) || e.Path.Name() != s.names[i] {
			return fmt.Errorf("name %d of the list is %s", i, e.Path.Name())
		}
		i++
	}
	if i != len(s.names) {
		return fmt.Errorf("listed %d of %d", i, len(s.names))
	}
	return nil
}

func (s *storm) create(ctx context.Context, n int) error {
	name := fmt.Sprintf("c%06d", n)
	p := s.dir.Join("created", name)
	starts := s.starts.Load()
	_, err := s.f.Put(ctx, p, []byte(name), filer.CreateOptions{})
	sure := err == nil
	open, fatal := s.left(err)
	if fatal != nil {
		return fatal
	}
	b, _, err := filer.ReadAll(ctx, s.f, p, 1<<20)
	switch {
	case err == nil && string(b) != name:
		return fmt.Errorf("%s holds %q", p, b)
	case err == nil && !sure && !open:
		return fmt.Errorf("%s exists although it was refused", p)
	case err != nil && (sure || !filer.NotFound(err)):
		return err
	}
	if sure {
		s.mu.Lock()
		s.created = append(s.created, creation{p.String(), starts})
		s.mu.Unlock()
	}
	return nil
}

func (s *storm) upload(ctx context.Context, n int) error {
	p := s.dir.Join("uploaded", strconv.Itoa(n))
	u, err := s.f.Create(ctx, p, filer.CreateOptions{})
	if err != nil {
		return err
	}
	defer u.Abort(ctx)
	if _, err = u.Write(s.big); err != nil {
		return err // chunks may be sent again
	}
	_, err = u.Commit(ctx)
	sure := err == nil
	if _, fatal := s.left(err); fatal != nil {
		return fatal
	}
	b, _, err := filer.ReadAll(ctx, s.f, p, 1<<30)
	if err == nil && !bytes.Equal(b, s.big) {
		return fmt.Errorf("%s holds other bytes than were written", p)
	}
	if err != nil && (sure || !filer.NotFound(err)) {
		return err
	}
	return nil
}

func number(e *filer.Entry) (int, error) { return strconv.Atoi(string(e.Extended["n"])) }

func (s *storm) update(ctx context.Context, _ int) error {
	return s.add(ctx, "updated", &s.updates, func(e *filer.Entry, set map[string][]byte) error {
		_, err := s.f.Update(ctx, filer.Update{Base: e, Expect: filer.Expectation(e), Set: set})
		return err
	})
}

func (s *storm) patch(ctx context.Context, n int) error {
	return s.add(ctx, "patched", &s.patches, func(e *filer.Entry, set map[string][]byte) error {
		return s.f.Patch(ctx, e, set, fmt.Sprintf("patch-%d", n))
	})
}

// add adds one to a counter in the filer that nobody else changes.
func (s *storm) add(ctx context.Context, name string, c *counter, change func(*filer.Entry, map[string][]byte) error) error {
	e, err := s.f.Stat(ctx, s.dir.Join(name))
	if err != nil {
		return err
	}
	n, err := number(e)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if n < c.sure || n > c.sure+c.open {
		s.mu.Unlock()
		return fmt.Errorf("%s is %d after %d additions and %d of unknown outcome", name, n, c.sure, c.open)
	}
	s.mu.Unlock()
	err = change(e, map[string][]byte{"n": strconv.AppendInt(nil, int64(n)+1, 10)})
	open, fatal := s.left(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		c.sure++
	case open:
		c.open++
	}
	return fatal
}

func (s *storm) move(ctx context.Context, n int) error {
	from, to := s.dir.Join("moved", strconv.Itoa(s.moved)), s.dir.Join("moved", strconv.Itoa(s.moved+1))
	e, err := s.f.Stat(ctx, from)
	if err != nil {
		return err
	}
	err = s.f.Move(ctx, filer.Move{From: e, To: to, ID: fmt.Sprintf("move-%d", n)})
	open, fatal := s.left(err)
	if fatal != nil {
		return fatal
	}
	_, ferr := s.f.Stat(ctx, from)
	target, terr := s.f.Stat(ctx, to)
	switch {
	case err == nil && (!filer.NotFound(ferr) || terr != nil):
		return fmt.Errorf("moved, but at its source: %w, at its target: %w", ferr, terr)
	case ferr == nil && terr == nil && open:
		// Cut short between its mutations: what the caller then does.
		if target.Identity() != e.Identity() {
			return errors.New("the target is another file")
		}
		if err := s.f.Unlink(ctx, from, filer.Guard{Identity: e.Identity()}); err != nil {
			if _, fatal := s.left(err); fatal != nil {
				return fatal
			}
		}
	case ferr != nil && terr != nil:
		return fmt.Errorf("the file is at neither place: %w, %w", ferr, terr)
	}
	if terr == nil {
		s.moved++
		b, _, err := filer.ReadAll(ctx, s.f, to, 1<<30)
		if err != nil {
			return err
		}
		if !bytes.Equal(b, s.big) {
			return errors.New("the moved file holds other bytes")
		}
	}
	return nil
}

func (s *storm) remove(ctx context.Context, n int) error {
	p := s.dir.Join("removed", strconv.Itoa(n))
	_, err := s.f.Put(ctx, p, nil, filer.CreateOptions{})
	if open, fatal := s.left(err); fatal != nil || open || err != nil {
		return fatal
	}
	err = s.f.Delete(ctx, p, filer.Guard{})
	sure := err == nil
	if _, fatal := s.left(err); fatal != nil {
		return fatal
	}
	_, err = s.f.Stat(ctx, p)
	if err == nil && sure {
		return fmt.Errorf("%s is there although it was deleted", p)
	}
	if err != nil && !filer.NotFound(err) {
		return err
	}
	return nil
}

// check compares the counters at the end.
func (s *storm) check() error {
	for name, c := range map[string]counter{"updated": s.updates, "patched": s.patches} {
		e, err := s.f.Stat(s.t.Context(), s.dir.Join(name))
		if err != nil {
			return err
		}
		n, err := number(e)
		if err != nil {
			return err
		}
		if n < c.sure || n > c.sure+c.open {
			return fmt.Errorf("%s is %d after %d additions and %d of unknown outcome", name, n, c.sure, c.open)
		}
	}
	return nil
}

func (s *storm) watch(ctx context.Context, seen *[]string) error {
	for ev, err := range s.f.Subscribe(ctx, filer.SubscribeOptions{Prefix: s.dir.Join("created")}) {
		if err != nil {
			return err
		}
		if ev.Old == nil && !ev.New.IsDir {
			s.mu.Lock()
			*seen = append(*seen, ev.New.Path.String())
			s.mu.Unlock()
		}
	}
	return nil
}

// missing are the files whose creation was begun since the last start and that
// are not among those seen, which are in order.
func (s *storm) missing(seen []string) []creation {
	for n, p := range seen {
		if n > 0 && seen[n-1] >= p {
			s.t.Errorf("the feed shows %s behind %s", p, seen[n-1])
		}
	}
	last := s.starts.Load()
	var out []creation
	for _, c := range s.created {
		if _, ok := slices.BinarySearch(seen, c.path); c.starts == last && !ok {
			out = append(out, c)
		}
	}
	return out
}
