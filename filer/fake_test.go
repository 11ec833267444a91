package filer

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/internal/clock"
)

// wire is a filer and a volume server on local sockets that behave as a test
// says. What a test does not script works like the real thing, as far as these
// tests need it.
type wire struct {
	filer_pb.UnimplementedSeaweedFilerServer
	t      *testing.T
	server *grpc.Server
	addr   string // as weed spells it
	volume *httptest.Server

	// hook, if not nil, is asked before every call; its error is the answer.
	hook func(method string) error
	// lose, if it answers true, makes the filer drop the connection instead of
	// answering, after the call took effect.
	lose func(method string) bool
	// old filers ignore conditions and have no transactions.
	old    bool
	cipher bool
	// http, if not nil, may answer for the volume server.
	http func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	entries map[Path]*filer_pb.Entry
	needles map[string][]byte
	replays map[string]*filer_pb.ObjectTransactionResponse
	nextFid uint64
	calls   map[string]int
	deleted []string
	stamp   int64
	conns   sync.Map
	reqs    atomic.Int64
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{
		t: t, entries: map[Path]*filer_pb.Entry{}, needles: map[string][]byte{}, calls: map[string]int{},
		replays: map[string]*filer_pb.ObjectTransactionResponse{},
	}
	w.volume = httptest.NewServer(http.HandlerFunc(w.serveVolume))
	t.Cleanup(w.volume.Close)
	w.listen("127.0.0.1:0")
	return w
}

// listen starts the filer, again after stop.
func (w *wire) listen(at string) {
	l, err := net.Listen("tcp", at)
	require.NoError(w.t, err)
	w.server = grpc.NewServer(grpc.UnaryInterceptor(w.unary), grpc.StreamInterceptor(w.streamed))
	filer_pb.RegisterSeaweedFilerServer(w.server, w)
	go func() { _ = w.server.Serve(&trackedListener{l, &w.conns}) }()
	w.t.Cleanup(w.server.Stop)
	w.addr = "127.0.0.1:1." + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (w *wire) grpcAddr() string {
	_, port, _ := strings.Cut(w.addr, ":1.")
	return "127.0.0.1:" + port
}

type trackedListener struct {
	net.Listener
	conns *sync.Map
}

func (l *trackedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conns.Store(c, nil)
	}
	return c, err
}

// hangUp breaks every connection.
func (w *wire) hangUp() {
	w.conns.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close()
		w.conns.Delete(c)
		return true
	})
}

func (w *wire) before(method string) error {
	method = method[strings.LastIndex(method, "/")+1:]
	w.mu.Lock()
	w.calls[method]++
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		return hook(method)
	}
	return nil
}

func (w *wire) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := w.before(info.FullMethod); err != nil {
		return nil, err
	}
	resp, err := handle(ctx, req)
	if w.lose != nil && w.lose(info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]) {
		w.hangUp()
	}
	return resp, err
}

func (w *wire) streamed(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := w.before(info.FullMethod); err != nil {
		return err
	}
	return handle(srv, s)
}

func (w *wire) count(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[method]
}

// hasty is a virtual clock on which waiting takes a hundredth of its time, so
// that connections can come back meanwhile.
type hasty struct{ *clock.Virtual }

func (h hasty) Sleep(ctx context.Context, d time.Duration) error {
	if err := clock.System().Sleep(ctx, d/100); err != nil {
		return err
	}
	return h.Virtual.Sleep(ctx, d)
}

