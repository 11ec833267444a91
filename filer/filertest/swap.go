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

// Move implements filer.Mover. The feed shows it as a creation and a removal.
func (f *Filer) Move(ctx context.Context, m filer.Move) error {
	from := m.From.Path
	planned, set := m.From.Identity(), copyMap(m.Set)
	return f.do(ctx, Call{Op: OpMove, Path: from, To: m.To}, func() error {
		doing := fmt.Sprintf("move %s to %s", from, m.To)
		if _, err := filer.ParsePath(string(m.To)); err != nil {
			return err
		}
		if m.From.IsDir {
			return fault.New(fault.Unsupported, doing+": it is a directory")
		}
		if from.Bucket() != m.To.Bucket() {
			return fault.New(fault.Unsupported, doing+": it lies in another bucket")
		}
		return f.s.transaction(from, m.ID, func() error {
			cur := f.s.find(from)
			if cur == nil {
				return missing(doing, from)
			}
			if cur.GetIsDirectory() || entry(from.Dir(), cur).Identity() != planned {
				return fault.Wrap(fault.Stale, doing, filer.ErrPrecondition)
			}
			if f.s.find(m.To) != nil {
				return fault.Wrap(fault.Stale, doing, filer.ErrExists)
			}
			next := share(cur)
			for k, v := range set {
				setAttr(next, k, v)
			}
			if err := f.s.put(m.To, next); err != nil {
				return err
			}
			f.s.drop(from, keepChunks)
			return nil
		})
	})
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
	switch {
	case e.IsDir:
		return fault.New(fault.Unsupported, doing+": it is a directory")
	case g.Identity != "" && g.Identity != e.Identity():
		return fault.Wrap(fault.Stale, doing+": not the file that was planned", filer.ErrPrecondition)
	case !g.NotModifiedAfter.IsZero() && e.Mtime.After(g.NotModifiedAfter):
		return fault.Wrap(fault.Stale, doing+": modified since", filer.ErrPrecondition)
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
