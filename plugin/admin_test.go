package plugin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// SeaweedFS's logger and metrics start them when they are loaded.
		goleak.IgnoreTopFunction("github.com/seaweedfs/seaweedfs/weed/glog.(*loggingT).flushDaemon"),
		goleak.IgnoreAnyFunction("github.com/seaweedfs/seaweedfs/weed/stats.bucketMetricTTLControl"),
		// Certificates are watched for the life of the process.
		goleak.IgnoreAnyFunction("google.golang.org/grpc/credentials/tls/certprovider/pemfile.(*watcher).run"),
	)
}

// stepClock stands still; a sleep ends when the test fires one of its length.
type stepClock struct {
	mu       sync.Mutex
	changed  *sync.Cond
	now      time.Time
	sleepers map[*sleeper]bool
}

type sleeper struct {
	d    time.Duration
	done chan struct{}
}

func newStepClock() *stepClock {
	c := &stepClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), sleepers: map[*sleeper]bool{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	s := &sleeper{d: d, done: make(chan struct{})}
	c.mu.Lock()
	c.sleepers[s] = true
	c.changed.Broadcast()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.sleepers, s)
		c.mu.Unlock()
	}()
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fire waits until somebody sleeps for d, moves the time on by d and wakes it.
func (c *stepClock) fire(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for s := range c.sleepers {
			if s.d == d {
				delete(c.sleepers, s)
				c.now = c.now.Add(d)
				close(s.done)
				return
			}
		}
		c.changed.Wait()
	}
}

// advance moves the time without waking anybody.
func (c *stepClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// admin is the server side of plugin.proto. Every stream becomes a peer that
// the test drives message by message.
type admin struct {
	plugin_pb.UnimplementedPluginControlServiceServer
	peers chan *peer
	check func(context.Context) error

	mu       sync.Mutex
	server   *grpc.Server
	listener *bufconn.Listener
	conns    []net.Conn
}

// peer is one stream, after its hello.
type peer struct {
	t      *testing.T
	hello  *plugin_pb.WorkerHello
	in     chan *plugin_pb.WorkerToAdminMessage // closed at the end of the stream
	kept   []*plugin_pb.WorkerToAdminMessage    // read and passed over
	ended  error                                // what Recv said, once in is closed
	out    chan *plugin_pb.AdminToWorkerMessage
	finish chan struct{}
	// hold, if closed to reading, keeps the admin from taking messages.
	hold chan struct{}
}

func newAdmin(t *testing.T, opts ...grpc.ServerOption) *admin {
	t.Helper()
	a := &admin{peers: make(chan *peer, 8)}
	a.start(opts...)
	t.Cleanup(a.stop)
	return a
}

func (a *admin) start(opts ...grpc.ServerOption) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(opts...)
	plugin_pb.RegisterPluginControlServiceServer(s, a)
	a.listener, a.server = l, s
	go func() { _ = s.Serve(l) }()
}

func (a *admin) stop() {
	a.mu.Lock()
	s := a.server
	a.mu.Unlock()
	s.Stop()
}

// cut breaks all connections without a word, as a pulled cable would once it
// is noticed.
func (a *admin) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = c.Close()
	}
	a.conns = nil
}

func (a *admin) dial(ctx context.Context, _ string) (net.Conn, error) {
	a.mu.Lock()
	l := a.listener
	a.mu.Unlock()
	c, err := l.DialContext(ctx)
	if err == nil {
		a.mu.Lock()
		a.conns = append(a.conns, c)
		a.mu.Unlock()
	}
	return c, err
}

func (a *admin) WorkerStream(stream plugin_pb.PluginControlService_WorkerStreamServer) error {
	if a.check != nil {
		if err := a.check(stream.Context()); err != nil {
			return err
		}
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	p := &peer{
		hello: first.GetHello(), in: make(chan *plugin_pb.WorkerToAdminMessage, 4096),
		out: make(chan *plugin_pb.AdminToWorkerMessage), finish: make(chan struct{}), hold: make(chan struct{}),
	}
	go func() {
		defer close(p.in)
		for {
			m, err := stream.Recv()
			if err != nil {
				p.ended = err
				return
			}
			select {
			case <-p.hold:
				// Read from the wire and dropped, as by an admin that crashed.
				continue
			default:
			}
			p.in <- m
		}
	}()
	a.peers <- p
	for {
		select {
		case m := <-p.out:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-p.finish:
			return nil
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// accept waits for the next stream and greets it.
func (a *admin) accept(t *testing.T) *peer {
	t.Helper()
	p := <-a.peers
	p.t = t
	require.NotNil(t, p.hello, "the first message must be the hello")
	p.send("", &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_Hello{Hello: &plugin_pb.AdminHello{
		Accepted: true, HeartbeatIntervalSeconds: 30, ReconnectDelaySeconds: 5}}})
	return p
}

func (p *peer) send(id string, m *plugin_pb.AdminToWorkerMessage) {
	m.RequestId = id
	p.out <- m
}

// until returns the first message that fits and what came before it.
func (p *peer) until(fits func(*plugin_pb.WorkerToAdminMessage) bool) (*plugin_pb.WorkerToAdminMessage, []*plugin_pb.WorkerToAdminMessage) {
	p.t.Helper()
	for i, m := range p.kept {
		if fits(m) {
			before := p.kept[:i]
			p.kept = p.kept[i+1:]
			return m, before
		}
	}
	before := p.kept
	p.kept = nil
	for m := range p.in {
		if fits(m) {
			return m, before
		}
		before = append(before, m)
	}
	require.FailNow(p.t, "the stream ended before the message came", "%v", p.ended)
	return nil, nil
}

// take returns the first message that fits and keeps the others, but for
// heartbeats, for later.
func (p *peer) take(fits func(*plugin_pb.WorkerToAdminMessage) bool) *plugin_pb.WorkerToAdminMessage {
	p.t.Helper()
	m, before := p.until(fits)
	var kept []*plugin_pb.WorkerToAdminMessage
	for _, b := range before {
		if b.GetHeartbeat() == nil {
			kept = append(kept, b)
		}
	}
	p.kept = append(kept, p.kept...)
	return m
}

func (p *peer) completed() *plugin_pb.JobCompleted {
	p.t.Helper()
	return p.take(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetJobCompleted() != nil }).GetJobCompleted()
}

func (p *peer) ack(id string) *plugin_pb.WorkerAcknowledge {
	p.t.Helper()
	return p.take(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetAcknowledge().GetRequestId() == id }).GetAcknowledge()
}

// beat returns the next heartbeat that fits.
func (p *peer) beat(fits func(*plugin_pb.WorkerHeartbeat) bool) *plugin_pb.WorkerHeartbeat {
	p.t.Helper()
	return p.take(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetHeartbeat() != nil && fits(m.GetHeartbeat()) }).GetHeartbeat()
}

