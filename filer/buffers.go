package filer

import "sync"

// buffers are reused blocks of one length for chunks on their way out.
type buffers struct {
	bytes int
	pool  sync.Pool
}

func newBuffers(bytes int) *buffers { return &buffers{bytes: bytes} }

func (b *buffers) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, b.bytes)
}

func (b *buffers) put(p []byte) {
	p = p[:b.bytes]
	b.pool.Put(&p)
}
