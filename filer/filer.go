// Package filer is the typed face of a SeaweedFS filer: everything this
// program reads, writes, swaps, moves or removes goes through it.
//
// It promises three things. Reads are bounded: nothing loads a directory or a
// file whole unless the caller sets a limit. Writes never replace silently:
// creation is exclusive unless Replace is set, every update of an existing
// entry is conditional, and moves and removals are guarded by the identity of
// what was planned. Every answer becomes one fault kind; an answer that leaves
// open whether the call took effect is fault.Unknown and is never retried here.
//
// Client is the implementation over gRPC and HTTP; filertest.Filer is the one
// in memory. Both pass filertest.Suite.
package filer

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/seaice/seaice/fault"
)

// Sentinels for the answers a caller may want to tell apart. Each is wrapped
// in a fault.Error of kind Stale, because what the caller knew is no longer so;
// a caller for whom a missing file means damage gives it another kind.
var (
	// ErrNotFound: there is no entry at the path.
	ErrNotFound = errors.New("no such entry")
	// ErrExists: an exclusive creation or a guarded move found its target taken.
	ErrExists = errors.New("entry exists")
	// ErrPrecondition: the entry is not in the state the call expected.
	ErrPrecondition = errors.New("entry changed")
)

// NotFound reports whether err says that an entry does not exist.
func NotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// Reader is the read-only half of a filer. Planners are handed nothing else.
type Reader interface {
	// Stat returns the entry at p, or ErrNotFound.
	Stat(ctx context.Context, p Path) (*Entry, error)
	// List yields the entries of one directory in byte order of their names.
	// A directory that does not exist is empty. The sequence ends after the
	// first error.
	List(ctx context.Context, dir Path, o ListOptions) iter.Seq2[*Entry, error]
	// Open returns the file at p for reading. Remote-only files are cached by
	// the filer first. Files whose bytes cannot be had as written (server-side
	// encryption by a client) are fault.Unsupported. ctx bounds all reads of
	// the object.
	Open(ctx context.Context, p Path) (Object, error)
	// Clock returns the filer's own time.
	Clock(ctx context.Context) (time.Time, error)
	// Subscribe yields the changes below o.Prefix after o.Since in order. It
	// ends when ctx ends, or, with o.Until set, once that time is reached.
	Subscribe(ctx context.Context, o SubscribeOptions) iter.Seq2[Event, error]
}

// Writer creates files.
type Writer interface {
	// Create starts a file at p. Nothing is visible at p before Commit.
	Create(ctx context.Context, p Path, o CreateOptions) (Upload, error)
	// Put creates a small file at p in one call and returns its entry. Content
	// above InlineLimit bytes is uploaded like a stream.
	Put(ctx context.Context, p Path, content []byte, o CreateOptions) (*Entry, error)
}

// Swapper changes an existing entry only if it still is what the caller read.
type Swapper interface {
	// Update applies u and returns the entry as written. If any attribute named
	// by u.Expect differs: ErrPrecondition. The chunks of u.Base are asserted as
	// well, and with nothing to expect the whole entry is. An answer that leaves
	// the outcome open is fault.Unknown and was not retried.
	Update(ctx context.Context, u Update) (*Entry, error)
	// Patch sets extended attributes of base in a transaction that asserts that
	// the whole entry still equals base. The same id may be sent again: within
	// the filer's memory of it (2 minutes) the recorded answer is replayed.
	Patch(ctx context.Context, base *Entry, set map[string][]byte, id string) error
}

// Mover moves a file within its bucket without copying data.
type Mover interface {
	// Move moves m.From to m.To if the source still has the identity of m.From
	// and the target does not exist. Moves are not crash-atomic: after a crash
	// both paths, or only the new one, may exist; the caller journals first and
	// looks at both. The same m.ID may be sent again.
	Move(ctx context.Context, m Move) error
}

// Deleter removes files for good. Only package trash calls it.
type Deleter interface {
	// Delete removes the file at p if g holds; otherwise ErrPrecondition.
	// A missing file is ErrNotFound. Directories, hard links and files backed by
	// a remote store are refused.
	Delete(ctx context.Context, p Path, g Guard) error
	// Unlink removes the entry at p and keeps its data, with the errors of
	// Delete. It is for a file that has a second entry with the same chunks,
	// because a move was cut short: Delete would take the data from both.
	Unlink(ctx context.Context, p Path, g Guard) error
}

// Filer is everything together.
type Filer interface {
	Reader
	Writer
	Swapper
	Mover
	Deleter
	// Probe finds out on a scratch entry below dir what the filer really does;
	// an old filer ignores conditions it does not know and overwrites (F12). The
	// answer is remembered per connection to a filer.
	Probe(ctx context.Context, dir Path) (Capabilities, error)
	io.Closer
}

