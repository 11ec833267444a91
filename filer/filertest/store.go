package filertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
)

const (
	maxName = 255
	// prefixObject marks a file that became a directory because another name
	// was created below it, as the filer does for S3's flat names.
	prefixObject = "Seaweed-X-Amz-Prefix-Object"
)

// store is the filer process and what it keeps. Several handles share one.
type store struct {
	clk  *clock.Virtual
	opts Options

	mu sync.Mutex
	state
	// changed is closed and replaced whenever the feed grows.
	changed chan struct{}
}

// state is everything a snapshot holds. Protobuf entries in it are never
// changed in place.
type state struct {
	entries tree[*filer_pb.Entry]
	chunks  tree[[]byte]
	remotes tree[[]byte]
	feed    tree[change]
	replays tree[replay]
	// gone remembers the modification time of removed files, so that a file
	// written again at the same instant is told apart.
	gone    tree[int64]
	stamp   int64
	nextFid uint64
}

type change struct {
	oldDir, newDir filer.Path
	old, new       *filer_pb.Entry
}

type replay struct {
	err     error
	expires time.Time
}

func (s *state) clone() state {
	c := *s
	c.entries, c.chunks, c.remotes = s.entries.clone(), s.chunks.clone(), s.remotes.clone()
	c.feed, c.replays, c.gone = s.feed.clone(), s.replays.clone(), s.gone.clone()
	return c
}

// key orders entries by directory and then by name.
func key(p filer.Path) string { return p.Dir().String() + "\x00" + p.Name() }

func pathOf(key string) filer.Path {
	dir, name, _ := strings.Cut(key, "\x00")
	return filer.Path(dir).Join(name)
}

// now is the filer's own time.
func (s *store) now() time.Time { return s.clk.Now().Add(s.opts.Skew) }

func (s *store) find(p filer.Path) *filer_pb.Entry {
	if p == "/" {
		return &filer_pb.Entry{Name: "/", IsDirectory: true, Attributes: &filer_pb.FuseAttributes{FileMode: dirMode()}}
	}
	pb, _ := s.entries.get(key(p))
	return pb
}

// put stores pb at p, with its parents, and tells the feed.
func (s *store) put(p filer.Path, pb *filer_pb.Entry) error {
	if p == "/" || len(p.Name()) > maxName {
		return fault.New(fault.Unsupported, fmt.Sprintf("name of %s is empty or longer than %d bytes", p, maxName))
	}
	old := s.find(p)
	if old != nil && old.GetIsDirectory() != pb.GetIsDirectory() {
		return fault.Wrap(fault.Stale, fmt.Sprintf("replace %s: one is a directory, one a file", p), filer.ErrExists)
	}
	pb.Name = p.Name()
	if pb.Attributes == nil {
		pb.Attributes = &filer_pb.FuseAttributes{}
	}
	if pb.Attributes.Mime == octetStream {
		pb.Attributes.Mime = "" // the filer leaves the default out
	}
	if old != nil {
		pb.Attributes.Crtime, pb.Attributes.CrtimeNs = old.GetAttributes().GetCrtime(), old.GetAttributes().GetCrtimeNs()
	}
	if len(pb.Extended) == 0 {
		pb.Extended = nil
	}
	s.parents(p.Dir())
	pb.CommitTsNs = s.nextStamp()
	s.entries.set(key(p), pb)
	s.notify(change{oldDir: p.Dir(), old: old, newDir: p.Dir(), new: pb})
	s.release(old.GetChunks(), pb.GetChunks())
	return nil
}

// parents makes the directories down to dir.
func (s *store) parents(dir filer.Path) {
	old := s.find(dir)
	if old.GetIsDirectory() {
		return
	}
	s.parents(dir.Dir())
	var pb *filer_pb.Entry
	if old == nil {
		pb = &filer_pb.Entry{Name: dir.Name(), Attributes: s.attributes(s.now().UnixNano(), "")}
	} else {
		pb = share(old)
		setAttr(pb, prefixObject, []byte("true"))
	}
	pb.IsDirectory = true
	pb.Attributes.FileMode = dirMode()
	pb.CommitTsNs = s.nextStamp()
	s.entries.set(key(dir), pb)
	s.notify(change{newDir: dir.Dir(), new: pb})
}

// drop removes the entry at p.
func (s *store) drop(p filer.Path, free chunkFate) {
	old := s.find(p)
	s.entries.remove(key(p))
	s.gone.set(string(p), mtimeNs(old))
	s.notify(change{oldDir: p.Dir(), old: old})
	if free == freeChunks {
		s.release(old.GetChunks(), nil)
	}
}

type chunkFate uint8

const (
	freeChunks chunkFate = iota
	keepChunks
)

