package plugin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/internal/clock"
)

// Options describe a worker. Admin, Handler and Clock are needed.
type Options struct {
	// Admin is the admin's address: host:port as weed worker takes it (gRPC is
	// 10000 above), or host:port.grpcPort.
	Admin   string
	Handler Handler
	Clock   clock.Clock
	// ID is the worker's. It should stay the same over restarts. Empty is made
	// from the host and a random part.
	ID string
	// Address is what the admin compares with the hosts of jobs that prefer
	// one; empty is the host's name.
	Address string
	// Version is the program's.
	Version string
	// Descriptor is what the admin shows; zero is Describe().
	Descriptor Descriptor
	// ExecutionSlots and DetectionSlots are how much runs at once; 0 is 4 and
	// 2. The admin gives detection to the worker with the most free slots.
	ExecutionSlots int
	DetectionSlots int
	// Heartbeat and Reconnect, if not 0, are used instead of what the admin
	// asks for.
	Heartbeat time.Duration
	Reconnect time.Duration
	// Grace is how long Run waits for running jobs when it is told to stop; 0
	// is 30 s.
	Grace time.Duration
	// Security is the path of security.toml; empty searches where weed does.
	Security string
	// Log gets one line per connection and job; nil is silence.
	Log *slog.Logger

	// spread is a number in [0, 1) for the jitter of reconnects.
	spread func() float64
	// extra are further dial options of tests.
	extra []grpc.DialOption
}

// Client keeps one worker connected to its admin.
type Client struct {
	o        Options
	target   string
	security secured
	instance string
	slots    chan struct{} // detections

	mu           sync.Mutex
	jobs         map[string]*run       // by request id, until their answer is known to have arrived
	detections   map[string]*detection // by request id
	observations []*plugin_pb.ObjectObservation
	session      *session
	heartbeat    time.Duration
	reconnect    time.Duration
	draining     bool
	failure      error
	lastDetect   Detection

	work sync.WaitGroup // running handlers
}

// Status is how the worker is doing, for health checks.
type Status struct {
	Connected bool
	// Err is why the last stream ended; nil before the first.
	Err error
	// Running are jobs at work, Unanswered those whose answer waits for a
	// stream.
	Running    int
	Unanswered int
	// LastDetection is the last one that ended.
	LastDetection Detection
}

// Detection is how a detection ended.
type Detection struct {
	At        time.Time
	Proposals int
	Err       error
}

var (
	errStopping   = fault.New(fault.Canceled, "the worker is stopping")
	errStreamLost = fault.New(fault.Canceled, "the stream to the admin broke")
	errTimeUp     = fault.New(fault.Canceled, "the admin's time limit for a detection is up")
)

// New checks o and reads security.toml. It does not connect; Run does.
func New(o Options) (*Client, error) {
	if o.Handler == nil || o.Clock == nil {
		return nil, fault.New(fault.Halt, "a plugin client needs a handler and a clock")
	}
	target, err := grpcTarget(o.Admin)
	if err != nil {
		return nil, err
	}
	sec, err := loadSecurity(o.Security)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.spread == nil {
		o.spread = mathrand.Float64
	}
	if o.Address == "" {
		if o.Address, err = os.Hostname(); err != nil {
			return nil, fault.Wrap(fault.Unsupported, "find the host's name; set an address instead", err)
		}
	}
	if o.ID == "" {
		// The admin gives jobs nobody else claims to the id that sorts first.
		o.ID = "iceberg-seaice-" + o.Address + "-" + random(2)
	}
	if o.Descriptor.Version == 0 {
		o.Descriptor = Describe()
	}
	if o.Descriptor.Version < Version {
		return nil, fault.New(fault.Halt, fmt.Sprintf("descriptor version %d is below %d", o.Descriptor.Version, Version))
	}
	o.ExecutionSlots, o.DetectionSlots = orElse(o.ExecutionSlots, 4), orElse(o.DetectionSlots, 2)
	o.Grace = orElse(o.Grace, 30*time.Second)
	return &Client{
		o: o, target: target, security: sec, instance: random(6),
		slots: make(chan struct{}, o.DetectionSlots),
		jobs:  map[string]*run{}, detections: map[string]*detection{},
		heartbeat: orElse(o.Heartbeat, 15*time.Second),
		reconnect: orElse(o.Reconnect, 5*time.Second),
	}, nil
}