// Capabilities is what Probe found.
type Capabilities struct {
	// ConditionalUpdate: an update with a wrong expectation is refused. Without
	// it nothing may be committed through the filer.
	ConditionalUpdate bool `json:"conditional-update"`
	// Transactions: a transaction with a wrong expectation is refused and its
	// outcome is replayed for the same id.
	Transactions bool `json:"transactions"`
	// Cipher: the cluster encrypts volume data; uploads must be encrypted.
	Cipher bool `json:"cipher"`
}

// ListOptions restricts List.
type ListOptions struct {
	// Prefix keeps only names that begin with it.
	Prefix string
	// After resumes behind this name, exclusive.
	After string
	// Limit ends the listing after so many entries; 0 is no limit.
	Limit int
}

// CreateOptions describes a new file. The zero value creates exclusively a
// file placed by the filer's rules for its path.
type CreateOptions struct {
	// Replace allows an existing file to be overwritten. Without it an existing
	// entry is ErrExists.
	Replace bool
	// Mime is the content type; empty is application/octet-stream.
	Mime string
	// Extended are the attributes of the new entry.
	Extended map[string][]byte
}

// Upload is a file being written. Its Write may return before the bytes are
// stored; Commit waits for all of them.
type Upload interface {
	io.Writer
	// Commit creates the entry and returns it.
	Commit(ctx context.Context) (*Entry, error)
	// Abort drops the upload. It is safe after Commit and then does nothing.
	// Chunks already stored are released as far as possible.
	Abort(ctx context.Context)
}

// Object is an open file. It is safe for concurrent use.
type Object interface {
	io.ReaderAt
	io.Closer
	// Entry is the entry the object was opened from.
	Entry() *Entry
	// Size is the file's length in bytes.
	Size() int64
	// Stream returns length bytes from offset as a stream that reads ahead; a
	// negative length means to the end.
	Stream(offset, length int64) io.ReadCloser
}

// Update is a conditional change of one entry.
type Update struct {
	// Base is the entry as read. All of it that Set and Content do not name is
	// written back unchanged.
	Base *Entry
	// Expect is compared byte by byte under the entry's lock; a nil or empty
	// value asserts that the attribute is absent. See Expectation.
	Expect map[string][]byte
	// Set replaces attributes; a nil value removes the attribute.
	Set map[string][]byte
	// Content replaces the inline content if not nil.
	Content []byte
}

// Expectation asserts every attribute of e as read, and the absence of those
// of keys that e does not have.
func Expectation(e *Entry, keys ...string) map[string][]byte {
	out := make(map[string][]byte, len(e.Extended)+len(keys))
	for _, k := range keys {
		out[k] = nil
	}
	for k, v := range e.Extended {
		out[k] = v
	}
	return out
}

// Move is a guarded move.
type Move struct {
	// From is the entry as planned.
	From *Entry
	// To is the new path, in the same bucket. Missing parents are made.
	To Path
	// ID makes the move replayable.
	ID string
	// Set are attributes the entry gets at its new place; nil values remove.
	Set map[string][]byte
}

// Guard says under which conditions a file may be deleted. The zero Guard
// always holds.
type Guard struct {
	// Identity, if not empty, must be the file's identity.
	Identity Identity
	// NotModifiedAfter, if not zero, holds the deletion back when the file was
	// modified later.
	NotModifiedAfter time.Time
}

// SubscribeOptions selects changes.
type SubscribeOptions struct {
	// Prefix is the directory whose tree is watched.
	Prefix Path
	// Since is exclusive.
	Since time.Time
	// Until, if set, ends the sequence once the feed has passed it.
	Until time.Time
}

// Event is one change: a creation (Old nil), a removal (New nil), an update
// (same path) or a rename.
type Event struct {
	Time time.Time
	Old  *Entry
	New  *Entry
}

// InlineLimit is the size in bytes up to which Put stores content in the entry
// itself, as weed's own clients do.
const InlineLimit = 256 << 10

// ReadAll returns the whole file at p and its entry; a file above limit bytes
// is fault.TooLarge.
func ReadAll(ctx context.Context, r Reader, p Path, limit int64) ([]byte, *Entry, error) {
	o, err := r.Open(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	defer o.Close()
	if o.Size() > limit {
		return nil, nil, tooLarge(p, o.Size(), limit)
	}
	s := o.Stream(0, -1)
	defer s.Close()
	buf := make([]byte, o.Size())
	if _, err := io.ReadFull(s, buf); err != nil {
		return nil, nil, fault.In("read "+p.String(), err)
	}
	return buf, o.Entry(), nil
}
