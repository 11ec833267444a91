package column

import (
	"math/bits"
	"sync"
)

// pieces are buffers of pieces that are not in use, by the power of two that
// holds their length. Clearing new memory costs more than filling it.
type pieces struct{ pools [32]sync.Pool }

var piecePool pieces

// get is a buffer of n bytes, which hold anything.
func (p *pieces) get(n int) []byte {
	class := bits.Len(uint(max(n, 1) - 1))
	if class >= len(p.pools) {
		return make([]byte, n)
	}
	if b, ok := p.pools[class].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, 1<<class)
}

// put takes a buffer that get gave.
func (p *pieces) put(b []byte) {
	if n := cap(b); n > 0 && n&(n-1) == 0 && bits.Len(uint(n-1)) < len(p.pools) {
		b = b[:0]
		p.pools[bits.Len(uint(n-1))].Put(&b)
	}
}
