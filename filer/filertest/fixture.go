package filertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/filer"
)

// The functions of this file change or show the state directly, as a peer or an
// operator would. They are no calls: they have no number, no fault strikes them
// and they work on a dead handle. Changes show in the feed unless said
// otherwise. They panic on a path that the filer would refuse.

// PutFile writes a file, replacing what is there, and returns its entry.
func (f *Filer) PutFile(p filer.Path, content []byte) *filer.Entry {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	pb := f.s.fresh(p, filer.CreateOptions{}, f.s.now())
	pb.Attributes.FileSize = uint64(len(content))
	if len(content) <= filer.InlineLimit {
		pb.Content = bytes.Clone(content)
	} else {
		pb.Chunks = f.s.keepAll(content)
	}
	must(f.s.put(p, pb))
	return entry(p.Dir(), pb)
}

// Mkdir makes a directory with its parents and gives it attributes; those of an
// existing one are set as well. A nil value removes an attribute.
func (f *Filer) Mkdir(p filer.Path, set map[string][]byte) *filer.Entry {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.parents(p)
	if len(set) > 0 {
		pb := share(f.s.find(p))
		for k, v := range set {
			setAttr(pb, k, v)
		}
		must(f.s.put(p, pb))
	}
	return entry(p.Dir(), f.s.find(p))
}

// SetEntry stores a copy of pb in dir as it is, replacing what is there. Its
// chunks need not exist.
func (f *Filer) SetEntry(dir filer.Path, pb *filer_pb.Entry) *filer.Entry {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	p := dir.Join(pb.GetName())
	pb = proto.CloneOf(pb)
	crtime, ns := pb.GetAttributes().GetCrtime(), pb.GetAttributes().GetCrtimeNs()
	must(f.s.put(p, pb))
	pb.Attributes.Crtime, pb.Attributes.CrtimeNs = crtime, ns
	return entry(dir, pb)
}

// SetAttributes sets extended attributes of an existing entry; a nil value
// removes one.
func (f *Filer) SetAttributes(p filer.Path, set map[string][]byte) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	pb := share(f.s.existing(p))
	for k, v := range set {
		setAttr(pb, k, v)
	}
	must(f.s.put(p, pb))
}

// Times are the times of an entry. Zero is no time.
type Times struct {
	Mtime  time.Time
	Crtime time.Time
	// Chunks is the time of every chunk.
	Chunks time.Time
}

// SetTimes sets all times of an existing entry, without a word in the feed.
func (f *Filer) SetTimes(p filer.Path, t Times) {
	f.change(p, func(pb *filer_pb.Entry) {
		a := pb.Attributes
		a.Mtime, a.MtimeNs = split(t.Mtime)
		a.Crtime, a.CrtimeNs = split(t.Crtime)
		a.Ctime, a.CtimeNs = 0, 0
		for _, c := range pb.Chunks {
			c.ModifiedTsNs = 0
			if !t.Chunks.IsZero() {
				c.ModifiedTsNs = t.Chunks.UnixNano()
			}
		}
	})
}

// MarkEncrypted marks every chunk of a file as encrypted for a client. An
// inline file becomes a chunk first.
func (f *Filer) MarkEncrypted(p filer.Path, by filer_pb.SSEType) {
	f.change(p, func(pb *filer_pb.Entry) {
		if len(pb.Chunks) == 0 {
			pb.Chunks = []*filer_pb.FileChunk{f.s.keep(pb.Content, 0, f.s.now().UnixNano())}
			pb.Content = nil
		}
		for _, c := range pb.Chunks {
			c.SseType = by
		}
	})
}

// PutRemote makes a file whose data is only in a mounted remote store. The
// first Open brings content into the cluster; a nil content never arrives and
// makes Open fail.
func (f *Filer) PutRemote(p filer.Path, size int64, content []byte) *filer.Entry {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if content != nil {
		size = int64(len(content))
		f.s.remotes.set(string(p), bytes.Clone(content))
	}
	mtime := f.s.mtime(p, f.s.now())
	pb := &filer_pb.Entry{
		Attributes:  f.s.attributes(mtime, octetStream),
		RemoteEntry: &filer_pb.RemoteEntry{StorageName: "remote", RemoteMtime: mtime / int64(time.Second), RemoteSize: size},
	}
	pb.Attributes.FileSize = uint64(size)
	must(f.s.put(p, pb))
	return entry(p.Dir(), pb)
}

// PutVersions makes what a versioned bucket holds for the object at p: the
// directory p.versions with one file for each content, the last being the
// latest, which the directory's attributes name. It returns the directory.
func (f *Filer) PutVersions(p filer.Path, contents ...[]byte) *filer.Entry {
	dir := filer.Path(p.String() + filer.VersionsSuffix)
	set := map[string][]byte{}
	for i, c := range contents {
		id := fmt.Sprintf("%016x", i+1)
		f.PutFile(dir.Join("v_"+id), c)
		set["Seaweed-X-Amz-Latest-Version-Id"] = []byte(id)
		set["Seaweed-X-Amz-Latest-Version-File-Name"] = []byte("v_" + id)
		set["Seaweed-X-Amz-Latest-Version-Size"] = fmt.Append(nil, len(c))
	}
	return f.Mkdir(dir, set)
}

