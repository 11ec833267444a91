package column

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Memory is a buffer in which bytes of a file lie, or a page made of them. Several
// may hold it; when nobody does any more it is used again. Clearing new memory
// costs more than filling it.
type Memory struct {
	buffer []byte
	// class is that of the pool it goes back to, or -1.
	class   int
	holders atomic.Int32
	charged bool
}

// Sizes of buffers are a power of two four to seven times, so that not more than a
// fifth of one is left over. Those of 16 MiB and more are not worth being kept.
const classes = 22 * 4

// pools are buffers that are not in use, by the class of their size.
var pools [classes]sync.Pool

// classOf is the least class whose buffers have n bytes, and how many they have.
func classOf(n int) (class, size int) {
	shift := max(bits.Len(uint(max(n, 1)-1))-3, 0)
	units := max((n+1<<shift-1)>>shift, 4)
	if units == 8 {
		shift, units = shift+1, 4
	}
	return shift*4 + units - 4, units << shift
}

// NewMemory is memory of n bytes, or somewhat more, which hold anything. The caller
// holds it.
func NewMemory(n int) *Memory {
	class, size := classOf(n)
	if class >= classes {
		class, size = -1, n
	} else if m, ok := pools[class].Get().(*Memory); ok {
		m.charged = false
		m.holders.Store(1)
		return m
	}
	m := &Memory{buffer: make([]byte, size), class: class}
	m.holders.Store(1)
	return m
}

// Bytes are those of the memory. Who holds it alone may write to them.
func (m *Memory) Bytes() []byte { return m.buffer }

// Hold keeps the memory from being used again until Release is called once more.
func (m *Memory) Hold() { m.holders.Add(1) }

// Release ends what Hold or NewMemory began. Nil is allowed.
func (m *Memory) Release() {
	if m == nil || m.holders.Add(-1) > 0 || m.class < 0 {
		return
	}
	pools[m.class].Put(m)
}

// shared reports that the caller is not the only one who holds it.
func (m *Memory) shared() bool { return m.holders.Load() > 1 }

// Charge is how many bytes are kept by holding the memory, and 0 when it is called
// once more: pages that share their memory take it once. It is for one goroutine.
func (m *Memory) Charge() int64 {
	if m.charged {
		return 0
	}
	m.charged = true
	return int64(len(m.buffer))
}

// kept is the memory of a file that has been read whole, which the file takes from
// the budget and nobody uses again.
func kept() *Memory {
	m := &Memory{class: -1, charged: true}
	m.holders.Store(1)
	return m
}
