package filer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/seaice/seaice/fault"
)

const (
	dialTimeout      = 5 * time.Second
	headerTimeout    = 30 * time.Second
	keepaliveTime    = 60 * time.Second // weed's own; its servers refuse shorter ones
	keepaliveTimeout = 20 * time.Second
	// callTimeout bounds one attempt of a call with one answer.
	callTimeout = 60 * time.Second
	// remoteTimeout bounds one attempt to make the filer fetch a remote object.
	remoteTimeout = 30 * time.Minute

	backoffFirst = 50 * time.Millisecond
	backoffMax   = 3 * time.Second
)

var errClosed = errors.New("filer client is closed")

// backoff waits longer from one attempt to the next, by a random part, until a
// time has passed since it was made.
type backoff struct {
	c     *Client
	until time.Time
	next  time.Duration
}

func (c *Client) backoff(limit time.Duration) *backoff {
	return &backoff{c: c, until: c.clk.Now().Add(limit), next: backoffFirst}
}

// again waits before the next attempt and reports whether there is to be one.
func (b *backoff) again(ctx context.Context) bool {
	d := b.next/2 + rand.N(b.next/2+1)
	if b.c.closed.Load() || b.c.clk.Now().Add(d).After(b.until) {
		return false
	}
	b.next = min(2*b.next, backoffMax)
	return b.c.clk.Sleep(ctx, d) == nil
}

// reset is called after progress.
func (b *backoff) reset() {
	b.next, b.until = backoffFirst, b.c.clk.Now().Add(b.c.cfg.RetryFor)
}

// rpc is one attempt of a call on one filer.
type rpc func(ctx context.Context, n *node, opts ...grpc.CallOption) error

// read runs an idempotent call until it has an answer that repeating would not
// change, on one filer after the other.
func (c *Client) read(ctx context.Context, doing string, call rpc) error {
	return c.readWithin(ctx, callTimeout, doing, call)
}

// readWithin is read with another bound on one attempt.
func (c *Client) readWithin(ctx context.Context, limit time.Duration, doing string, call rpc) error {
	b := c.backoff(c.cfg.RetryFor)
	for {
		n := c.node()
		_, err := c.attempt(ctx, n, limit, doing, reads, call)
		if fault.Of(err) != fault.Transient {
			return err
		}
		c.leave(n)
		if !b.again(ctx) {
			return gaveUp(ctx, err)
		}
	}
}

// change runs a call that must not be repeated. It goes on to another filer
// only while the request cannot have reached one.
func (c *Client) change(ctx context.Context, doing string, call rpc) error {
	b := c.backoff(c.cfg.RetryFor)
	for {
		n := c.node()
		sent, err := c.attempt(ctx, n, callTimeout, doing, changes, call)
		if sent || fault.Of(err) != fault.Transient {
			return err
		}
		c.leave(n)
		if !b.again(ctx) {
			return gaveUp(ctx, err)
		}
	}
}

// attempt runs a call once and reports whether it can have reached the filer.
func (c *Client) attempt(ctx context.Context, n *node, limit time.Duration, doing string, e effect, call rpc) (sent bool, err error) {
	if ctx.Err() != nil {
		return false, fault.Wrap(fault.Canceled, doing, context.Cause(ctx))
	}
	if c.closed.Load() {
		return false, fault.Wrap(fault.Canceled, doing, errClosed)
	}
	actx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// gRPC names the peer as soon as an attempt has got a stream to it; without
	// one nothing was sent.
	var p peer.Peer
	err = call(actx, n, grpc.Peer(&p))
	sent = err == nil || p.Addr != nil
	if _, own := err.(*fault.Error); own { //nolint:errorlint // the call's own verdict, not wrapped by gRPC
		return sent, err
	}
	return sent, answered(ctx, doing, e, sent, err)
}

// gaveUp is the error of a call whose time for attempts is over.
func gaveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, "", err)
	}
	return err
}
