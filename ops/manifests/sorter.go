package rewritemanifests

import (
	"container/heap"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

const (
	// chunkEntries are held in memory at once. With spill files open beside, this
	// is what bounds memory.
	chunkEntries = 8192
	// peakBytes is what a run needs at most beyond an idle process.
	peakBytes = 96 << 20
)

// sorter orders the entries of one spec by partition. What does not fit into
// memory goes to runs on disk, which are manifests themselves.
type sorter struct {
	ctx   context.Context
	o     manifests.WriterOptions
	dir   string
	chunk []*manifests.Entry
	runs  []run
}

type run struct {
	file string
	m    *manifests.ManifestFile
}

func newSorter(ctx context.Context, o manifests.WriterOptions, spillDir string) *sorter {
	o.Codec = avro.Uncompressed
	return &sorter{ctx: ctx, o: o, dir: spillDir}
}

// add takes in a live entry.
func (s *sorter) add(e *manifests.Entry) error {
	s.chunk = append(s.chunk, e.Clone())
	if len(s.chunk) < chunkEntries {
		return nil
	}
	return s.spill()
}

func (s *sorter) sortChunk() {
	slices.SortStableFunc(s.chunk, func(a, b *manifests.Entry) int { return manifests.CompareTuples(a.Partition, b.Partition) })
}

func (s *sorter) spill() (err error) {
	s.sortChunk()
	if len(s.runs) == 0 {
		if s.dir, err = os.MkdirTemp(s.dir, "seaice-manifests-"); err != nil {
			return fault.WithHint("see the setting sort_spill_dir", fault.Wrap(fault.Transient, "make a directory for spill files", err))
		}
	}
	name := path.Join(s.dir, fmt.Sprintf("run-%06d", len(s.runs)))
	f, err := os.Create(name)
	if err != nil {
		return fault.Wrap(fault.Transient, "create spill file "+name, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fault.Wrap(fault.Transient, "close spill file "+name, cerr)
		}
	}()
	o := s.o
	o.Path = name
	w, err := manifests.NewWriter(f, o)
	if err != nil {
		return err
	}
	for _, e := range s.chunk {
		if err := w.Carry(e); err != nil {
			return err
		}
	}
	m, err := w.Close()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, run{file: name, m: m})
	s.chunk = s.chunk[:0]
	return nil
}

// close removes the spill files.
func (s *sorter) close() {
	if len(s.runs) > 0 {
		_ = os.RemoveAll(s.dir) // a directory of the system's temporary files
	}
}

// merge yields all entries in order of partition.
func (s *sorter) merge(to manifests.Sink) error {
	s.sortChunk()
	h := &mergeHeap{}
	defer h.close()
	for i, r := range s.runs {
		f, err := os.Open(r.file)
		if err != nil {
			return fault.Wrap(fault.Transient, "open spill file "+r.file, err)
		}
		if err := h.open(s.ctx, i, f, r.m); err != nil {
			return err
		}
	}
	heap.Init(h)
	for _, e := range s.chunk {
		// The chunk came last, so of equal partitions the runs' are first.
		if err := h.drain(to, func(x *manifests.Entry) bool { return manifests.CompareTuples(x.Partition, e.Partition) <= 0 }); err != nil {
			return err
		}
		if err := to.Carry(e); err != nil {
			return err
		}
	}
	return h.drain(to, func(*manifests.Entry) bool { return true })
}

// source is one run being read.
type source struct {
	n    int
	f    io.Closer
	next func() (*manifests.Entry, error, bool)
	stop func()
	head *manifests.Entry
}

type mergeHeap struct {
	live []*source
	all  []*source
}

func (h *mergeHeap) open(ctx context.Context, n int, f *os.File, m *manifests.ManifestFile) error {
	// A run is read as the manifest of a snapshot that is not committed: all of
	// its entries are EXISTING and hold everything themselves.
	m = m.Clone()
	m.Seq = manifests.Some(m.MinSeq.Or(0))
	s := &source{n: n, f: f}
	next, stop := pull(manifests.ReadManifest(ctx, f, m, manifests.ReadOptions{Projection: manifests.ProjectCarry}))
	s.next, s.stop = next, stop
	h.all = append(h.all, s)
	e, err, ok := s.next()
	if err != nil {
		return err
	}
	if ok {
		s.head = e
		h.live = append(h.live, s)
	}
	return nil
}

func (h *mergeHeap) close() {
	for _, s := range h.all {
		s.stop()
		_ = s.f.Close() // read only
	}
}

// drain carries entries as long as the least one satisfies want.
func (h *mergeHeap) drain(to manifests.Sink, want func(*manifests.Entry) bool) error {
	for len(h.live) > 0 && want(h.live[0].head) {
		s := h.live[0]
		if err := to.Carry(s.head); err != nil {
			return err
		}
		e, err, ok := s.next()
		switch {
		case err != nil:
			return err
		case !ok:
			heap.Pop(h)
		default:
			s.head = e
			heap.Fix(h, 0)
		}
	}
	return nil
}

// Len implements heap.Interface.
func (h *mergeHeap) Len() int { return len(h.live) }

// Less implements heap.Interface. Equal partitions keep the order they came in.
func (h *mergeHeap) Less(i, j int) bool {
	if c := manifests.CompareTuples(h.live[i].head.Partition, h.live[j].head.Partition); c != 0 {
		return c < 0
	}
	return h.live[i].n < h.live[j].n
}

// Swap implements heap.Interface.
func (h *mergeHeap) Swap(i, j int) { h.live[i], h.live[j] = h.live[j], h.live[i] }

// Push implements heap.Interface.
func (h *mergeHeap) Push(x any) { h.live = append(h.live, x.(*source)) }

// Pop implements heap.Interface.
func (h *mergeHeap) Pop() any {
	last := h.live[len(h.live)-1]
	h.live = h.live[:len(h.live)-1]
	return last
}