// drain reads to the end of the stream.
func (p *peer) drain() {
	for m := range p.in {
		p.kept = append(p.kept, m)
	}
}

func (p *peer) execute(requestID, jobID string) {
	p.send(requestID, executeRequest(jobID))
}

func executeRequest(jobID string) *plugin_pb.AdminToWorkerMessage {
	return &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_ExecuteJobRequest{ExecuteJobRequest: &plugin_pb.ExecuteJobRequest{
		Job: &plugin_pb.JobSpec{JobId: jobID, JobType: JobType, Parameters: wireValues(map[string]Value{
			"bucket_name": Text("lake"), "namespace": Text("sales"), "table_name": Text("orders"), "table_path": Text("sales/orders"),
		})},
		Attempt:            2,
		WorkerConfigValues: wireValues(map[string]Value{"target_file_size_mb": Int(512), "dry_run": True, "delete_ratio_threshold": Float(0.25)}),
		ClusterContext:     &plugin_pb.ClusterContext{FilerAddresses: []string{"127.0.0.1:8888.18888"}},
	}}}
}

func (p *peer) cancel(id, target string) {
	p.send(id, &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_CancelRequest{
		CancelRequest: &plugin_pb.CancelRequest{TargetId: target, Reason: "time is up"}}})
}

// fakeHandler runs functions of the test.
type fakeHandler struct {
	detect  func(context.Context, DetectRequest, Findings) (DetectSummary, error)
	execute func(context.Context, Job, Reporter) (JobResult, error)
}

func (h *fakeHandler) Detect(ctx context.Context, r DetectRequest, f Findings) (DetectSummary, error) {
	return h.detect(ctx, r, f)
}

func (h *fakeHandler) Execute(ctx context.Context, j Job, r Reporter) (JobResult, error) {
	return h.execute(ctx, j, r)
}

// world is a client that runs against an admin.
type world struct {
	*admin
	client *Client
	clock  *stepClock
	stop   context.CancelFunc
	result chan error
}

// newWorld starts a client; the test's end stops it, with the admin reading on.
func newWorld(t *testing.T, h Handler, change ...func(*Options)) *world {
	t.Helper()
	w := &world{admin: newAdmin(t), clock: newStepClock(), result: make(chan error, 1)}
	w.client = newClient(t, w.admin, h, w.clock, change...)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() { w.result <- w.client.Run(ctx) }()
	t.Cleanup(stop)
	return w
}

func newClient(t *testing.T, a *admin, h Handler, clk *stepClock, change ...func(*Options)) *Client {
	t.Helper()
	t.Chdir(t.TempDir()) // no security.toml of the machine's
	t.Setenv("HOME", t.TempDir())
	o := Options{
		Admin: "127.0.0.1:1000", Handler: h, Clock: clk, ID: "w1", Address: "host1", Version: "1.2.3",
		spread: func() float64 { return 0.5 },
		Log:    slog.New(slog.NewTextHandler(t.Output(), nil)),
		extra:  []grpc.DialOption{grpc.WithContextDialer(a.dial)},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// disconnected waits until the client knows that it has no stream.
func (w *world) disconnected() {
	for w.client.Status().Connected {
		runtime.Gosched()
	}
}

// close stops the client in good order: the admin reads to the end.
func (w *world) close(p *peer) []*plugin_pb.WorkerToAdminMessage {
	w.stop()
	out := p.kept
	for m := range p.in {
		out = append(out, m)
	}
	require.Equal(p.t, io.EOF, p.ended, "the worker must close its side")
	close(p.finish)
	require.NoError(p.t, <-w.result)
	return out
}