// release frees the chunks of old that kept does not hold.
func (s *store) release(old, kept []*filer_pb.FileChunk) {
	for _, c := range old {
		if !slices.ContainsFunc(kept, func(k *filer_pb.FileChunk) bool { return k.GetFileIdString() == c.GetFileIdString() }) {
			s.chunks.remove(c.GetFileIdString())
		}
	}
}

// keep stores one chunk and returns how an entry refers to it.
func (s *store) keep(data []byte, offset, modified int64) *filer_pb.FileChunk {
	s.nextFid++
	id := fmt.Sprintf("%d,%x%08x", 1+s.nextFid%16, s.nextFid, uint32(priority(fmt.Sprint(s.nextFid))))
	c := &filer_pb.FileChunk{FileId: id, Offset: offset, Size: uint64(len(data)), ModifiedTsNs: modified, ETag: etag(data)}
	if s.opts.Capabilities.Cipher {
		c.CipherKey = binary.BigEndian.AppendUint64(nil, priority(id))
	}
	s.chunks.set(id, cipher(data, c.CipherKey))
	return c
}

// keepAll stores data in chunks.
func (s *store) keepAll(data []byte) []*filer_pb.FileChunk {
	modified := s.now().UnixNano()
	var out []*filer_pb.FileChunk
	for at := 0; at < len(data); at += s.opts.ChunkSize {
		part := data[at:min(at+s.opts.ChunkSize, len(data))]
		out = append(out, s.keep(part, int64(at), modified))
	}
	return out
}

func (s *store) nextStamp() int64 {
	s.stamp = max(s.stamp, s.now().UnixNano()) + 1
	return s.stamp
}

// mtime is the modification time in nanoseconds of a file written at p by a
// writer whose clock shows at: that, unless a file of that very time is or was
// there.
func (s *store) mtime(p filer.Path, at time.Time) int64 {
	now := at.UnixNano()
	last, _ := s.gone.get(string(p))
	if old := s.find(p); old != nil {
		last = max(last, mtimeNs(old))
	}
	if last >= now && last-now < int64(time.Second) {
		return last + 1
	}
	return now
}

func (s *store) notify(c change) {
	s.feed.set(string(binary.BigEndian.AppendUint64(nil, uint64(s.nextStamp()))), c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// list returns up to limit entries of dir behind after that begin with prefix.
func (s *store) list(dir filer.Path, prefix, after string, limit int) []*filer_pb.Entry {
	base := dir.String() + "\x00"
	var out []*filer_pb.Entry
	s.entries.ascend(base+max(prefix, after), func(k string, pb *filer_pb.Entry) bool {
		name, in := strings.CutPrefix(k, base)
		if !in || !strings.HasPrefix(name, prefix) && name > prefix {
			return false
		}
		if name != after || after == "" {
			out = append(out, share(pb))
		}
		return len(out) < limit
	})
	return out
}

func (s *store) attributes(mtime int64, mime string) *filer_pb.FuseAttributes {
	sec, ns := mtime/int64(time.Second), int32(mtime%int64(time.Second))
	return &filer_pb.FuseAttributes{
		Mtime: sec, MtimeNs: ns, Crtime: sec, CrtimeNs: ns, Ctime: sec, CtimeNs: ns,
		FileMode: 0o660, Mime: mime,
	}
}

func dirMode() uint32 { return uint32(fs.ModeDir | 0o771) }

func mtimeNs(pb *filer_pb.Entry) int64 {
	return pb.GetAttributes().GetMtime()*int64(time.Second) + int64(pb.GetAttributes().GetMtimeNs())
}

// share copies pb so that its maps, lists and attributes may be changed; byte
// values and chunks are shared.
func share(pb *filer_pb.Entry) *filer_pb.Entry {
	return &filer_pb.Entry{
		Name: pb.Name, IsDirectory: pb.IsDirectory, Chunks: slices.Clone(pb.Chunks),
		Attributes: proto.CloneOf(pb.Attributes), Extended: maps.Clone(pb.Extended), CommitTsNs: pb.CommitTsNs,
		HardLinkId: pb.HardLinkId, HardLinkCounter: pb.HardLinkCounter, Content: pb.Content,
		RemoteEntry: proto.CloneOf(pb.RemoteEntry), Quota: pb.Quota, WormEnforcedAtTsNs: pb.WormEnforcedAtTsNs,
	}
}

// setAttr sets or, with a nil value, removes an extended attribute.
func setAttr(pb *filer_pb.Entry, name string, value []byte) {
	if value == nil {
		delete(pb.Extended, name)
		return
	}
	if pb.Extended == nil {
		pb.Extended = map[string][]byte{}
	}
	pb.Extended[name] = bytes.Clone(value)
}
