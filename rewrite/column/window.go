package column

import (
	"fmt"

	"github.com/seaice/seaice/fault"
)

// window reads a range of a file forward, in pieces, with the next piece being
// read while the current one is used.
type window struct {
	f   *File
	end int64
	// cur are the bytes from at on, which lie in memory.
	cur    []byte
	at     int64
	memory *Memory
	// ahead yields the piece after cur, nil when there is none being read.
	ahead chan piece
	// joined holds what lies in more than one piece, from joinedAt on, in both.
	joined   []byte
	joinedAt int64
	both     *Memory
	held     held
}

type piece struct {
	b      []byte
	memory *Memory
	err    error
}

// bytes are n bytes from position at, and the memory they lie in. They are valid
// until the next call, or as long as somebody holds the memory.
func (w *window) bytes(at int64, n int) ([]byte, *Memory, error) {
	if at < 0 || n < 0 || at > w.end || int64(n) > w.end-at {
		return nil, nil, fault.New(fault.Corrupt, fmt.Sprintf("it ends at %d, which is before %d bytes at %d", w.end, n, at))
	}
	if b := w.rest(at); len(b) >= n {
		return b[:n:n], w.memory, nil
	}
	if w.f.whole != nil {
		w.cur, w.at, w.memory = w.f.whole[:w.end:w.end], 0, w.f.memory
		return w.cur[at : at+int64(n) : at+int64(n)], w.memory, nil
	}
	if at < w.at && !w.isJoined(at) || at > w.at+int64(len(w.cur)) {
		w.drop()
		w.cur, w.at, w.joined = w.cur[:0], at, w.joined[:0]
	}
	if at == w.at+int64(len(w.cur)) && n <= w.f.o.Window {
		if err := w.advance(); err != nil {
			return nil, nil, err
		}
		if len(w.cur) >= n {
			return w.cur[:n:n], w.memory, nil
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
func (w *window) join(at int64, n int) ([]byte, *Memory, error) {
	if err := w.take(n); err != nil {
		return nil, nil, err
	}
	var have []byte
	if at < w.at {
		have = w.joined[at-w.joinedAt:]
	}
	into := w.both
	if into == nil || into.shared() || len(into.Bytes()) < n {
		into = NewMemory(n)
	}
	into.charged = false // pages that lay in it are written
	w.joined, w.joinedAt = into.Bytes()[:copy(into.Bytes(), have[:min(n, len(have))])], at
	if into != w.both {
		w.both.Release()
		w.both = into
	}
	for len(w.joined) < n {
		more := w.rest(at + int64(len(w.joined)))
		if len(more) == 0 {
			if err := w.advance(); err != nil {
				return nil, nil, err
			}
			continue
		}
		w.joined = append(w.joined, more[:min(len(more), n-len(w.joined))]...)
	}
	return w.joined[:n:n], w.both, nil
}

// take admits two pieces and n bytes that are joined.
func (w *window) take(n int) error {
	joined := n
	if w.both != nil {
		joined = max(n, len(w.both.Bytes()))
	}
	return w.held.grow(2*min(int64(w.f.o.Window), w.end-w.at) + int64(joined))
}

// advance makes the piece after cur the current one and begins to read the one
// after that.
func (w *window) advance() error {
	if err := w.take(0); err != nil {
		return err
	}
	next := w.at + int64(len(w.cur))
	p := piece{}
	if w.ahead != nil {
		p = <-w.ahead
		w.ahead = nil
	} else {
		p = w.read(next, len(w.cur) == 0)
	}
	w.memory.Release()
	w.cur, w.at, w.memory = p.b, next, p.memory
	if p.err != nil {
		w.cur = w.cur[:0]
		return p.err
	}
	if after := next + int64(len(w.cur)); after < w.end {
		ahead := make(chan piece, 1)
		w.ahead = ahead
		go func() { ahead <- w.read(after, false) }()
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
	ahead, at := make(chan piece, 1), w.at
	w.ahead = ahead
	go func() { ahead <- w.read(at, true) }()
	return nil
}

// read reads the piece at a position. The only one of its range is as long as two
// others, so that no page lies in both.
func (w *window) read(at int64, first bool) (p piece) {
	defer guard(&p.err)
	n := min(int64(w.f.o.Window), w.end-at)
	if first && w.end-at <= 2*n {
		n = w.end - at
	}
	if n <= 0 {
		return piece{err: fault.New(fault.Corrupt, fmt.Sprintf("it ends at %d", at))}
	}
	p.memory = NewMemory(int(n))
	p.b = p.memory.Bytes()[:n:n]
	p.err = w.f.readAt(p.b, at)
	return p
}

// drop waits for what is being read.
func (w *window) drop() {
	if w.ahead != nil {
		(<-w.ahead).memory.Release()
		w.ahead = nil
	}
}

// close gives the memory back.
func (w *window) close() {
	w.drop()
	w.memory.Release()
	w.both.Release()
	w.cur, w.joined, w.memory, w.both = nil, nil, nil, nil
	w.at = 0
	w.held.release()
}
