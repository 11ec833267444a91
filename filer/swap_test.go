package filer

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// TestChangesAreSentOnce: whatever the answer to a change that must not be
// repeated, it is sent once.
func TestChangesAreSentOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Unknown, codes.Internal, codes.DeadlineExceeded, codes.Aborted} {
		w := newWire(t)
		w.put(testFile, &filer_pb.Entry{Extended: map[string][]byte{"k": []byte("v")}})
		c := dialWire(t, Config{}, w)
		e, err := c.Stat(t.Context(), testFile)
		require.NoError(t, err)
		_, err = c.Probe(t.Context(), "/probe")
		require.NoError(t, err)
		counts := map[string]int{}
		for _, m := range []string{"CreateEntry", "UpdateEntry", "ObjectTransaction"} {
			counts[m] = w.count(m)
		}
		w.hook = func(m string) error {
			if counts[m] > 0 {
				return status.Error(code, "x")
			}
			return nil
		}
		_, err = c.Put(t.Context(), "/buckets/b/new", nil, CreateOptions{})
		verdict(t, err, fault.Unknown, nil)
		_, err = c.Update(t.Context(), Update{Base: e, Expect: Expectation(e)})
		verdict(t, err, fault.Unknown, nil)
		err = c.Delete(t.Context(), testFile, Guard{})
		verdict(t, err, fault.Unknown, nil)
		for m, n := range counts {
			require.Equal(t, n+1, w.count(m), "%s on %s", m, code)
		}
	}
}

// TestPatchIsSentAgain: with the id the same request is safe to repeat, and a
// lost answer is found out.
func TestPatchIsSentAgain(t *testing.T) {
	for name, forget := range map[string]bool{"remembered": false, "forgotten by a restarted filer": true} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.put(testFile, &filer_pb.Entry{Extended: map[string][]byte{"k": []byte("v")}})
			c := dialWire(t, Config{}, w)
			_, err := c.Probe(t.Context(), "/probe")
			require.NoError(t, err)
			e, err := c.Stat(t.Context(), testFile)
			require.NoError(t, err)
			var lost atomic.Bool
			w.lose = func(m string) bool {
				if m != "ObjectTransaction" || lost.Swap(true) {
					return false
				}
				if forget {
					w.mu.Lock()
					clear(w.replays)
					w.mu.Unlock()
				}
				return true
			}
			require.NoError(t, c.Patch(t.Context(), e, map[string][]byte{"k": nil, "n": []byte("1")}, "id"))
			require.Equal(t, map[string][]byte{"n": []byte("1")}, w.get(testFile).Extended)
		})
	}
}

