package column

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/seaice/seaice/fault"
)

// Budget is a number of bytes of memory that several readers and writers share.
// What is needed is taken before it is allocated, and given back. A nil Budget
// has no bound. It is safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Take takes n bytes or, if there are not as many left, none: fault.TooLarge.
func (b *Budget) Take(n int64) error {
	if b == nil || n == 0 {
		return nil
	}
	if used := b.used.Add(n); used > b.limit || n < 0 {
		b.used.Add(-n)
		return fault.New(fault.TooLarge, fmt.Sprintf("%d bytes of memory are needed beside %d, of %d at most", n, used-n, b.limit))
	}
	return nil
}

// Give gives n bytes back.
func (b *Budget) Give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

// Raise makes the budget n bytes larger. It is called before it is used.
func (b *Budget) Raise(n int64) { b.limit += n }

// Left is the number of bytes that may still be taken.
func (b *Budget) Left() int64 {
	if b == nil {
		return math.MaxInt64
	}
	return b.limit - b.used.Load()
}

// Used is the number of bytes taken.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// held is what one owner has taken of a budget.
type held struct {
	budget *Budget
	n      int64
}

// grow makes sure that n bytes are taken.
func (h *held) grow(n int64) error {
	if n <= h.n {
		return nil
	}
	if err := h.budget.Take(n - h.n); err != nil {
		return err
	}
	h.n = n
	return nil
}

// shrink gives back what is taken beyond n bytes.
func (h *held) shrink(n int64) {
	if n < h.n {
		h.budget.Give(h.n - n)
		h.n = n
	}
}

func (h *held) release() {
	h.budget.Give(h.n)
	h.n = 0
}
