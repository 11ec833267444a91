package filer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

func TestClosedClient(t *testing.T) {
	w := newWire(t)
	w.put(testFile, &filer_pb.Entry{Chunks: []*filer_pb.FileChunk{w.stored(0, pattern(10))}})
	c := dialWire(t, Config{}, w)
	require.NoError(t, c.Close())
	_, err := c.Stat(t.Context(), testFile)
	verdict(t, err, fault.Canceled, nil)
	_, err = c.Put(t.Context(), testFile, nil, CreateOptions{})
	verdict(t, err, fault.Canceled, nil)
	for _, err := range c.List(t.Context(), "/d", ListOptions{}) {
		require.Error(t, err)
	}
}

// TestReadsPreferTheServerThatAnswers: a dead replica costs one attempt, not
// one for every read.
func TestReadsPreferTheServerThatAnswers(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	alive := w.volume.Listener.Addr().String()
	c.volumes.at["2"] = located{[]string{"127.0.0.1:1", alive}, c.clk.Now().Add(time.Hour)}
	fid := w.stored(0, pattern(10)).FileId
	require.Equal(t, "2", fid[:1])
	for range 2 {
		require.NoError(t, c.volumes.readRange(t.Context(), fid, 0, 10, make([]byte, 10)))
		require.Equal(t, []string{alive, "127.0.0.1:1"}, c.volumes.at["2"].servers)
	}
}

// TestProbeAfterAFilerCameBack: it may be another version.
func TestProbeAfterAFilerCameBack(t *testing.T) {
	w := newWire(t)
	w.put(testFile, &filer_pb.Entry{Extended: map[string][]byte{"k": []byte("v")}})
	c := dialWire(t, Config{}, w)
	_, err := c.Probe(t.Context(), "/probe")
	require.NoError(t, err)
	e, err := c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	w.server.Stop()
	w.old = true
	w.listen(w.grpcAddr())
	_, err = c.Stat(t.Context(), testFile)
	require.NoError(t, err)
	_, err = c.Update(t.Context(), Update{Base: e, Expect: map[string][]byte{"k": []byte("other")}})
	verdict(t, err, fault.Unsupported, nil)
	require.Equal(t, "v", string(w.get(testFile).Extended["k"]))
}
