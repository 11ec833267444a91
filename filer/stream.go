package filer

import (
	"context"
	"io"
	"sync"

	"github.com/seaice/seaice/fault"
)

// windowBytes is how much of a stream one read of it fetches.
const windowBytes = 2 << 20

// Stream returns a reader of the range that fetches the next windows while the
// caller works on one.
func (o *object) Stream(offset, length int64) io.ReadCloser {
	ctx, cancel := context.WithCancel(o.ctx)
	s := &stream{o: o, ctx: ctx, cancel: cancel}
	if offset < 0 {
		s.err = fault.New(fault.Unsupported, "stream of "+o.e.Path.String()+": negative offset")
		return s
	}
	s.next = min(offset, o.e.Size)
	s.stop = o.e.Size
	if length >= 0 {
		s.stop = s.next + min(length, o.e.Size-s.next)
	}
	s.depth = max(1, o.c.cfg.ReadAheadBytes/windowBytes)
	return s
}

type stream struct {
	o      *object
	ctx    context.Context
	cancel context.CancelFunc
	next   int64 // where the next window begins
	stop   int64
	depth  int
	ahead  []*window
	cur    *window
	rest   []byte
	err    error
	wg     sync.WaitGroup
}

// window is a part of a stream that is being fetched.
type window struct {
	buf  []byte
	err  error
	done chan struct{}
}

var windows = sync.Pool{New: func() any { b := make([]byte, windowBytes); return &b }}

func (s *stream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	for len(s.rest) == 0 {
		s.release()
		if s.fetch(); len(s.ahead) == 0 {
			s.err = io.EOF
			return 0, io.EOF
		}
		w := s.ahead[0]
		select {
		case <-w.done:
		case <-s.ctx.Done():
			s.err = fault.Wrap(fault.Canceled, "read "+s.o.e.Path.String(), context.Cause(s.ctx))
			return 0, s.err
		}
		s.ahead = s.ahead[1:]
		s.cur, s.rest = w, w.buf
		if w.err != nil {
			s.release()
			s.err = w.err
			return 0, s.err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// fetch starts windows until as many are on their way as the client allows.
func (s *stream) fetch() {
	for s.next < s.stop && len(s.ahead) < s.depth {
		n := min(windowBytes, s.stop-s.next)
		w := &window{done: make(chan struct{})}
		if n == windowBytes {
			w.buf = *windows.Get().(*[]byte)
		} else {
			w.buf = make([]byte, n)
		}
		at := s.next
		s.next += n
		s.ahead = append(s.ahead, w)
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			defer close(w.done)
			_, w.err = s.o.readAt(s.ctx, w.buf, at)
		}()
	}
}

// release gives the current window's buffer back.
func (s *stream) release() {
	if s.cur != nil && cap(s.cur.buf) == windowBytes {
		windows.Put(&s.cur.buf)
	}
	s.cur, s.rest = nil, nil
}

// Close ends the stream. The windows that were on their way are waited for.
func (s *stream) Close() error {
	s.cancel()
	s.wg.Wait()
	s.release()
	for _, w := range s.ahead {
		s.cur = w
		s.release()
	}
	s.ahead = nil
	if s.err == nil {
		s.err = errObjectClosed
	}
	return nil
}
