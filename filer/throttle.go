package filer

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/seaice/seaice/internal/clock"
)

// burst is how much of a second's bytes may pass at once after a pause.
const burst = 250 * time.Millisecond

// Throttle bounds the bytes of files that pass through the filers it wraps, read
// and written together. It is safe for concurrent use; all filers that one
// Throttle wraps share its rate.
type Throttle struct {
	clk clock.Clock

	mu   sync.Mutex
	rate int64
	// free is when the bytes taken so far will have been paid for.
	free time.Time
}

// NewThrottle returns a throttle of so many bytes a second; 0 is no limit.
func NewThrottle(clk clock.Clock, bytesPerSecond int64) *Throttle {
	return &Throttle{clk: clk, rate: bytesPerSecond}
}

// SetRate changes the bytes a second from now on; 0 is no limit.
func (t *Throttle) SetRate(bytesPerSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = bytesPerSecond
}

// take waits until n more bytes may pass. Bytes are paid for afterwards, so that
// one piece may be larger than what passes in a second.
func (t *Throttle) take(ctx context.Context, n int) error {
	t.mu.Lock()
	if t.rate <= 0 || n <= 0 {
		t.mu.Unlock()
		return nil
	}
	now := t.clk.Now()
	if least := now.Add(-burst); t.free.Before(least) {
		t.free = least
	}
	wait := t.free.Sub(now)
	t.free = t.free.Add(time.Duration(float64(n) / float64(t.rate) * float64(time.Second)))
	t.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return t.clk.Sleep(ctx, wait)
}

// Filer wraps fl: what is read from open files and written to new ones is
// throttled. Metadata calls are not.
func (t *Throttle) Filer(fl Filer) Filer { return &throttled{Filer: fl, t: t} }

type throttled struct {
	Filer
	t *Throttle
}

// Open implements Reader.
func (f *throttled) Open(ctx context.Context, p Path) (Object, error) {
	o, err := f.Filer.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	return &throttledObject{Object: o, ctx: ctx, t: f.t}, nil
}

// Create implements Writer.
func (f *throttled) Create(ctx context.Context, p Path, o CreateOptions) (Upload, error) {
	u, err := f.Filer.Create(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return &throttledUpload{Upload: u, ctx: ctx, t: f.t}, nil
}

type throttledObject struct {
	Object
	ctx context.Context
	t   *Throttle
}

// ReadAt implements io.ReaderAt.
func (o *throttledObject) ReadAt(b []byte, off int64) (int, error) {
	if err := o.t.take(o.ctx, len(b)); err != nil {
		return 0, err
	}
	return o.Object.ReadAt(b, off)
}

// Stream implements Object.
func (o *throttledObject) Stream(offset, length int64) io.ReadCloser {
	return &throttledStream{ReadCloser: o.Object.Stream(offset, length), ctx: o.ctx, t: o.t}
}

type throttledStream struct {
	io.ReadCloser
	ctx context.Context
	t   *Throttle
}

// Read implements io.Reader.
func (s *throttledStream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if werr := s.t.take(s.ctx, n); werr != nil && err == nil {
		err = werr
	}
	return n, err
}

type throttledUpload struct {
	Upload
	ctx context.Context
	t   *Throttle
}

// Write implements io.Writer.
func (u *throttledUpload) Write(b []byte) (int, error) {
	if err := u.t.take(u.ctx, len(b)); err != nil {
		return 0, err
	}
	return u.Upload.Write(b)
}
