package expire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// key stands for a canonical path. Two paths with one key make the program keep
// a file it could remove, never the other way round.
type key [16]byte

func keyOf(p filer.Path) key { return xxh3.HashString128(string(p)).Bytes() }

// candidate is a file that an expiring snapshot had live.
type candidate struct {
	key   key
	bytes int64
	seq   iceberg.SeqNum
	// at is where the spill file has the path.
	at int64
}

// freed works out which files nothing retained reaches. Paths are on disk; in
// memory a candidate takes 40 bytes.
type freed struct {
	r   filer.Reader
	loc *iceberg.Locator

	// known are the snapshots that were looked at, and whether they stay.
	known map[iceberg.SnapshotID]bool
	// kept and gone are manifests by path: those of retained snapshots, and those
	// of expiring ones only.
	kept, gone map[string]*manifests.ManifestFile
	// lists and their sizes, by spelling.
	keptLists, goneLists map[string]int64
	specs                map[iceberg.SpecID]bool

	files []candidate
	live  []bool // by index in files: still a candidate
	left  int
	// floor is the least file sequence number when floorLeft were left.
	floor     iceberg.SeqNum
	floorLeft int
	spill     *os.File
	out       *bufio.Writer
	size      int64
	dir       string

	// blocked says why no file may be removed, if so.
	blocked error
	reasons []ops.Reason
	read    int64
}

func newFreed(r filer.Reader, loc *iceberg.Locator, dir string) *freed {
	return &freed{
		r: r, loc: loc, dir: dir, known: map[iceberg.SnapshotID]bool{},
		kept: map[string]*manifests.ManifestFile{}, gone: map[string]*manifests.ManifestFile{},
		keptLists: map[string]int64{}, goneLists: map[string]int64{}, specs: map[iceberg.SpecID]bool{},
	}
}

// passing reports whether an error may go away by itself; then planning fails
// instead of concluding anything.
func passing(err error) bool {
	switch fault.Of(err) {
	case fault.Transient, fault.Canceled, fault.Unknown:
		return true
	}
	return false
}

