package expire

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// key stands for a canonical path. Two paths with one key make the program keep
// a file it could remove, never the other way round.
type key [16]byte

func keyOf(p filer.Path) key { return xxh3.HashString128(string(p)).Bytes() }

// candidate is a path that an expiring snapshot has live.
type candidate struct {
	key key
	// at is where the spill file has the spelling, with the flags.
	at uint64
}

const (
	// secondary marks a less likely meaning of a spelling.
	secondary = 1 << 62
	// spared marks what is no candidate any more.
	spared = 1 << 63
	// offset is the rest.
	offset = secondary - 1
)

// candidates are the paths that may be freed, by hash: 24 bytes each in memory.
// The spellings are in a file without a name, in the order in which they came,
// each with the size of its file.
//
// The hashes lie in shards by their first byte, so that growing moves little at
// a time; a shard that is full is sorted and freed of repetitions before it
// grows, because rewritten manifests name the same files again and again.
type candidates struct {
	// dir is where the file goes; empty is the system's directory.
	dir    string
	shards [256][]candidate
	left   int

	spill  *os.File
	out    *bufio.Writer
	size   int64
	closed bool
}

// headBytes precede a spelling in the spill file: the file's size and the
// spelling's length.
const headBytes = 12

// note writes a spelling to the spill file and returns where.
func (c *candidates) note(spelling string, bytes int64) (int64, error) {
	if c.spill == nil {
		if err := c.create(); err != nil {
			return 0, err
		}
	}
	at := c.size
	var head [headBytes]byte
	binary.BigEndian.PutUint64(head[:], uint64(max(bytes, 0)))
	binary.BigEndian.PutUint32(head[8:], uint32(len(spelling)))
	_, err := c.out.Write(head[:])
	if err == nil {
		_, err = c.out.WriteString(spelling)
	}
	c.size += int64(headBytes + len(spelling))
	return at, fault.Wrap(fault.Transient, "write a spill file", err)
}

func (c *candidates) create() error {
	file, err := os.CreateTemp(c.dir, "seaice-expire-")
	if errors.Is(err, fs.ErrNotExist) && c.dir != "" {
		// A plan may be executed on another machine than it was made on.
		file, err = os.CreateTemp("", "seaice-expire-")
	}
	if err != nil {
		return fault.WithHint("see the setting sort_spill_dir", fault.Wrap(fault.Transient, "create a spill file", err))
	}
	// Without a name it goes with the process, however that ends.
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return fault.Wrap(fault.Transient, "unlink a spill file", err)
	}
	c.spill, c.out = file, bufio.NewWriterSize(file, 256<<10)
	return nil
}

// close gives the memory and the file back. What was freed is not known any more.
func (c *candidates) close() {
	if c.spill != nil {
		_ = c.spill.Close()
	}
	*c = candidates{dir: c.dir, closed: true}
}

// add makes a file a candidate under every path that its spelling may mean.
func (c *candidates) add(at int64, paths []filer.Path) {
	for i, p := range paths {
		x := candidate{key: keyOf(p), at: uint64(at)}
		if i > 0 {
			x.at |= secondary
		}
		shard := &c.shards[x.key[0]]
		if len(*shard) == cap(*shard) {
			*shard = unique(*shard)
			if n := len(*shard); n >= cap(*shard)/4*3 {
				*shard = append(make([]candidate, 0, n+max(4, n/2)), *shard...)
			}
		}
		*shard = append(*shard, x)
	}
}

// unique sorts a shard and leaves one candidate of each path, the likeliest
// meaning of the earliest spelling.
func unique(shard []candidate) []candidate {
	slices.SortFunc(shard, func(a, b candidate) int {
		if n := bytes.Compare(a.key[:], b.key[:]); n != 0 {
			return n
		}
		return cmp.Compare(a.at, b.at)
	})
	return slices.CompactFunc(shard, func(a, b candidate) bool { return a.key == b.key })
}