// dialWire connects with a hasty clock.
func dialWire(t *testing.T, cfg Config, wires ...*wire) *Client {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	for _, w := range wires {
		cfg.Addresses = append(cfg.Addresses, w.addr)
	}
	if cfg.Clock == nil {
		cfg.Clock = hasty{clock.NewVirtual(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	}
	c, err := Dial(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *wire) set(p Path, pb *filer_pb.Entry) *filer_pb.Entry {
	pb.Name = p.Name()
	if pb.Attributes == nil {
		pb.Attributes = &filer_pb.FuseAttributes{Mtime: 1, MtimeNs: 1}
	}
	w.stamp++
	pb.CommitTsNs = w.stamp
	w.entries[p] = pb
	return pb
}

func (w *wire) get(p Path) *filer_pb.Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return proto.CloneOf(w.entries[p])
}

func (w *wire) put(p Path, pb *filer_pb.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(p, pb)
}

// needle stores bytes as a volume server keeps them and returns their id.
func (w *wire) needle(data []byte) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextFid++
	fid := fmt.Sprintf("%d,%02x%08x", 1+w.nextFid%3, w.nextFid, 0xabcdef00+w.nextFid)
	w.needles[fid] = data
	return fid
}

var errMissing = status.Error(codes.Unknown, filer_pb.ErrNotFound.Error())

func (w *wire) LookupDirectoryEntry(_ context.Context, r *filer_pb.LookupDirectoryEntryRequest) (*filer_pb.LookupDirectoryEntryResponse, error) {
	e := w.get(Path(r.Directory).Join(r.Name))
	if e == nil {
		return nil, errMissing
	}
	return &filer_pb.LookupDirectoryEntryResponse{Entry: e}, nil
}

func (w *wire) Ping(context.Context, *filer_pb.PingRequest) (*filer_pb.PingResponse, error) {
	return &filer_pb.PingResponse{StartTimeNs: 1_700_000_000_000_000_000}, nil
}

func (w *wire) GetFilerConfiguration(context.Context, *filer_pb.GetFilerConfigurationRequest) (*filer_pb.GetFilerConfigurationResponse, error) {
	return &filer_pb.GetFilerConfigurationResponse{Cipher: w.cipher}, nil
}

func (w *wire) AssignVolume(context.Context, *filer_pb.AssignVolumeRequest) (*filer_pb.AssignVolumeResponse, error) {
	fid := w.needle(nil)
	w.mu.Lock()
	delete(w.needles, fid)
	w.mu.Unlock()
	return &filer_pb.AssignVolumeResponse{FileId: fid, Auth: "write-" + fid, Location: &filer_pb.Location{Url: w.volume.Listener.Addr().String()}}, nil
}

func (w *wire) LookupVolume(_ context.Context, r *filer_pb.LookupVolumeRequest) (*filer_pb.LookupVolumeResponse, error) {
	out := map[string]*filer_pb.Locations{}
	for _, id := range r.VolumeIds {
		out[id] = &filer_pb.Locations{Locations: []*filer_pb.Location{{Url: w.volume.Listener.Addr().String()}}}
	}
	return &filer_pb.LookupVolumeResponse{LocationsMap: out}, nil
}

func (w *wire) CreateEntry(_ context.Context, r *filer_pb.CreateEntryRequest) (*filer_pb.CreateEntryResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Path(r.Directory).Join(r.Entry.Name)
	if r.OExcl && w.entries[p] != nil {
		return &filer_pb.CreateEntryResponse{Error: "taken", ErrorCode: filer_pb.FilerError_ENTRY_ALREADY_EXISTS}, nil
	}
	w.set(p, proto.CloneOf(r.Entry))
	return &filer_pb.CreateEntryResponse{}, nil
}

func (w *wire) UpdateEntry(_ context.Context, r *filer_pb.UpdateEntryRequest) (*filer_pb.UpdateEntryResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Path(r.Directory).Join(r.Entry.Name)
	cur := w.entries[p]
	if cur == nil {
		return nil, status.Error(codes.NotFound, "not found")
	}
	if !w.old {
		for k, v := range r.ExpectedExtended {
			if string(cur.Extended[k]) != string(v) {
				return nil, status.Error(codes.FailedPrecondition, "changed")
			}
		}
		if !holds(r.Condition, cur) {
			return nil, status.Error(codes.FailedPrecondition, "precondition failed")
		}
	}
	w.set(p, proto.CloneOf(r.Entry))
	return &filer_pb.UpdateEntryResponse{}, nil
}

func holds(c *filer_pb.WriteCondition, cur *filer_pb.Entry) bool {
	for _, k := range c.GetClauses() {
		switch k.Kind {
		case filer_pb.WriteCondition_IF_NOT_EXISTS:
			if cur != nil {
				return false
			}
		case filer_pb.WriteCondition_IF_ENTRY_EQUAL:
			if cur == nil || !proto.Equal(cur, k.ExpectedEntry) {
				return false
			}
		case filer_pb.WriteCondition_IF_CHUNKS_EQUAL:
			if strings.Join(filer_pb.FileIdsString(cur.GetChunks()), " ") != strings.Join(k.Fids, " ") {
				return false
			}
		}
	}
	return true
}

func (w *wire) ObjectTransaction(_ context.Context, r *filer_pb.ObjectTransactionRequest) (*filer_pb.ObjectTransactionResponse, error) {
	if w.old {
		return nil, status.Error(codes.Unimplemented, "unknown method ObjectTransaction")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if out := w.replays[r.RequestId+r.LockKey]; out != nil && r.RequestId != "" {
		return out, nil
	}
	out := &filer_pb.ObjectTransactionResponse{}
	w.replays[r.RequestId+r.LockKey] = out
	if r.RouteKey != "s3.object.write:"+r.LockKey {
		out.Error = "route key " + r.RouteKey
		return out, nil
	}
	if !holds(r.Condition, w.entries[Path(r.LockKey)]) {
		out.Error, out.ErrorCode = "precondition failed", filer_pb.FilerError_PRECONDITION_FAILED
		return out, nil
	}
	for i, m := range r.Mutations {
		name := m.Name
		if m.Entry != nil {
			name = m.Entry.Name
		}
		p := Path(m.Directory).Join(name)
		if !holds(m.Condition, w.entries[p]) {
			failed := int32(i)
			out.Error, out.ErrorCode, out.FailedMutation = "precondition failed", filer_pb.FilerError_PRECONDITION_FAILED, &failed
			return out, nil
		}
		switch m.Type {
		case filer_pb.ObjectMutation_PUT:
			w.set(p, proto.CloneOf(m.Entry))
		case filer_pb.ObjectMutation_DELETE:
			if m.IsDeleteData {
				w.deleted = append(w.deleted, filer_pb.FileIdsString(w.entries[p].GetChunks())...)
			}
			delete(w.entries, p)
		case filer_pb.ObjectMutation_PATCH_EXTENDED:
			e := proto.CloneOf(w.entries[p])
			setExtended(e, m.SetExtended)
			for _, k := range m.DeleteExtended {
				delete(e.Extended, k)
			}
			w.set(p, e)
		}
	}
	return out, nil
}

func (w *wire) DeleteEntry(_ context.Context, r *filer_pb.DeleteEntryRequest) (*filer_pb.DeleteEntryResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Path(r.Directory).Join(r.Name)
	if e := w.entries[p]; e != nil {
		at := e.Attributes.Mtime*int64(time.Second) + int64(e.Attributes.MtimeNs)
		if r.IfNotModifiedAfterNs > 0 && at > r.IfNotModifiedAfterNs {
			return &filer_pb.DeleteEntryResponse{}, nil
		}
		delete(w.entries, p)
	}
	return &filer_pb.DeleteEntryResponse{}, nil
}

func (w *wire) AtomicRenameEntry(_ context.Context, r *filer_pb.AtomicRenameEntryRequest) (*filer_pb.AtomicRenameEntryResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to := Path(r.OldDirectory).Join(r.OldName), Path(r.NewDirectory).Join(r.NewName)
	if w.entries[from] == nil {
		return nil, status.Errorf(codes.Unknown, "%s not found: %v", from, filer_pb.ErrNotFound)
	}
	if w.entries[to] != nil && r.FailIfTargetExists {
		return nil, status.Errorf(codes.Unknown, "%s: %v", to, filer_pb.ErrEntryAlreadyExists)
	}
	w.set(to, w.entries[from])
	delete(w.entries, from)
	return &filer_pb.AtomicRenameEntryResponse{}, nil
}

func (w *wire) serveVolume(rw http.ResponseWriter, r *http.Request) {
	w.reqs.Add(1)
	if w.http != nil && w.http(rw, r) {
		return
	}
	fid := strings.TrimPrefix(r.URL.Path, "/")
	w.mu.Lock()
	data, ok := w.needles[fid]
	w.mu.Unlock()
	switch r.Method {
	case http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		sum := md5.Sum(body)
		if want := r.Header.Get("Content-MD5"); want != "" && want != base64.StdEncoding.EncodeToString(sum[:]) {
			http.Error(rw, "Content-MD5 did not match", http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		w.needles[fid] = body
		w.mu.Unlock()
		rw.Header().Set("ETag", fmt.Sprintf("\"%08x\"", crc32.Checksum(body, castagnoli)))
		rw.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(rw).Encode(map[string]any{"size": len(body)})
	case http.MethodDelete:
		w.mu.Lock()
		delete(w.needles, fid)
		w.deleted = append(w.deleted, fid)
		w.mu.Unlock()
		rw.WriteHeader(http.StatusAccepted)
	default:
		if !ok {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		http.ServeContent(rw, r, "", time.Time{}, strings.NewReader(string(data)))
	}
}
