package filer

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
)

// view is a run of a file's bytes that lies in one chunk. What no view covers
// is zero.
type view struct {
	start, stop int64
	// skip is where start lies within the chunk.
	skip  int64
	chunk *filer_pb.FileChunk
}

// viewsOf resolves chunks that overlap: at every offset the chunk that was
// modified last counts. Of chunks modified at the same time the one that
// begins first counts until it ends. The views are in order, do not overlap and
// end at size.
func viewsOf(p Path, chunks []*filer_pb.FileChunk, size int64) ([]view, error) {
	order := make([]*filer_pb.FileChunk, 0, len(chunks))
	for _, c := range chunks {
		if err := checkChunk(p, c); err != nil {
			return nil, err
		}
		if c.GetSize() > 0 && c.GetOffset() < size {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b *filer_pb.FileChunk) int { return cmp.Compare(a.GetOffset(), b.GetOffset()) })

	// A sweep over the offsets: open holds the chunks that have begun, the one
	// that counts on top.
	var out []view
	var open openChunks
	at := int64(0)
	for next := 0; next < len(order) || open.Len() > 0; {
		if open.Len() == 0 {
			at = max(at, order[next].GetOffset())
		}
		for next < len(order) && order[next].GetOffset() <= at {
			heap.Push(&open, openChunk{order[next], next})
			next++
		}
		top := open[0]
		stop := min(end(top.chunk), size)
		if stop <= at {
			heap.Pop(&open)
			continue
		}
		if next < len(order) {
			stop = min(stop, order[next].GetOffset())
		}
		out = appendView(out, view{start: at, stop: stop, skip: at - top.chunk.GetOffset(), chunk: top.chunk})
		at = stop
	}
	return out, nil
}

// appendView joins views that continue each other in one chunk.
func appendView(out []view, v view) []view {
	if n := len(out); n > 0 && out[n-1].chunk == v.chunk && out[n-1].stop == v.start {
		out[n-1].stop = v.stop
		return out
	}
	return append(out, v)
}

func end(c *filer_pb.FileChunk) int64 { return c.GetOffset() + int64(c.GetSize()) }

// checkChunk refuses chunks whose extent makes no sense and those whose bytes
// cannot be had as written.
func checkChunk(p Path, c *filer_pb.FileChunk) error {
	id := c.GetFileIdString()
	if c.GetOffset() < 0 || c.GetSize() > math.MaxInt64 || c.GetOffset() > math.MaxInt64-int64(c.GetSize()) {
		return fault.New(fault.Corrupt, fmt.Sprintf("chunk %s of %s has offset %d and size %d", id, p, c.GetOffset(), c.GetSize()))
	}
	if t := c.GetSseType(); t != filer_pb.SSEType_NONE {
		return fault.New(fault.Unsupported, fmt.Sprintf("%s is encrypted by server-side encryption of type %s (chunk %s)", p, t, id))
	}
	if _, _, err := parseFid(id); err != nil {
		return fault.Wrap(fault.Corrupt, "chunk of "+p.String(), err)
	}
	return nil
}

// within returns the views that hold bytes of [start, stop).
func within(views []view, start, stop int64) []view {
	i := sort.Search(len(views), func(i int) bool { return views[i].stop > start })
	j := i
	for j < len(views) && views[j].start < stop {
		j++
	}
	return views[i:j]
}

type openChunk struct {
	chunk *filer_pb.FileChunk
	index int
}

// openChunks is a heap with the chunk that counts on top.
type openChunks []openChunk

func (h openChunks) Len() int { return len(h) }
func (h openChunks) Less(i, j int) bool {
	if a, b := h[i].chunk.GetModifiedTsNs(), h[j].chunk.GetModifiedTsNs(); a != b {
		return a > b
	}
	return h[i].index < h[j].index
}
func (h openChunks) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *openChunks) Push(x any)   { *h = append(*h, x.(openChunk)) }
func (h *openChunks) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
