package filer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

func TestFilerAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"h:8888": "h:18888", "h:8888.18888": "h:18888", "h:8888.7": "h:7", "10.0.0.1:1": "10.0.0.1:10001", "[::1]:8888": "[::1]:18888", "h:55535": "h:65535",
	} {
		got, err := grpcAddress(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "h", ":8888", "h:", "h:0", "h:x", "h:1.x", "h:1.", "h:1.0", "h:65536", "h:55536", "h:1.2.3", "http://h:8888", "h:8888/x", "h:-1", "h:1.70000"} {
		_, err := grpcAddress(in)
		require.Equal(t, fault.Unsupported, fault.Of(err), in)
		require.ErrorContains(t, err, "filer address")
	}
}

func TestSecurityConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(t.TempDir())
	require.Empty(t, findSecurity())
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
		return p
	}
	home := write(".seaweedfs/security.toml", "[jwt.signing.read]\nkey = \"of home\"\n")
	require.Equal(t, home, findSecurity())
	s, err := loadSecurity("")
	require.NoError(t, err)
	require.Equal(t, "of home", string(s.readKey))
	require.NoError(t, os.WriteFile("security.toml", []byte("[jwt.signing]\nkey = \"w\"\n[jwt.signing.read]\nkey = \"of cwd\"\n"), 0o600))
	s, err = loadSecurity("")
	require.NoError(t, err)
	require.Equal(t, "of cwd", string(s.readKey))
	require.Equal(t, "w", string(s.writeKey))
	t.Setenv("WEED_JWT_SIGNING_READ_KEY", "of the environment")
	s, err = loadSecurity(home)
	require.NoError(t, err)
	require.Equal(t, "of the environment", string(s.readKey))

	for name, text := range map[string]string{
		"no.toml":      "[grpc",
		"half.toml":    "[grpc.client]\ncert = \"a\"\n",
		"half2.toml":   "[grpc.client]\nclient_cert = \"a\"\n",
		"absent.toml":  "[grpc]\nca = \"ca\"\n[grpc.client]\ncert = \"none.crt\"\nkey = \"none.key\"\n",
		"https.toml":   "[https.client]\nenabled = true\ncert = \"a\"\n",
		"missing.toml": "",
	} {
		p := filepath.Join(dir, name)
		if text != "" {
			write(name, text)
		}
		_, err := loadSecurity(p)
		require.Equal(t, fault.Unsupported, fault.Of(err), "%s: %v", name, err)
		require.ErrorContains(t, err, p)
	}
}

// TestFailover: a filer that is down is left for the next, reads are repeated,
// and the client stays where it got an answer.
func TestFailover(t *testing.T) {
	a, b := newWire(t), newWire(t)
	for _, w := range []*wire{a, b} {
		w.put(testFile, &filer_pb.Entry{Content: []byte("x")})
	}
	c := dialWire(t, Config{}, a, b)
	_, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	require.Equal(t, 1, a.count("LookupDirectoryEntry"))
	a.server.Stop()
	for range 3 {
		_, err = c.Stat(t.Context(), testFile)
		require.NoError(t, err)
	}
	require.Equal(t, 3, b.count("LookupDirectoryEntry"))
	_, err = c.Put(t.Context(), "/buckets/b/new", nil, CreateOptions{})
	require.NoError(t, err)
	b.hook = func(string) error { return status.Error(codes.Unavailable, "shutting down") }
	_, err = c.Stat(t.Context(), testFile)
	verdict(t, err, fault.Transient, nil)
}

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

func (w *wire) ListEntries(r *filer_pb.ListEntriesRequest, s filer_pb.SeaweedFiler_ListEntriesServer) error {
	for n := range 1000 {
		name := fmt.Sprintf("n%03d", n)
		if name <= r.StartFromFileName || !strings.HasPrefix(name, r.Prefix) {
			continue
		}
		if err := w.before("/ListedEntry"); err != nil {
			return err
		}
		if err := s.Send(&filer_pb.ListEntriesResponse{Entry: &filer_pb.Entry{Name: name}}); err != nil {
			return err
		}
		if r.Limit--; r.Limit == 0 {
			break
		}
	}
	return nil
}

// TestListGoesOnWhereItBroke: every name once, in order, however often the
// stream breaks.
func TestListGoesOnWhereItBroke(t *testing.T) {
	for _, o := range []ListOptions{{}, {Prefix: "n1"}, {After: "n005"}, {Limit: 321}, {Prefix: "n5", After: "n510", Limit: 50}} {
		w := newWire(t)
		sent := 0
		w.hook = func(m string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if m == "ListedEntry" {
				if sent++; sent%97 == 0 {
					return status.Error(codes.Unavailable, "shutting down")
				}
			}
			return nil
		}
		c := dialWire(t, Config{}, w)
		var want, got []string
		for n := range 1000 {
			name := fmt.Sprintf("n%03d", n)
			if strings.HasPrefix(name, o.Prefix) && name > o.After && (o.Limit == 0 || len(want) < o.Limit) {
				want = append(want, name)
			}
		}
		for e, err := range c.List(t.Context(), "/d", o) {
			require.NoError(t, err)
			got = append(got, e.Path.Name())
		}
		require.Equal(t, want, got)
		require.Greater(t, w.count("ListEntries"), len(want)/97)
	}
}