// settle ends the adding.
func (c *candidates) settle() error {
	for i := range c.shards {
		c.shards[i] = unique(c.shards[i])
		c.left += len(c.shards[i])
	}
	if c.out == nil {
		return nil
	}
	return fault.Wrap(fault.Transient, "write a spill file", c.out.Flush())
}

// find returns what there is about a path, or nil. Only what is settled can be
// found.
func (c *candidates) find(p filer.Path) *candidate {
	k := keyOf(p)
	shard := c.shards[k[0]]
	i, ok := slices.BinarySearchFunc(shard, k, func(x candidate, k key) int { return bytes.Compare(x.key[:], k[:]) })
	if !ok || shard[i].at&spared != 0 {
		return nil
	}
	return &shard[i]
}

// spare takes paths out of the candidates.
func (c *candidates) spare(paths []filer.Path) {
	for _, p := range paths {
		if x := c.find(p); x != nil {
			x.at |= spared
			c.left--
		}
	}
}

// free reports whether all the paths still are candidates.
func (c *candidates) free(paths []filer.Path) bool {
	for _, p := range paths {
		if c.find(p) == nil {
			return false
		}
	}
	return len(paths) > 0
}

// places are where the spill file has the files that are left, in order.
func (c *candidates) places() []int64 {
	out := make([]int64, 0, c.left)
	for _, shard := range c.shards {
		for _, x := range shard {
			if x.at&(spared|secondary) == 0 {
				out = append(out, int64(x.at&offset))
			}
		}
	}
	slices.Sort(out)
	return out
}

// memory is about what is taken, in bytes, once places is called.
func (c *candidates) memory() int64 {
	n := 0
	for _, shard := range c.shards {
		n += cap(shard)
	}
	return int64(n)*24 + int64(c.left)*8
}

// totals are the files left, and their bytes.
func (c *candidates) totals() (files, size int64, err error) {
	in := &spilled{c: c}
	for _, at := range c.places() {
		bytes, _, err := in.read(at)
		if err != nil {
			return 0, 0, err
		}
		files++
		size += bytes
	}
	return files, size, nil
}

// spilled reads records of the spill file in ascending order.
type spilled struct {
	c  *candidates
	in *bufio.Reader
	at int64
}

func (s *spilled) read(at int64) (size int64, spelling string, err error) {
	if s.in == nil {
		s.in = bufio.NewReaderSize(io.NewSectionReader(s.c.spill, at, s.c.size-at), 256<<10)
		s.at = at
	}
	var head [headBytes]byte
	_, err = s.in.Discard(int(at - s.at))
	if err == nil {
		_, err = io.ReadFull(s.in, head[:])
	}
	if err != nil {
		return 0, "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	b := make([]byte, min(int64(binary.BigEndian.Uint32(head[8:])), s.c.size))
	if _, err := io.ReadFull(s.in, b); err != nil {
		return 0, "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	s.at = at + int64(headBytes+len(b))
	return int64(binary.BigEndian.Uint64(head[:])), string(b), nil
}

// each calls fn with the spellings between two places of the spill file.
func (c *candidates) each(from, to int64, fn func(spelling string) error) error {
	in := &spilled{c: c}
	for at := from; at < to; at = in.at {
		_, spelling, err := in.read(at)
		if err == nil {
			err = fn(spelling)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batches calls fn with the spellings that are left, up to n at a time, in the
// order in which they came, which keeps directories together. fn may spare more.
func (c *candidates) batches(n int, fn func([]string) error) error {
	in := &spilled{c: c}
	for part := range slices.Chunk(c.places(), n) {
		batch := make([]string, 0, len(part))
		for _, at := range part {
			_, s, err := in.read(at)
			if err != nil {
				return err
			}
			batch = append(batch, s)
		}
		if err := fn(batch); err != nil {
			return err
		}
	}
	return nil
}
