package filertest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// replayWindow is how long the filer remembers the outcome of a request id.
const replayWindow = 2 * time.Minute

// Update implements filer.Swapper. Beside what is expected it asserts that the
// data is the base's; with nothing to expect, the whole entry. A filer that does
// not know conditions ignores them and overwrites.
func (f *Filer) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	if u.Base == nil {
		return nil, fault.New(fault.Halt, "update without a base entry")
	}
	p := u.Base.Path
	base := proto.CloneOf(u.Base.PB)
	expect, set := copyMap(u.Expect), copyMap(u.Set)
	content := bytes.Clone(u.Content)
	var e *filer.Entry
	err := f.do(ctx, Call{Op: OpUpdate, Path: p}, func() error {
		s := f.s
		s.mu.Lock()
		defer s.mu.Unlock()
		cur := s.find(p)
		if cur == nil || p == "/" {
			return missing("update", p)
		}
		if s.opts.Capabilities.ConditionalUpdate {
			if err := expected(p, cur, base, expect); err != nil {
				return err
			}
		}
		for k, v := range set {
			setAttr(base, k, v)
		}
		if content != nil {
			s.setContent(base, content)
		}
		if err := s.put(p, base); err != nil {
			return err
		}
		e = entry(p.Dir(), base)
		return nil
	})
	return e, err
}

// expected compares what is there with what an update of base expects.
func expected(p filer.Path, cur, base *filer_pb.Entry, expect map[string][]byte) error {
	for k, want := range expect {
		if !bytes.Equal(cur.GetExtended()[k], want) {
			return fault.Wrap(fault.Stale, fmt.Sprintf("update %s: attribute %q", p, k), filer.ErrPrecondition)
		}
	}
	ids := func(pb *filer_pb.Entry) []string {
		return slices.Sorted(slices.Values(filer_pb.FileIdsString(pb.GetChunks())))
	}
	if !slices.Equal(ids(cur), ids(base)) || len(expect) == 0 && !proto.Equal(cur, base) {
		return fault.Wrap(fault.Stale, "update "+p.String(), filer.ErrPrecondition)
	}
	return nil
}

// setContent gives pb other content and a later time.
func (s *store) setContent(pb *filer_pb.Entry, content []byte) {
	if pb.Attributes == nil {
		pb.Attributes = &filer_pb.FuseAttributes{}
	}
	mtime := max(s.clk.Now().UnixNano(), mtimeNs(pb)+1)
	pb.Attributes.Mtime, pb.Attributes.MtimeNs = mtime/int64(time.Second), int32(mtime%int64(time.Second))
	pb.Attributes.FileSize, pb.Attributes.Md5 = uint64(len(content)), nil
	pb.Content, pb.Chunks = content, nil
}

// Patch implements filer.Swapper.
func (f *Filer) Patch(ctx context.Context, base *filer.Entry, set map[string][]byte, id string) error {
	p := base.Path
	want, set := proto.CloneOf(base.PB), copyMap(set)
	return f.do(ctx, Call{Op: OpPatch, Path: p}, func() error {
		return f.s.transaction(p, id, func() error {
			cur := f.s.find(p)
			if cur == nil || p == "/" || !proto.Equal(cur, want) {
				return fault.Wrap(fault.Stale, "patch "+p.String(), filer.ErrPrecondition)
			}
			next := share(cur)
			for k, v := range set {
				setAttr(next, k, v)
			}
			return f.s.put(p, next)
		})
	})
}

// Move implements filer.Mover. The feed shows it as a creation and a removal. A
// filer without transactions renames instead, with the same guards and without
// a memory of the request. Either way a move that finds its work done says so.
func (f *Filer) Move(ctx context.Context, m filer.Move) error {
	if m.From == nil {
		return fault.New(fault.Halt, "move without a source entry")
	}
	m.Set = copyMap(m.Set)
	from := m.From.Path
	return f.do(ctx, Call{Op: OpMove, Path: from, To: m.To}, func() error {
		doing := fmt.Sprintf("move %s to %s", from, m.To)
		if err := movable(m); err != nil {
			return fault.In(doing, err)
		}
		if f.s.opts.Capabilities.Transactions {
			return fault.In(doing, f.s.transaction(from, m.ID, func() error { return f.s.move(m) }))
		}
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		return fault.In(doing, f.s.move(m))
	})
}

// movable checks what can be known without looking.
func movable(m filer.Move) error {
	if _, err := filer.ParsePath(string(m.To)); err != nil {
		return err
	}
	switch from := m.From.Path; {
	case from.Bucket() == "" || from.Bucket() != m.To.Bucket() || m.To == filer.BucketPath(m.To.Bucket()):
		return fault.New(fault.Unsupported, "files move only within their bucket")
	case m.To.Within(from) || from.Within(m.To):
		return fault.New(fault.Unsupported, "one path lies within the other")
	}
	return plain(m.From)
}

