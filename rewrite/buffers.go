package rewrite

import (
	"math/bits"
	"sync"
)

// buffers are buffers for pages that wait for their turn in the file, by the power
// of two that holds their capacity.
type buffers struct{ pools [32]sync.Pool }

// Buffers below smallest bytes are not worth being kept, those above largest not
// worth their memory.
const (
	smallestBuffer = 1 << 12
	largestBuffer  = 1 << 23
)

// get is an empty buffer for at least n bytes. It may hold what it was used for
// before, beyond its length.
func (b *buffers) get(n int) []byte {
	if n < smallestBuffer || n > largestBuffer {
		return make([]byte, 0, n)
	}
	class := bits.Len(uint(n - 1))
	if p, ok := b.pools[class].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// put takes back a buffer that get gave, from its begin. Nobody may use it any
// more.
func (b *buffers) put(buffer []byte) {
	n := cap(buffer)
	if n < smallestBuffer || n > largestBuffer || n&(n-1) != 0 {
		return
	}
	b.pools[bits.Len(uint(n-1))].Put(&buffer)
}
