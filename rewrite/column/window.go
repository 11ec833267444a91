package column

import (
	"fmt"
	"slices"

	"github.com/seaice/seaice/fault"
)

// window reads a range of a file forward, in pieces, with the next piece being
// read while the current one is used.
type window struct {
	f   *File
	end int64
	// cur are the bytes from at on.
	cur []byte
	at  int64
	// ahead yields the piece after cur, nil when there is none being read.
	ahead chan piece
	spare []byte
	// joined holds what lies in more than one piece, from joinedAt on.
	joined   []byte
	joinedAt int64
	held     held
}

type piece struct {
	b   []byte
	err error
}

// bytes are n bytes from position at. They are valid until the next call.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	if at < 0 || n < 0 || at > w.end || int64(n) > w.end-at {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("it ends at %d, which is before %d bytes at %d", w.end, n, at))
	}
	if b := w.rest(at); len(b) >= n {
		return b[:n:n], nil
	}
	if w.f.whole != nil {
		w.cur, w.at = w.f.whole[:w.end:w.end], 0
		return w.cur[at : at+int64(n) : at+int64(n)], nil
	}
	if at < w.at && !w.isJoined(at) || at > w.at+int64(len(w.cur)) {
		w.drop()
		w.cur, w.at, w.joined = w.cur[:0], at, w.joined[:0]
	}
	if at == w.at+int64(len(w.cur)) && n <= w.f.o.Window {
		if err := w.advance(); err != nil {
			return nil, err
		}
		if len(w.cur) >= n {
			return w.cur[:n:n], nil
		}
	}
	return w.join(at, n)
}

// rest are the bytes from at on that are there.
func (w *window) rest(at int64) []byte {
	if at < w.at || at >= w.at+int64(len(w.cur)) {
		return nil
	}
	return w.cur[at-w.at:]
}

// isJoined reports that the bytes from at to the current piece are in joined.
func (w *window) isJoined(at int64) bool {
	return at >= w.joinedAt && at < w.joinedAt+int64(len(w.joined))
}

// join copies n bytes from at on and reads pieces until all are there.
func (w *window) join(at int64, n int) ([]byte, error) {
	if err := w.take(n); err != nil {
		return nil, err
	}
	if at < w.at {
		w.joined = w.joined[:copy(w.joined, w.joined[at-w.joinedAt:])]
	} else {
		w.joined = w.joined[:0]
	}
	w.joined, w.joinedAt = slices.Grow(w.joined, max(0, n-len(w.joined))), at
	for len(w.joined) < n {
		more := w.rest(at + int64(len(w.joined)))
		if len(more) == 0 {
			if err := w.advance(); err != nil {
				return nil, err
			}
			continue
		}
		w.joined = append(w.joined, more[:min(len(more), n-len(w.joined))]...)
	}
	return w.joined[:n:n], nil
}

// take admits two pieces and n bytes that are joined.
func (w *window) take(n int) error {
	return w.held.grow(2*min(int64(w.f.o.Window), w.end-w.at) + int64(max(n, cap(w.joined))))
}

// advance makes the piece after cur the current one and begins to read the one
// after that.
func (w *window) advance() error {
	if err := w.take(0); err != nil {
		return err
	}
	next := w.at + int64(len(w.cur))
	old := w.cur
	p := piece{}
	if w.ahead != nil {
		p = <-w.ahead
		w.ahead = nil
	} else {
		p = w.read(w.spare, next)
	}
	w.cur, w.at, w.spare = p.b, next, old
	if p.err != nil {
		w.cur = w.cur[:0]
		return p.err
	}
	if after := next + int64(len(w.cur)); after < w.end {
		ahead, spare := make(chan piece, 1), w.spare
		w.ahead, w.spare = ahead, nil
		go func() { ahead <- w.read(spare, after) }()
	}
	return nil
}

// start begins to read the first piece.
func (w *window) start() error {
	if w.f.whole != nil || w.ahead != nil || len(w.cur) > 0 || w.at >= w.end {
		return nil
	}
	if err := w.take(0); err != nil {
		return err
	}
	ahead, spare, at := make(chan piece, 1), w.spare, w.at
	w.ahead, w.spare = ahead, nil
	go func() { ahead <- w.read(spare, at) }()
	return nil
}

// read reads the piece at a position into b if that is large enough.
func (w *window) read(b []byte, at int64) (p piece) {
	defer guard(&p.err)
	n := int(min(int64(w.f.o.Window), w.end-at))
	if n <= 0 {
		return piece{err: fault.New(fault.Corrupt, fmt.Sprintf("it ends at %d", at))}
	}
	if cap(b) < n {
		b = piecePool.get(n)
	}
	p.b = b[:n]
	p.err = w.f.readAt(p.b, at)
	return p
}

// drop waits for what is being read.
func (w *window) drop() {
	if w.ahead != nil {
		w.spare = (<-w.ahead).b
		w.ahead = nil
	}
}

// close gives the memory back.
func (w *window) close() {
	w.drop()
	if w.f.whole == nil {
		piecePool.put(w.cur)
		piecePool.put(w.spare)
	}
	w.cur, w.spare, w.joined = nil, nil, nil
	w.at = 0
	w.held.release()
}