func orElse[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func random(n int) string {
	b := make([]byte, n)
	// crypto/rand.Read never fails.
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// grpcTarget is the gRPC address of an admin: host:port.grpcPort names it,
// host:port is 10000 below it.
func grpcTarget(admin string) (string, error) {
	bad := func(why string) error {
		return fault.WithHint("the admin is host:port, such as localhost:23646, or host:port.grpcPort",
			fault.New(fault.Unsupported, fmt.Sprintf("admin address %q %s", admin, why)))
	}
	host, ports, err := net.SplitHostPort(strings.TrimSpace(admin))
	if err != nil {
		return "", bad("is not host:port")
	}
	if host == "" {
		return "", bad("has no host")
	}
	http, named, hasGRPC := strings.Cut(ports, ".")
	port, err := strconv.ParseUint(http, 10, 16)
	if err != nil || port == 0 {
		return "", bad("has no valid port")
	}
	grpcPort := port + 10000
	if hasGRPC {
		if grpcPort, err = strconv.ParseUint(named, 10, 16); err != nil || grpcPort == 0 {
			return "", bad("has no valid gRPC port")
		}
	}
	if grpcPort > 65535 {
		return "", bad("leaves no room for the gRPC port 10000 above it")
	}
	return net.JoinHostPort(host, strconv.FormatUint(grpcPort, 10)), nil
}

// ID is the worker's id.
func (c *Client) ID() string { return c.o.ID }

// Address is what the worker announces as its own.
func (c *Client) Address() string { return c.o.Address }

// Status reports how the worker is doing.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connected: c.session != nil && c.session.greeted, Err: c.failure, LastDetection: c.lastDetect}
	for _, r := range c.jobs {
		switch {
		case r.answer == nil:
			s.Running++
		case r.sentOn == nil:
			s.Unanswered++
		}
	}
	return s
}

// Run connects and serves until ctx ends, reconnecting as often as needed.
// Then it takes no new work, cancels what runs, waits for it up to the grace
// time and hands over the answers. The error is nil unless jobs did not stop
// in time.
func (c *Client) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-ctx.Done()
		c.drain(life)
	}()
	for failures := 0; ; {
		began := c.o.Clock.Now()
		err := c.serve(life, drained)
		stop := isClosed(drained)
		c.mu.Lock()
		if !stop {
			c.failure = err
		}
		left := c.unanswered()
		c.mu.Unlock()
		if stop && (left == 0 || err != nil) {
			break
		}
		if !stop {
			c.o.Log.Warn("the stream to the admin ended", "admin", c.target, "error", err)
		}
		if c.o.Clock.Now().Sub(began) > time.Minute {
			failures = 0
		}
		failures++
		c.pause(life, drained, failures)
		if isClosed(drained) && c.countUnanswered() == 0 {
			break
		}
	}
	<-drained
	if left := c.stuck(); len(left) > 0 {
		return fault.New(fault.Unknown, fmt.Sprintf("jobs did not stop within %s: %s", c.o.Grace, strings.Join(left, ", ")))
	}
	return nil
}

// pause waits before the next connection: the reconnect delay, doubled by every
// failure up to a minute, spread by half so that workers do not come in step.
// It ends early when everything has been drained.
func (c *Client) pause(ctx context.Context, drained <-chan struct{}, failures int) {
	c.mu.Lock()
	d := c.reconnect
	c.mu.Unlock()
	for range min(failures-1, 10) {
		d = min(2*d, time.Minute)
	}
	d = time.Duration(float64(d) * (0.5 + c.o.spread()))
	sleep, wake := context.WithCancel(ctx)
	defer wake()
	go func() {
		select {
		case <-drained:
			wake()
		case <-sleep.Done():
		}
	}()
	// Woken early or not, the next step is the same.
	_ = c.o.Clock.Sleep(sleep, d)
}

// drain stops everything and waits for it, within the grace time.
func (c *Client) drain(ctx context.Context) {
	c.mu.Lock()
	c.draining = true
	for _, r := range c.jobs {
		r.cancel(errStopping)
	}
	for _, d := range c.detections {
		d.cancel(errStopping)
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	limit, stop := context.WithCancel(ctx)
	defer stop()
	late := make(chan struct{})
	go func() {
		if c.o.Clock.Sleep(limit, c.o.Grace) == nil {
			close(late)
		}
	}()
	select {
	case <-done:
	case <-late:
	}
}

func (c *Client) stuck() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, r := range c.jobs {
		if r.answer == nil {
			out = append(out, r.job.ID)
		}
	}
	return out
}

func (c *Client) countUnanswered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unanswered()
}

func (c *Client) unanswered() int {
	n := 0
	for _, r := range c.jobs {
		if r.answer != nil && r.sentOn == nil {
			n++
		}
	}
	return n
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// isEnd reports whether the admin closed the stream in good order.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // gRPC returns io.EOF itself

// wakeSession makes the writer of the current stream look for work.
func (c *Client) wakeSession() {
	if c.session != nil {
		c.session.wakeUp()
	}
}

// beatSoon makes a heartbeat due, because the work has changed.
func (c *Client) beatSoon() {
	if c.session != nil {
		c.session.beat = true
		c.session.wakeUp()
	}
}

// observe remembers observations for the next stream moment; the oldest give
// way, as they are only for show.
func (c *Client) observe(all []Observation) {
	const most = 2000
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Clock.Now()
	for _, o := range all {
		c.observations = append(c.observations, o.wire(now))
	}
	if n := len(c.observations) - most; n > 0 {
		c.observations = append(c.observations[:0:0], c.observations[n:]...)
	}
	c.wakeSession()
}