// plain refuses what is neither moved nor removed.
func plain(e *filer.Entry) error {
	switch {
	case e.IsDir:
		return fault.New(fault.Unsupported, "it is a directory")
	case e.RemoteBacked():
		return fault.New(fault.Unsupported, "it is backed by a remote store")
	case len(e.PB.GetHardLinkId()) > 0:
		return fault.New(fault.Unsupported, "it is a hard link")
	}
	return nil
}

func (s *store) move(m filer.Move) error {
	from := m.From.Path
	cur, target := s.find(from), s.find(m.To)
	if cur == nil {
		if target != nil && moved(m, entry(m.To.Dir(), target)) {
			return nil
		}
		return missing("look up", from)
	}
	e := entry(from.Dir(), cur)
	if e.Identity() != m.From.Identity() || e.IsDir {
		return fault.Wrap(fault.Stale, "the source was written again", filer.ErrPrecondition)
	}
	if err := plain(e); err != nil {
		return err
	}
	if target != nil {
		return fault.Wrap(fault.Stale, "the target is taken", filer.ErrExists)
	}
	next := share(cur)
	for k, v := range m.Set {
		setAttr(next, k, v)
	}
	if err := s.put(m.To, next); err != nil {
		return err
	}
	s.drop(from, keepChunks)
	return nil
}

// moved reports whether target is what the move makes of its source.
func moved(m filer.Move, target *filer.Entry) bool {
	want := share(m.From.PB)
	for k, v := range m.Set {
		setAttr(want, k, v)
	}
	return !target.IsDir && target.Identity() == m.From.Identity() && maps.EqualFunc(want.Extended, target.Extended, bytes.Equal)
}

// transaction runs apply unless the answer for id at p is remembered. Refusals
// are remembered too, as the filer does it.
func (s *store) transaction(p filer.Path, id string, apply func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opts.Capabilities.Transactions {
		return fault.New(fault.Unsupported, fmt.Sprintf("transaction on %s: the filer has none", p))
	}
	if id == "" {
		return fault.New(fault.Halt, fmt.Sprintf("transaction on %s: no request id", p))
	}
	k := id + "\x00" + string(p)
	if r, ok := s.replays.get(k); ok && !s.clk.Now().After(r.expires) {
		return r.err
	}
	err := apply()
	s.replays.set(k, replay{err: err, expires: s.clk.Now().Add(replayWindow)})
	return err
}

// Delete implements filer.Deleter.
func (f *Filer) Delete(ctx context.Context, p filer.Path, g filer.Guard) error {
	return f.do(ctx, Call{Op: OpDelete, Path: p}, func() error { return f.s.remove("delete", p, g, freeChunks) })
}

// Unlink implements filer.Deleter.
func (f *Filer) Unlink(ctx context.Context, p filer.Path, g filer.Guard) error {
	return f.do(ctx, Call{Op: OpUnlink, Path: p}, func() error { return f.s.remove("unlink", p, g, keepChunks) })
}

func (s *store) remove(doing string, p filer.Path, g filer.Guard, fate chunkFate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	doing += " " + p.String()
	cur := s.find(p)
	if cur == nil {
		return missing(doing, p)
	}
	e := entry(p.Dir(), cur)
	if err := plain(e); err != nil {
		return fault.In(doing, err)
	}
	switch {
	case g.Identity != "" && g.Identity != e.Identity():
		return fault.Wrap(fault.Stale, doing+": not the file that was planned", filer.ErrPrecondition)
	case !g.NotModifiedAfter.IsZero() && (e.Newest.IsZero() || e.Newest.After(g.NotModifiedAfter)):
		return fault.Wrap(fault.Stale, doing+": modified since", filer.ErrPrecondition)
	case !s.opts.Capabilities.Transactions && e.Mtime.IsZero():
		return fault.New(fault.Unsupported, doing+": it has no time to guard it by")
	}
	s.drop(p, fate)
	return nil
}

// Probe implements filer.Filer.
func (f *Filer) Probe(ctx context.Context, dir filer.Path) (filer.Capabilities, error) {
	var c filer.Capabilities
	err := f.do(ctx, Call{Op: OpProbe, Path: dir}, func() error {
		c = *f.s.opts.Capabilities
		return nil
	})
	return c, err
}

func copyMap(m map[string][]byte) map[string][]byte {
	out := maps.Clone(m)
	for k, v := range out {
		out[k] = bytes.Clone(v)
	}
	return out
}