// TestPatchOfUnknownOutcome: the answer is lost, forgotten, and the entry has
// moved on: nobody can tell.
func TestPatchOfUnknownOutcome(t *testing.T) {
	w := newWire(t)
	w.put(testFile, &filer_pb.Entry{Extended: map[string][]byte{"k": []byte("v")}})
	c := dialWire(t, Config{}, w)
	_, err := c.Probe(t.Context(), "/probe")
	require.NoError(t, err)
	e, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	var lost atomic.Bool
	w.lose = func(m string) bool {
		if m != "ObjectTransaction" || lost.Swap(true) {
			return false
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		clear(w.replays)
		w.set(testFile, &filer_pb.Entry{Extended: map[string][]byte{"k": []byte("of a peer")}})
		return true
	}
	err = c.Patch(t.Context(), e, map[string][]byte{"k": []byte("mine")}, "id")
	verdict(t, err, fault.Unknown, nil)
	require.Equal(t, "of a peer", string(w.get(testFile).Extended["k"]))
}

func TestMoveOutcomes(t *testing.T) {
	const to Path = "/buckets/b/trash/f"
	setup := func(t *testing.T) (*wire, *Client, Move) {
		w := newWire(t)
		w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(10))}, Extended: map[string][]byte{"k": []byte("v")}})
		c := dialWire(t, Config{}, w)
		_, err := c.Probe(t.Context(), "/probe")
		require.NoError(t, err)
		e, err := c.Stat(t.Context(), testFile)
		require.NoError(t, err)
		return w, c, Move{From: e, To: to, ID: "m", Set: map[string][]byte{"origin": []byte(testFile)}}
	}
	// losing loses the first answer of a transaction after do.
	losing := func(w *wire, do func()) {
		var lost atomic.Bool
		w.lose = func(m string) bool {
			if m != "ObjectTransaction" || lost.Swap(true) {
				return false
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			do()
			return true
		}
	}
	t.Run("answer lost and replayed", func(t *testing.T) {
		w, c, m := setup(t)
		losing(w, func() {})
		require.NoError(t, c.Move(t.Context(), m))
		require.Nil(t, w.get(testFile))
		require.Equal(t, "v", string(w.get(to).Extended["k"]))
		require.Empty(t, w.deleted)
	})
	t.Run("answer lost and forgotten", func(t *testing.T) {
		w, c, m := setup(t)
		losing(w, func() { clear(w.replays) })
		require.NoError(t, c.Move(t.Context(), m), "the target shows that it happened")
	})
	t.Run("cut short between its two mutations", func(t *testing.T) {
		w, c, m := setup(t)
		losing(w, func() { clear(w.replays); w.entries[testFile] = proto.CloneOf(m.From.PB) })
		err := c.Move(t.Context(), m)
		verdict(t, err, fault.Unknown, nil)
		require.NotNil(t, w.get(testFile))
		require.NotNil(t, w.get(to))
		require.NoError(t, c.Unlink(t.Context(), testFile, Guard{Identity: m.From.Identity()}))
		require.Empty(t, w.deleted, "the data stay for the other entry")
	})
	t.Run("source written again", func(t *testing.T) {
		w, c, m := setup(t)
		w.put(testFile, &filer_pb.Entry{Content: []byte("other")})
		verdict(t, c.Move(t.Context(), m), fault.Stale, ErrPrecondition)
		require.Nil(t, w.get(to))
	})
	t.Run("attributes changed since", func(t *testing.T) {
		w, c, m := setup(t)
		e := proto.CloneOf(m.From.PB)
		e.Extended["new"] = []byte("n")
		w.put(testFile, e)
		require.NoError(t, c.Move(t.Context(), m), "it still is the same file")
		require.Equal(t, "n", string(w.get(to).Extended["new"]))
	})
	for name, change := range map[string]func(w *wire, m *Move){
		"directory":        func(_ *wire, m *Move) { m.From.IsDir = true },
		"remote":           func(w *wire, m *Move) { m.From.PB.RemoteEntry = &filer_pb.RemoteEntry{} },
		"hard link":        func(w *wire, m *Move) { m.From.PB.HardLinkId = []byte{1} },
		"other bucket":     func(w *wire, m *Move) { m.To = "/buckets/c/f" },
		"onto the bucket":  func(w *wire, m *Move) { m.To = "/buckets/b" },
		"out of buckets":   func(w *wire, m *Move) { m.To = "/etc/f" },
		"below itself":     func(w *wire, m *Move) { m.To = m.From.Path.Join("x") },
		"not a clean path": func(w *wire, m *Move) { m.To = "/buckets/b/../c/f" },
		"now a hard link":  func(w *wire, m *Move) { e := proto.CloneOf(m.From.PB); e.HardLinkId = []byte{1}; w.put(testFile, e) },
		"now remote-backed": func(w *wire, m *Move) {
			e := proto.CloneOf(m.From.PB)
			e.RemoteEntry = &filer_pb.RemoteEntry{}
			w.put(testFile, e)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, m := setup(t)
			change(w, &m)
			verdict(t, c.Move(t.Context(), m), fault.Unsupported, nil)
			require.NotNil(t, w.get(testFile))
		})
	}
}

