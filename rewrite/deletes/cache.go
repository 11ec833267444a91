package deletes

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/rewrite/column"
)

// Cache keeps delete files as they are stored, so that the units of a run that
// share deletes read them once. What a file unfolds to has no bound, what it is
// stored in has. Files are immutable by the table format: one that was read is
// not looked at again. It is safe for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	max int64

	mu      sync.Mutex
	used    int64
	entries map[filer.Path]*cached
	recent  []filer.Path // the least recently used first
}

type cached struct {
	once sync.Mutex // held while the file is read
	size int64
	b    []byte // nil until it is read
}

// NewCache keeps files of up to so many bytes together, and none of more than
// half of that.
func NewCache(maxBytes int64) *Cache {
	return &Cache{max: maxBytes, entries: map[filer.Path]*cached{}}
}

// open opens a file, from memory if it is there.
func (c *Cache) open(ctx context.Context, r filer.Reader, at filer.Path) (column.Input, func(), error) {
	if c != nil {
		if e := c.get(at); e != nil {
			e.once.Lock()
			defer e.once.Unlock()
			if e.b != nil {
				return bytes.NewReader(e.b), func() {}, nil
			}
		}
	}
	o, err := r.Open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = o.Close() } // only read
	if c == nil {
		return o, done, nil
	}
	e := c.reserve(at, o.Size())
	if e == nil {
		return o, done, nil
	}
	e.once.Lock()
	defer e.once.Unlock()
	if e.b == nil {
		b := make([]byte, e.size)
		if err := readAt(o, b, 0); err != nil {
			done()
			c.drop(at, e)
			return nil, nil, err
		}
		e.b = b
	}
	done()
	return bytes.NewReader(e.b), func() {}, nil
}

func (c *Cache) get(at filer.Path) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[at]
	if e != nil {
		c.touch(at)
	}
	return e
}

func (c *Cache) touch(at filer.Path) {
	if i := slices.Index(c.recent, at); i >= 0 {
		c.recent = slices.Delete(c.recent, i, i+1)
	}
	c.recent = append(c.recent, at)
}

// reserve makes room for a file; nil if it is too large to be kept.
func (c *Cache) reserve(at filer.Path, size int64) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[at]; e != nil {
		c.touch(at)
		return e
	}
	if size > c.max/2 {
		return nil
	}
	for c.used+size > c.max {
		oldest := c.recent[0]
		c.used -= c.entries[oldest].size
		delete(c.entries, oldest)
		c.recent = c.recent[1:]
	}
	e := &cached{size: size}
	c.entries[at], c.used = e, c.used+size
	c.touch(at)
	return e
}

func (c *Cache) drop(at filer.Path, e *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries[at] == e {
		delete(c.entries, at)
		c.used -= e.size
		c.recent = slices.DeleteFunc(c.recent, func(p filer.Path) bool { return p == at })
	}
}