func TestListGivesUp(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	w.hook = func(m string) error {
		if m == "ListedEntry" {
			return status.Error(codes.Unavailable, "x")
		}
		return nil
	}
	var errs []error
	for e, err := range c.List(t.Context(), "/d", ListOptions{}) {
		require.Nil(t, e)
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	verdict(t, errs[0], fault.Transient, nil)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.hook = nil
	n := 0
	for _, err := range c.List(ctx, "/d", ListOptions{}) {
		if n++; n == 10 {
			cancel()
		}
		if err != nil {
			verdict(t, err, fault.Canceled, nil)
		}
	}
}

func TestListedNamesAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, last, prefix string
		kind               fault.Kind
	}{
		{"a/b", "", "", fault.Corrupt}, {"", "", "", fault.Corrupt}, {"..", "", "", fault.Corrupt}, {".", "", "", fault.Corrupt}, {"a\x00", "", "", fault.Corrupt},
		{"a", "b", "", fault.Unsupported}, {"b", "b", "", fault.Unsupported}, {"B", "a", "", fault.Unsupported}, {"x", "", "y", fault.Unsupported},
		{"c", "b", "", fault.None}, {"\\", "", "", fault.None}, {"%2F", "", "", fault.None},
	} {
		l := &lister{o: ListOptions{Prefix: c.prefix}, last: c.last}
		_, err := l.accept(&filer_pb.Entry{Name: c.name})
		require.Equal(t, c.kind, fault.Of(err), "%q behind %q: %v", c.name, c.last, err)
	}
}

func (w *wire) SubscribeMetadata(r *filer_pb.SubscribeMetadataRequest, s filer_pb.SeaweedFiler_SubscribeMetadataServer) error {
	at := func(ts int64, name string) *filer_pb.SubscribeMetadataResponse {
		return &filer_pb.SubscribeMetadataResponse{Directory: "/d", TsNs: ts, EventNotification: &filer_pb.EventNotification{NewEntry: &filer_pb.Entry{Name: name}}}
	}
	for ts := int64(1); ts <= 100; ts++ {
		if ts <= r.SinceNs {
			continue
		}
		if err := w.before("/Event"); err != nil {
			return err
		}
		// Batched, and the last of before again, as at-least-once delivery does.
		m := at(ts-1, fmt.Sprint("e", ts-1))
		if ts == 1 {
			m = &filer_pb.SubscribeMetadataResponse{FlushedTsNs: 5}
		}
		m.Events = []*filer_pb.SubscribeMetadataResponse{at(ts, fmt.Sprint("e", ts))}
		if err := s.Send(m); err != nil {
			return err
		}
	}
	// Caught up: signs of life, on to the end.
	for ts := int64(101); ; ts += 10 {
		if err := s.Send(&filer_pb.SubscribeMetadataResponse{TsNs: ts}); err != nil {
			return err
		}
		if ts > 500 {
			<-s.Context().Done()
			return s.Context().Err()
		}
	}
}

func TestSubscribeGoesOnWhereItBroke(t *testing.T) {
	w := newWire(t)
	n := 0
	w.hook = func(m string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if m == "Event" {
			if n++; n%7 == 0 {
				return status.Error(codes.Unavailable, "filer is shutting down")
			}
		}
		return nil
	}
	c := dialWire(t, Config{}, w)
	var want, got []string
	for ts := 4; ts <= 100; ts++ {
		want = append(want, fmt.Sprint("/d/e", ts))
	}
	for ev, err := range c.Subscribe(t.Context(), SubscribeOptions{Prefix: "/d", Since: time.Unix(0, 3), Until: time.Unix(0, 300)}) {
		require.NoError(t, err)
		got = append(got, ev.New.Path.String())
	}
	require.Equal(t, want, got)
}

func TestEventsAreSeenFromTheirTree(t *testing.T) {
	f := &feed{o: SubscribeOptions{Prefix: "/a/b"}}
	e := func(name string) *filer_pb.Entry { return &filer_pb.Entry{Name: name} }
	for _, c := range []struct {
		name, dir string
		ev        *filer_pb.EventNotification
		old, new  Path
	}{
		{"create", "/a/b", &filer_pb.EventNotification{NewEntry: e("x"), NewParentPath: "/a/b"}, "", "/a/b/x"},
		{"remove", "/a/b", &filer_pb.EventNotification{OldEntry: e("x")}, "/a/b/x", ""},
		{"update", "/a/b/c", &filer_pb.EventNotification{OldEntry: e("x"), NewEntry: e("x"), NewParentPath: "/a/b/c"}, "/a/b/c/x", "/a/b/c/x"},
		{"rename within", "/a/b", &filer_pb.EventNotification{OldEntry: e("x"), NewEntry: e("y"), NewParentPath: "/a/b/c"}, "/a/b/x", "/a/b/c/y"},
		{"rename out", "/a/b", &filer_pb.EventNotification{OldEntry: e("x"), NewEntry: e("x"), NewParentPath: "/a/c"}, "/a/b/x", ""},
		{"rename in", "/a/c", &filer_pb.EventNotification{OldEntry: e("x"), NewEntry: e("x"), NewParentPath: "/a/b"}, "", "/a/b/x"},
		{"sibling with the same beginning", "/a/bb", &filer_pb.EventNotification{NewEntry: e("x"), NewParentPath: "/a/bb"}, "", ""},
		{"the directory itself", "/a", &filer_pb.EventNotification{NewEntry: e("b"), NewParentPath: "/a"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev, err := f.event(time.Unix(0, 1), c.dir, c.ev)
			require.NoError(t, err)
			if c.old == "" && c.new == "" {
				require.Nil(t, ev)
				return
			}
			path := func(e *Entry) Path {
				if e == nil {
					return ""
				}
				return e.Path
			}
			require.Equal(t, c.old, path(ev.Old))
			require.Equal(t, c.new, path(ev.New))
		})
	}
	_, err := f.event(time.Unix(0, 1), "not/absolute", &filer_pb.EventNotification{NewEntry: e("x")})
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

func TestClockIsTheFilers(t *testing.T) {
	c := dialWire(t, Config{}, newWire(t))
	now, err := c.Clock(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Unix(1_700_000_000, 0), now)
}