// TestF12OldFilers: one that ignores conditions is found out and not trusted
// with a change; one without transactions is moved and removed through with
// what it has.
func TestF12OldFilers(t *testing.T) {
	w := newWire(t)
	w.old = true
	w.put(testFile, &filer_pb.Entry{Content: []byte("x"), Extended: map[string][]byte{"k": []byte("v")}})
	c := dialWire(t, Config{}, w)
	caps, err := c.Probe(t.Context(), "/probe")
	require.NoError(t, err)
	require.Equal(t, Capabilities{}, caps)
	require.Len(t, w.entries, 1, "the scratch entry is gone")
	e, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	_, err = c.Update(t.Context(), Update{Base: e, Expect: Expectation(e)})
	verdict(t, err, fault.Unsupported, nil)
	verdict(t, c.Patch(t.Context(), e, nil, "id"), fault.Unsupported, nil)

	const to Path = "/buckets/b/to"
	require.NoError(t, c.Move(t.Context(), Move{From: e, To: to, ID: "m"}))
	require.Nil(t, w.get(testFile))
	require.NoError(t, c.Move(t.Context(), Move{From: e, To: to, ID: "m"}), "it has happened already")
	moved, err := c.Stat(t.Context(), to)
	require.NoError(t, err)
	w.put(testFile, &filer_pb.Entry{Content: []byte("newer")})
	verdict(t, c.Move(t.Context(), Move{From: moved, To: testFile, ID: "back"}), fault.Stale, ErrExists)
	verdict(t, c.Delete(t.Context(), to, Guard{NotModifiedAfter: time.Unix(0, 1)}), fault.Stale, ErrPrecondition)
	require.NoError(t, c.Delete(t.Context(), to, Guard{Identity: moved.Identity()}))
	require.Nil(t, w.get(to))
}

// TestDeleteHeldBack: the file is written again between the look and the
// deletion.
func TestDeleteHeldBack(t *testing.T) {
	for name, old := range map[string]bool{"transactions": false, "old filer": true} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.old = old
			w.put(testFile, &filer_pb.Entry{Content: []byte("x")})
			c := dialWire(t, Config{}, w)
			_, err := c.Probe(t.Context(), "/probe")
			require.NoError(t, err)
			w.hook = func(m string) error {
				if m == "ObjectTransaction" || m == "DeleteEntry" {
					w.put(testFile, &filer_pb.Entry{Content: []byte("y"), Attributes: &filer_pb.FuseAttributes{Mtime: 9}})
				}
				return nil
			}
			verdict(t, c.Delete(t.Context(), testFile, Guard{}), fault.Stale, ErrPrecondition)
			require.Equal(t, "y", string(w.get(testFile).Content))
		})
	}
	t.Run("remote", func(t *testing.T) {
		w := newWire(t)
		w.put(testFile, &filer_pb.Entry{RemoteEntry: &filer_pb.RemoteEntry{RemoteSize: 1}})
		c := dialWire(t, Config{}, w)
		verdict(t, c.Delete(t.Context(), testFile, Guard{}), fault.Unsupported, nil)
	})
}

// TestUpdateKeepsToTheDataItRead: attributes alone do not tell whether the data
// have changed, and writing the old chunks back would lose the new ones.
func TestUpdateKeepsToTheDataItRead(t *testing.T) {
	w := newWire(t)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(10))}, Extended: map[string][]byte{"k": []byte("v")}})
	c := dialWire(t, Config{}, w)
	e, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	now := w.stored(0, pattern(20))
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{now}, Extended: map[string][]byte{"k": []byte("v")}})
	for _, expect := range []map[string][]byte{nil, {}, Expectation(e, "x")} {
		_, err = c.Update(t.Context(), Update{Base: e, Expect: expect, Set: map[string][]byte{"k": []byte("w")}})
		verdict(t, err, fault.Stale, ErrPrecondition)
	}
	require.Equal(t, now.FileId, w.get(testFile).Chunks[0].FileId)
}

func TestProbeLeavesNothingBehind(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	for range 3 {
		caps, err := c.Probe(t.Context(), "/probe")
		require.NoError(t, err)
		require.Equal(t, Capabilities{ConditionalUpdate: true, Transactions: true}, caps)
	}
	require.Empty(t, w.entries)
	require.Equal(t, 1, w.count("CreateEntry"), "remembered")
}