// survey reads the manifest lists of all snapshots, each list once.
func (f *freed) survey(ctx context.Context, m *iceberg.Metadata, expiring map[iceberg.SnapshotID]bool) error {
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		f.known[s.ID] = !expiring[s.ID]
		if expiring[s.ID] {
			continue
		}
		if err := f.retainList(ctx, s); err != nil {
			return err
		}
	}
	for i := range m.Snapshots {
		if s := &m.Snapshots[i]; expiring[s.ID] {
			if err := f.expireList(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *freed) retainList(ctx context.Context, s *iceberg.Snapshot) error {
	if _, seen := f.keptLists[s.ManifestList]; seen && s.ManifestList != "" {
		return nil
	}
	size, err := f.list(ctx, s, func(m *manifests.ManifestFile) {
		if f.kept[m.Path] == nil {
			f.kept[m.Path] = m
			f.specs[m.SpecID] = true
		}
	})
	f.keptLists[s.ManifestList] = size
	if err == nil || passing(err) {
		return err
	}
	f.block(fmt.Errorf("manifest list of retained snapshot %d: %w", s.ID, err))
	return nil
}

func (f *freed) expireList(ctx context.Context, s *iceberg.Snapshot) error {
	if _, kept := f.keptLists[s.ManifestList]; kept && s.ManifestList != "" {
		return nil
	}
	if _, seen := f.goneLists[s.ManifestList]; seen && s.ManifestList != "" {
		return nil
	}
	size, err := f.list(ctx, s, func(m *manifests.ManifestFile) {
		if f.kept[m.Path] == nil && f.gone[m.Path] == nil {
			f.gone[m.Path] = m
		}
	})
	if s.ManifestList != "" {
		f.goneLists[s.ManifestList] = size
	}
	if err == nil || passing(err) {
		return err
	}
	f.unread("unreadable-expiring-list", fmt.Sprintf("snapshot %d", s.ID), err)
	return nil
}

func (f *freed) block(err error) {
	if f.blocked == nil {
		f.blocked = err
	}
}

// unread notes something of an expiring snapshot that cannot be read. Removing
// the snapshot is the cure; its files are left to the orphan scan.
func (f *freed) unread(code, subject string, err error) {
	f.reasons = append(f.reasons, ops.Reason{Code: code, Subject: subject, Count: 1,
		Text: "its files are left to remove_orphans: " + err.Error()})
}

// maxListBytes bounds a manifest list.
const maxListBytes = 256 << 20

func (f *freed) list(ctx context.Context, s *iceberg.Snapshot, see func(*manifests.ManifestFile)) (int64, error) {
	if s.ManifestList == "" {
		for m := range manifests.OfSnapshot(ctx, f.r, f.loc, s) {
			see(m)
		}
		return 0, nil
	}
	e, err := f.loc.Find(ctx, f.r, s.ManifestList)
	if filer.NotFound(err) {
		err = fault.Wrap(fault.Corrupt, s.ManifestList, err)
	}
	if err != nil {
		return 0, err
	}
	content, _, err := filer.ReadAll(ctx, f.r, e.Path, maxListBytes)
	if err != nil {
		return e.Size, err
	}
	f.read += e.Size
	for m, err := range manifests.ReadList(ctx, bytes.NewReader(content), s.ManifestList) {
		if err != nil {
			return e.Size, err
		}
		see(m)
	}
	return e.Size, nil
}

// collect reads the manifests that only expiring snapshots reach, and then
// crosses out what a retained manifest has live.
func (f *freed) collect(ctx context.Context) error {
	n := int64(0)
	for _, m := range f.gone {
		files, _ := m.LiveFiles()
		n += min(files, 1<<24)
	}
	f.files = make([]candidate, 0, min(n, 1<<26))
	for path, m := range f.gone {
		err := f.expireManifest(ctx, m)
		switch {
		case err == nil:
		case passing(err):
			return err
		default:
			f.unread("unreadable-expiring-manifest", path, err)
		}
	}
	if err := f.settle(); err != nil {
		return err
	}
	// Newest first: what was rewritten lately is where a file is likely to live on.
	order := make([]*manifests.ManifestFile, 0, len(f.kept))
	for _, m := range f.kept {
		order = append(order, m)
	}
	slices.SortFunc(order, func(a, b *manifests.ManifestFile) int { return int(b.Seq.Value - a.Seq.Value) })
	for _, m := range order {
		if f.blocked != nil || f.left == 0 {
			break
		}
		if err := f.crossOut(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (f *freed) entries(ctx context.Context, m *manifests.ManifestFile, see func(*manifests.Entry, []filer.Path) error) error {
	f.read += m.Length
	for e, err := range manifests.EntriesOf(ctx, f.r, f.loc, m, manifests.ReadOptions{Projection: manifests.ProjectPath}) {
		if err != nil {
			return err
		}
		if !e.Live() {
			continue
		}
		paths, err := f.loc.Candidates(e.Path)
		if err != nil {
			return err
		}
		if err := see(e, paths); err != nil {
			return err
		}
	}
	return nil
}

func (f *freed) expireManifest(ctx context.Context, m *manifests.ManifestFile) error {
	return f.entries(ctx, m, func(e *manifests.Entry, paths []filer.Path) error {
		for _, p := range paths {
			if f.loc.Foreign(p) {
				continue // never this table's to remove
			}
			if err := f.put(p, e.Bytes, e.FileSeq.Or(0)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *freed) put(p filer.Path, size int64, seq iceberg.SeqNum) error {
	if f.spill == nil {
		file, err := os.CreateTemp(f.dir, "seaice-expire-")
		if err != nil {
			return fault.WithHint("see the setting sort_spill_dir", fault.Wrap(fault.Transient, "create a spill file", err))
		}
		// Without a name it goes with the process, however that ends.
		if err := os.Remove(file.Name()); err != nil {
			return fault.Wrap(fault.Transient, "unlink a spill file", err)
		}
		f.spill, f.out = file, bufio.NewWriterSize(file, 256<<10)
	}
	f.files = append(f.files, candidate{key: keyOf(p), bytes: size, seq: seq, at: f.size})
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(p)))
	f.size += int64(len(n) + len(p))
	_, err := f.out.Write(n[:])
	if err == nil {
		_, err = f.out.WriteString(string(p))
	}
	return fault.Wrap(fault.Transient, "write a spill file", err)
}

// settle sorts the candidates and leaves one of each path.
func (f *freed) settle() error {
	if f.out != nil {
		if err := f.out.Flush(); err != nil {
			return fault.Wrap(fault.Transient, "write a spill file", err)
		}
	}
	slices.SortFunc(f.files, func(a, b candidate) int { return bytes.Compare(a.key[:], b.key[:]) })
	f.files = slices.CompactFunc(f.files, func(a, b candidate) bool { return a.key == b.key })
	f.live = make([]bool, len(f.files))
	for i := range f.live {
		f.live[i] = true
	}
	f.left = len(f.files)
	return nil
}

// crossOut takes out of the candidates what retained manifest m has live. It may
// be skipped only if it was written before any candidate was added (F094): its
// least sequence number says nothing, because a path may be added again.
func (f *freed) crossOut(ctx context.Context, m *manifests.ManifestFile) error {
	if seq, ok := m.Seq.Get(); ok && m.Seq.From == manifests.Stored && seq < f.least() {
		return nil
	}
	err := f.entries(ctx, m, func(_ *manifests.Entry, paths []filer.Path) error {
		for _, p := range paths {
			f.spare(p)
		}
		return nil
	})
	if err == nil || passing(err) {
		return err
	}
	f.block(fmt.Errorf("manifest %s of a retained snapshot: %w", m.Path, err))
	return nil
}

// least is at most the least file sequence number among the candidates. It is
// worked out again only after a tenth of them went.
func (f *freed) least() iceberg.SeqNum {
	if f.floorLeft > 0 && f.left*10 > f.floorLeft*9 {
		return f.floor
	}
	f.floor, f.floorLeft = 1<<63-1, f.left
	for i, c := range f.files {
		if f.live[i] {
			f.floor = min(f.floor, c.seq)
		}
	}
	return f.floor
}

func (f *freed) spare(p filer.Path) {
	k := keyOf(p)
	i, ok := slices.BinarySearchFunc(f.files, k, func(c candidate, k key) int { return bytes.Compare(c.key[:], k[:]) })
	if ok && f.live[i] {
		f.live[i] = false
		f.left--
	}
}

// totals are the data and delete files left, and their bytes.
func (f *freed) totals() (files, size int64) {
	for i, c := range f.files {
		if f.live[i] {
			files++
			size += c.bytes
		}
	}
	return files, size
}

// batches calls fn with the paths that are left, some thousands at a time. They
// come in the order they were found, which keeps directories together.
func (f *freed) batches(n int, fn func([]filer.Path) error) error {
	if f.spill == nil {
		return nil
	}
	order := make([]int64, 0, f.left)
	for i, c := range f.files {
		if f.live[i] {
			order = append(order, c.at)
		}
	}
	slices.Sort(order)
	batch := make([]filer.Path, 0, n)
	for _, at := range order {
		p, err := f.path(at)
		if err != nil {
			return err
		}
		// It may have been spared since the batch before.
		if !f.wanted(p) {
			continue
		}
		if batch = append(batch, p); len(batch) == n {
			if err := fn(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return fn(batch)
}

func (f *freed) wanted(p filer.Path) bool {
	k := keyOf(p)
	i, ok := slices.BinarySearchFunc(f.files, k, func(c candidate, k key) int { return bytes.Compare(c.key[:], k[:]) })
	return ok && f.live[i]
}

func (f *freed) path(at int64) (filer.Path, error) {
	var n [4]byte
	if _, err := f.spill.ReadAt(n[:], at); err != nil {
		return "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	b := make([]byte, min(binary.BigEndian.Uint32(n[:]), 1<<20))
	if _, err := f.spill.ReadAt(b, at+4); err != nil && err != io.EOF { //nolint:errorlint // ReadAt answers the bare value
		return "", fault.Wrap(fault.Transient, "read a spill file", err)
	}
	return filer.Path(b), nil
}
