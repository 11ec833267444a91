package filer

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/internal/clock"
)

// Config says which filers to use and how much to take of them. Zero fields
// have defaults.
type Config struct {
	// Addresses are filers of one cluster, spelled as weed does: "host:port" of
	// the HTTP port, whose gRPC port is 10000 higher, or "host:port.grpcport".
	// The first is used until it is unavailable, then the next.
	Addresses []string
	// Security is the path of security.toml. Empty means the first one found
	// where weed looks: ., $HOME/.seaweedfs, /usr/local/etc/seaweedfs,
	// /etc/seaweedfs; none found means no security.
	Security string
	// Clock is the clock for waiting and for the times of new files; the
	// machine's by default.
	Clock clock.Clock
	// Name is what the filer shows of this client; "seaice" by default.
	Name string
	// Parallel is how many chunks one upload, and how many windows one stream,
	// hold and move at once; 4 by default.
	Parallel int
	// ChunkBytes is the length of an upload's chunks; 8 MiB by default.
	ChunkBytes int
	// ReadAheadBytes bounds what a stream reads ahead; 8 MiB by default.
	ReadAheadBytes int
	// CacheBytes bounds the memory for chunks that can only be read whole
	// because they are stored encrypted or compressed; 64 MiB by default.
	CacheBytes int64
	// RetryFor is how long an idempotent call is repeated while no filer
	// answers; one minute by default.
	RetryFor time.Duration
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	if c.Name == "" {
		c.Name = "seaice"
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	if c.ChunkBytes <= 0 {
		c.ChunkBytes = 8 << 20
	}
	if c.ReadAheadBytes <= 0 {
		c.ReadAheadBytes = 8 << 20
	}
	if c.CacheBytes <= 0 {
		c.CacheBytes = 64 << 20
	}
	if c.RetryFor <= 0 {
		c.RetryFor = time.Minute
	}
	return c
}

// Client is a filer reached over gRPC, and its volume servers over HTTP. It is
// safe for concurrent use.
type Client struct {
	cfg     Config
	clk     clock.Clock
	sec     secured
	nodes   []*node
	current atomic.Int64
	buffers *buffers
	volumes *volumes
	cache   *chunkCache
	closed  atomic.Bool
}

var _ Filer = (*Client)(nil)

// node is one filer.
type node struct {
	index int
	addr  string
	conn  *grpc.ClientConn
	filer_pb.SeaweedFilerClient

	// found is what the filer does, unless it is yet to be probed, which one
	// caller at a time does. A new connection clears it.
	found   atomic.Pointer[Capabilities]
	probing sync.Mutex
}

// A node watches its own connection: what answers after a reconnect may be
// another version of the filer, or have other settings.
func (n *node) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		n.found.Store(nil)
	}
}

// TagConn, TagRPC and HandleRPC complete stats.Handler.
func (n *node) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (n *node) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (n *node) HandleRPC(context.Context, stats.RPCStats)                         {}

// maxMessage bounds one gRPC message. The largest is a table's record with its
// metadata inline, twice over in the change feed.
const maxMessage = 128 << 20

// Dial returns a client of the filers in cfg. It does not wait for any of them;
// an unusable configuration is fault.Unsupported.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if len(cfg.Addresses) == 0 {
		return nil, fault.New(fault.Unsupported, "no filer address is given")
	}
	if ctx.Err() != nil {
		return nil, fault.Wrap(fault.Canceled, "connect to filers", context.Cause(ctx))
	}
	sec, err := loadSecurity(cfg.Security)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, clk: cfg.Clock, sec: sec, buffers: newBuffers(cfg.ChunkBytes + cipherOverhead)}
	c.volumes = newVolumes(c)
	c.cache = newChunkCache(cfg.CacheBytes)
	for i, a := range cfg.Addresses {
		target, err := grpcAddress(a)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		n := &node{index: i, addr: a}
		conn, err := grpc.NewClient("passthrough:///"+target, sec.dial,
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           grpcbackoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: backoffMax},
				MinConnectTimeout: dialTimeout,
			}),
			grpc.WithNoProxy(), grpc.WithStatsHandler(n),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
		if err != nil {
			_ = c.Close()
			return nil, fault.Wrap(fault.Unsupported, "connect to filer "+a, err)
		}
		n.conn, n.SeaweedFilerClient = conn, filer_pb.NewSeaweedFilerClient(conn)
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// grpcPortAbove is how much higher than a server's HTTP port its gRPC port is,
// unless it is named.
const grpcPortAbove = 10000

// grpcAddress is the host and gRPC port of a filer's address.
func grpcAddress(a string) (string, error) {
	bad := func(why string) error {
		return fault.New(fault.Unsupported, fmt.Sprintf("filer address %q is not host:port or host:port.grpcport: %s", a, why))
	}
	host, ports, err := net.SplitHostPort(a)
	if err != nil {
		return "", bad(err.Error())
	}
	if host == "" {
		return "", bad("no host")
	}
	http, grpc, named := strings.Cut(ports, ".")
	port, err := strconv.ParseUint(http, 10, 16)
	if err != nil || port == 0 {
		return "", bad("no port " + strconv.Quote(http))
	}
	port += grpcPortAbove
	if named {
		if port, err = strconv.ParseUint(grpc, 10, 16); err != nil || port == 0 {
			return "", bad("no gRPC port " + strconv.Quote(grpc))
		}
	}
	if port > 65535 {
		return "", bad(fmt.Sprintf("the gRPC port %d is above 65535", port))
	}
	return net.JoinHostPort(host, strconv.FormatUint(port, 10)), nil
}

// node is the filer in use.
func (c *Client) node() *node { return c.nodes[int(c.current.Load())%len(c.nodes)] }

// leave makes the next filer the one in use, unless somebody has already left n.
func (c *Client) leave(n *node) {
	cur := c.current.Load()
	if int(cur)%len(c.nodes) == n.index {
		c.current.CompareAndSwap(cur, cur+1)
	}
}

// Close ends all connections. Open objects and uploads fail from then on.
func (c *Client) Close() error {
	c.closed.Store(true)
	for _, n := range c.nodes {
		_ = n.conn.Close()
	}
	if h, ok := c.sec.http.(interface{ CloseIdleConnections() }); ok {
		h.CloseIdleConnections()
	}
	return nil
}

// Clock returns the filer's own time.
func (c *Client) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := c.read(ctx, "ask the filer for its time", func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.Ping(ctx, &filer_pb.PingRequest{}, opts...)
		if err == nil {
			// A filer that is asked about itself answers with the time at which
			// it began to; RemoteTimeNs is only set for other targets.
			now = time.Unix(0, max(r.GetRemoteTimeNs(), r.GetStartTimeNs()))
		}
		return err
	})
	return now, err
}
