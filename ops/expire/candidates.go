package expire

import (
	"bufio"
	"bytes"
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
	// bytes is the size of the file, or secondary for the less likely meanings of
	// a spelling.
	bytes int64
	// at is where the spill file has the spelling.
	at int64
}

const secondary = -1

// candidates are the paths that may be freed, by hash: 33 bytes each in memory.
// The spellings are in a file without a name, in the order in which they came.
type candidates struct {
	// dir is where the file goes; empty is the system's directory.
	dir   string
	files []candidate
	// live tells by index in files which ones still are candidates; it is made
	// by settle.
	live []bool
	left int

	spill  *os.File
	out    *bufio.Writer
	size   int64
	closed bool
}

// expect makes room for n candidates, within reason.
func (c *candidates) expect(n int64) { c.files = make([]candidate, 0, max(1<<10, min(n, 1<<20))) }

// note writes a spelling to the spill file and returns where.
func (c *candidates) note(spelling string) (int64, error) {
	if c.spill == nil {
		if err := c.create(); err != nil {
			return 0, err
		}
	}
	at := c.size
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(spelling)))
	_, err := c.out.Write(n[:])
	if err == nil {
		_, err = c.out.WriteString(spelling)
	}
	c.size += int64(len(n) + len(spelling))
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
func (c *candidates) add(at int64, paths []filer.Path, size int64) {
	for i, p := range paths {
		if len(c.files) == cap(c.files) {
			c.compact()
		}
		x := candidate{key: keyOf(p), bytes: max(size, 0), at: at}
		if i > 0 {
			x.bytes = secondary
		}
		c.files = append(c.files, x)
	}
}

// compact leaves one candidate of each path: rewritten manifests name the same
// files again and again. It grows the slice only when that was no use.
func (c *candidates) compact() {
	c.unique()
	if n := len(c.files); n > cap(c.files)/4*3 {
		c.files = slices.Grow(c.files, max(1<<10, n/2))
	}
}

func (c *candidates) unique() {
	slices.SortFunc(c.files, func(a, b candidate) int {
		if n := bytes.Compare(a.key[:], b.key[:]); n != 0 {
			return n
		}
		if (a.bytes == secondary) != (b.bytes == secondary) {
			return compare(b.bytes, a.bytes)
		}
		return compare(a.at, b.at)
	})
	c.files = slices.CompactFunc(c.files, func(a, b candidate) bool { return a.key == b.key })
}

// settle ends the adding.
func (c *candidates) settle() error {
	c.unique()
	c.live = slices.Repeat([]bool{true}, len(c.files))
	c.left = len(c.files)
	if c.out == nil {
		return nil
	}
	return fault.Wrap(fault.Transient, "write a spill file", c.out.Flush())
}

func (c *candidates) find(p filer.Path) (int, bool) {
	k := keyOf(p)
	return slices.BinarySearchFunc(c.files, k, func(x candidate, k key) int { return bytes.Compare(x.key[:], k[:]) })
}

// spare takes paths out of the candidates.
func (c *candidates) spare(paths []filer.Path) {
	for _, p := range paths {
		if i, ok := c.find(p); ok && c.live[i] {
			c.live[i] = false
			c.left--
		}
	}
}

// free reports whether all the paths still are candidates.
func (c *candidates) free(paths []filer.Path) bool {
	for _, p := range paths {
		if i, ok := c.find(p); !ok || !c.live[i] {
			return false
		}
	}
	return len(paths) > 0
}

// totals are the files left, and their bytes.
func (c *candidates) totals() (files, size int64) {
	for i := range c.files {
		if c.live[i] && c.files[i].bytes != secondary {
			files++
			size += c.files[i].bytes
		}
	}
	return files, size
}

// each calls fn with the spellings between two places of the spill file.
func (c *candidates) each(from, to int64, fn func(spelling string) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(c.spill, from, to-from), 64<<10)
	for {
		var n [4]byte
		if _, err := io.ReadFull(in, n[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fault.Wrap(fault.Transient, "read a spill file", err)
		}
		b := make([]byte, min(int64(binary.BigEndian.Uint32(n[:])), to-from))
		if _, err := io.ReadFull(in, b); err != nil {
			return fault.Wrap(fault.Transient, "read a spill file", err)
		}
		if err := fn(string(b)); err != nil {
			return err
		}
	}
}

// batches calls fn with the spellings that are left, up to n at a time, in the
// order in which they came, which keeps directories together.
func (c *candidates) batches(n int, fn func([]string) error) error {
	order := make([]int64, 0, c.left)
	for i := range c.files {
		if c.live[i] {
			order = append(order, c.files[i].at)
		}
	}
	slices.Sort(order)
	order = slices.Compact(order)
	batch := make([]string, 0, min(n, len(order)))
	for len(order) > 0 {
		part := order[:min(n, len(order))]
		order = order[len(part):]
		batch = batch[:0]
		for _, at := range part {
			s, err := c.spelling(at)
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

func (c *candidates) spelling(at int64) (string, error) {
	var n [4]byte
	if _, err := c.spill.ReadAt(n[:], at); err != nil {
		return "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	b := make([]byte, min(int64(binary.BigEndian.Uint32(n[:])), c.size))
	if _, err := io.ReadFull(io.NewSectionReader(c.spill, at+int64(len(n)), int64(len(b))), b); err != nil {
		return "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	return string(b), nil
}
