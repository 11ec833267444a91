package filer

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// Entry is one file or directory as the filer knows it. It is immutable: what
// it holds is shared with whoever else holds it.
type Entry struct {
	Path  Path
	IsDir bool
	// Size is the length in bytes; 0 for directories.
	Size int64
	// Mtime and Crtime are the filer's times; zero when it has none.
	Mtime  time.Time
	Crtime time.Time
	// Newest is the latest time the filer knows of the entry: of Mtime, Crtime
	// and the chunks' times (F109). Zero means unknown, which callers must treat
	// as just written.
	Newest time.Time
	// Extended are the extended attributes.
	Extended map[string][]byte
	// PB is the entry as the filer sent it.
	PB *filer_pb.Entry
}

// NewEntry makes an Entry of what the filer sent for a name in dir.
func NewEntry(dir Path, pb *filer_pb.Entry) *Entry {
	// Done once here: the accessors of file ids fill them in on first use, and
	// an entry is shared between goroutines.
	filer_pb.AfterEntryDeserialization(pb.GetChunks())
	e := &Entry{Path: dir.Join(pb.GetName()), IsDir: pb.GetIsDirectory(), Extended: pb.GetExtended(), PB: pb}
	a := pb.GetAttributes()
	if s := a.GetMtime(); s > 0 {
		e.Mtime = time.Unix(s, int64(a.GetMtimeNs()))
	}
	if s := a.GetCrtime(); s > 0 {
		e.Crtime = time.Unix(s, int64(a.GetCrtimeNs()))
	}
	e.Newest = e.Mtime
	if e.Crtime.After(e.Newest) {
		e.Newest = e.Crtime
	}
	for _, c := range pb.GetChunks() {
		if t := time.Unix(0, c.GetModifiedTsNs()); c.GetModifiedTsNs() > 0 && t.After(e.Newest) {
			e.Newest = t
		}
	}
	if !e.IsDir {
		e.Size = fileSize(pb)
	}
	return e
}

// fileSize is the logical length: the filer fills the attribute only for some
// writers, so the end of the last chunk and the inline content count too.
func fileSize(pb *filer_pb.Entry) int64 {
	size := max(int64(pb.GetAttributes().GetFileSize()), int64(len(pb.GetContent())))
	for _, c := range pb.GetChunks() {
		size = max(size, c.GetOffset()+int64(c.GetSize()))
	}
	if r := pb.GetRemoteEntry(); r != nil && r.GetRemoteMtime() > pb.GetAttributes().GetMtime() {
		size = max(size, r.GetRemoteSize())
	}
	return size
}

// RemoteOnly reports whether the data is in a mounted remote store and not in
// the cluster.
func (e *Entry) RemoteOnly() bool {
	return e.PB.GetRemoteEntry() != nil && len(e.PB.GetChunks()) == 0 && len(e.PB.GetContent()) == 0 &&
		e.PB.GetRemoteEntry().GetRemoteSize() > 0
}

// RemoteBacked reports whether the entry mirrors a mounted remote store.
func (e *Entry) RemoteBacked() bool { return e.PB.GetRemoteEntry() != nil }

// Encrypted names the server-side encryption that a client asked for, or is
// empty. Its bytes cannot be read through the filer.
func (e *Entry) Encrypted() string {
	for _, c := range e.PB.GetChunks() {
		if t := c.GetSseType(); t != filer_pb.SSEType_NONE {
			return t.String()
		}
	}
	return ""
}

// VersionsSuffix ends the name of the directory in which a versioned bucket
// keeps the versions of one object.
const VersionsSuffix = ".versions"

// Versions reports whether the entry is the directory of an object's versions.
func (e *Entry) Versions() bool {
	return e.IsDir && len(e.Path.Name()) > len(VersionsSuffix) &&
		e.Path.Name()[len(e.Path.Name())-len(VersionsSuffix):] == VersionsSuffix
}

// Identity tells one stored file from another at the same path. It changes
// whenever the file is written again. It is plain text so that plans and
// journals can hold it.
type Identity string

// Identity is made of the size, the modification time and what holds the data.
func (e *Entry) Identity() Identity {
	h := fnv.New128a()
	for _, c := range e.PB.GetChunks() {
		fmt.Fprintf(h, "%s %d %d;", c.GetFileIdString(), c.GetOffset(), c.GetSize())
	}
	_, _ = h.Write(e.PB.GetContent())
	a := e.PB.GetAttributes()
	return Identity(strconv.FormatInt(e.Size, 10) + "-" + strconv.FormatInt(a.GetMtime(), 10) + "." +
		strconv.FormatInt(int64(a.GetMtimeNs()), 10) + "-" + hex.EncodeToString(h.Sum(nil)))
}

// AttributeNames are the names of the extended attributes in order.
func (e *Entry) AttributeNames() []string { return slices.Sorted(maps.Keys(e.Extended)) }

func tooLarge(p Path, size, limit int64) error {
	return fault.New(fault.TooLarge, fmt.Sprintf("%s has %d bytes, more than the limit of %d", p, size, limit))
}

// Same reports whether two entries are equal in everything the filer keeps.
func (e *Entry) Same(o *Entry) bool { return proto.Equal(e.PB, o.PB) }