// Rename moves a file or a tree as S3 and mounts do it: without a guard, with
// one event for each entry that names both places. What is at the target goes.
func (f *Filer) Rename(from, to filer.Path) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.find(to) != nil {
		f.s.removeAll(to)
	}
	f.s.parents(to.Dir())
	for _, p := range f.s.tree(from) {
		old := f.s.find(p)
		next := share(old)
		np := to
		if p != from {
			np = to.Join(p.Rel(from))
		}
		next.Name, next.CommitTsNs = np.Name(), f.s.nextStamp()
		f.s.entries.remove(key(p))
		f.s.entries.set(key(np), next)
		f.s.notify(change{oldDir: p.Dir(), old: old, newDir: np.Dir(), new: next})
	}
}

// RemoveAll removes a file or a tree with its chunks. Nothing there is fine.
func (f *Filer) RemoveAll(p filer.Path) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.find(p) != nil {
		f.s.removeAll(p)
	}
}

// LoseChunks removes the chunks of a file from the volumes and leaves its
// entry: the file can be seen and not be read.
func (f *Filer) LoseChunks(p filer.Path) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.release(f.s.existing(p).GetChunks(), nil)
}

// ForgetRequests drops the memory of request ids, as a restart of the filer
// does.
func (f *Filer) ForgetRequests() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.replays = tree[replay]{}
}

// Content returns the bytes of a file and panics if it cannot be read.
func (f *Filer) Content(p filer.Path) []byte {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	pb := f.s.existing(p)
	buf := make([]byte, entry(p.Dir(), pb).Size)
	must(f.s.assemble(pb, 0, buf))
	return buf
}

// Exists reports whether there is an entry at p.
func (f *Filer) Exists(p filer.Path) bool {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	return f.s.find(p) != nil
}

// Listing is the whole filer: for every path what is there, as text that
// changes with the identity, the attributes and the kind of the entry.
type Listing map[filer.Path]string

// Dump lists everything. Times of directories do not count.
func (f *Filer) Dump() Listing {
	f.s.mu.Lock()
	entries := f.s.entries.clone()
	f.s.mu.Unlock()
	out := make(Listing, entries.size)
	entries.ascend("", func(k string, pb *filer_pb.Entry) bool {
		p := pathOf(k)
		e := filer.NewEntry(p.Dir(), pb)
		text := "file " + string(e.Identity())
		if e.IsDir {
			text = "dir"
		}
		h := sha256.New()
		for _, name := range e.AttributeNames() {
			fmt.Fprintf(h, "%q=%q;", name, e.Extended[name])
		}
		out[p] = text + " " + hex.EncodeToString(h.Sum(nil)[:8])
		return true
	})
	return out
}

// Files are the paths of all files below dir, in order.
func (f *Filer) Files(dir filer.Path) []filer.Path {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	var out []filer.Path
	for _, p := range f.s.tree(dir) {
		if !f.s.find(p).GetIsDirectory() {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Changes names, in order, the paths at which l and then differ, with what was
// and what is there. Paths within one of except do not count.
func (l Listing) Changes(then Listing, except ...filer.Path) []string {
	paths := map[filer.Path]bool{}
	for p := range l {
		paths[p] = true
	}
	for p := range then {
		paths[p] = true
	}
	var out []string
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if l[p] == then[p] || slices.ContainsFunc(except, p.Within) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %q -> %q", p, l[p], then[p]))
	}
	return out
}

// OrphanChunks are the ids of stored chunks that no entry refers to.
func (f *Filer) OrphanChunks() []string {
	f.s.mu.Lock()
	entries, chunks := f.s.entries.clone(), f.s.chunks.clone()
	f.s.mu.Unlock()
	used := map[string]bool{}
	entries.ascend("", func(_ string, pb *filer_pb.Entry) bool {
		for _, c := range pb.GetChunks() {
			used[c.GetFileIdString()] = true
		}
		return true
	})
	var out []string
	chunks.ascend("", func(id string, _ []byte) bool {
		if !used[id] {
			out = append(out, id)
		}
		return true
	})
	return out
}

// change edits the entry at p in silence.
func (f *Filer) change(p filer.Path, edit func(*filer_pb.Entry)) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	pb := proto.CloneOf(f.s.existing(p))
	edit(pb)
	f.s.entries.set(key(p), pb)
}

func (s *store) existing(p filer.Path) *filer_pb.Entry {
	pb := s.find(p)
	if pb == nil {
		panic("filertest: nothing at " + p.String())
	}
	return pb
}

// tree is p and all below it, parents first.
func (s *store) tree(p filer.Path) []filer.Path {
	pb := s.find(p)
	if pb == nil {
		return nil
	}
	out := []filer.Path{p}
	if pb.GetIsDirectory() {
		for _, child := range s.list(p, "", "", s.entries.size) {
			out = append(out, s.tree(p.Join(child.GetName()))...)
		}
	}
	return out
}

func (s *store) removeAll(p filer.Path) {
	for _, x := range slices.Backward(s.tree(p)) {
		if x != "/" {
			s.drop(x, freeChunks)
		}
	}
}

func split(t time.Time) (sec int64, ns int32) {
	if t.IsZero() {
		return 0, 0
	}
	return t.Unix(), int32(t.Nanosecond())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
