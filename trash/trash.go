// Package trash is the only way a file is removed.
//
// A file is not deleted but moved, without copying data, to a place within its
// own bucket from which it can be brought back until its purge time:
//
//	/buckets/<bucket>/.seaice-trash/<run>/<path relative to the bucket>
//
// Every move is journalled by its run before it is made and guarded by the
// identity the file had when its removal was decided; a file that changed since
// stays. Directories, version trees, locked, encrypted and remote-backed files
// are never touched. Moves are not crash-atomic, so whoever resumes looks at
// both places; a file that is at both is never deleted, because its entries
// share their data.
package trash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/journal"
)

// Dir is the name of the trash's directory in a bucket.
const Dir = ".seaice-trash"

// The attributes of a file in the trash.
const (
	// AttrOrigin is the path the file was removed from.
	AttrOrigin = "seaice.origin"
	// AttrReason says why, for people.
	AttrReason = "seaice.reason"
	// AttrRun names the run that removed it.
	AttrRun = "seaice.run"
	// AttrTable is the uuid of the table it belonged to.
	AttrTable = "seaice.table"
	// AttrRemovedAt and AttrPurgeAfter are times of the filer, RFC 3339.
	AttrRemovedAt  = "seaice.removed-at"
	AttrPurgeAfter = "seaice.purge-after"
)

// AttrRestored is on a file while it is being restored: the place in the trash
// it comes from, which may still have an entry of it.
const AttrRestored = "seaice.restored-from"

var attributes = []string{AttrOrigin, AttrReason, AttrRun, AttrTable, AttrRemovedAt, AttrPurgeAfter}

// Options say how files are removed.
type Options struct {
	// Grace is how long a removed file can be brought back; 0 purges at once,
	// after the same checks. Required: there is no default.
	Grace time.Duration
	// Concurrency is how many files are handled at once; 0 is 8.
	Concurrency int
}

// Trash removes files and brings them back. It is safe for concurrent use.
type Trash struct {
	fl       filer.Filer
	clk      clock.Clock
	journals *journal.Store
	o        Options
}

var (
	_ journal.Trasher = (*Trash)(nil)
	_ journal.Eraser  = (*Trash)(nil)
)

// New returns the trash of the buckets of fl. clk is compared with the filer's
// clock before anything is removed.
func New(fl filer.Filer, clk clock.Clock, o Options) (*Trash, error) {
	if o.Grace < 0 {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("trash: grace %s is negative", o.Grace))
	}
	if o.Concurrency < 0 || o.Concurrency > 256 {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("trash: concurrency %d is not within 0 and 256", o.Concurrency))
	}
	if o.Concurrency == 0 {
		o.Concurrency = 8
	}
	return &Trash{fl: fl, clk: clk, journals: journal.New(fl, clk), o: o}, nil
}

// Root is the trash's directory of a bucket.
func Root(bucket string) filer.Path { return filer.BucketsRoot.Join(bucket, Dir) }

// Place is where run puts the file at p, which lies in a bucket.
func Place(run string, p filer.Path) filer.Path {
	return Root(p.Bucket()).Join(run, p.Rel(filer.BucketPath(p.Bucket())))
}

// The object lock's attributes, as SeaweedFS's S3 gateway writes them.
const (
	attrLockMode      = "Seaweed-X-Amz-Object-Lock-Mode"
	attrLockUntil     = "Seaweed-X-Amz-Retention-Until-Date"
	attrLegalHold     = "Seaweed-X-Amz-Legal-Hold"
	attrBucketLock    = "Seaweed-X-Amz-Object-Lock-Enabled"
	attrBucketDefault = "Lock-Default-Mode"
	ssePrefix         = "x-seaweedfs-sse-"
	uploadsDir        = ".uploads"
)

// locked names the object lock on an entry, or is empty. A retention that has
// run out still counts: what it would free is small.
func locked(e *filer.Entry) string {
	for _, name := range []string{attrLockMode, attrLockUntil, attrBucketDefault} {
		if len(e.Extended[name]) > 0 {
			return "an object lock (" + name + ")"
		}
	}
	if v := e.Extended[attrLegalHold]; len(v) > 0 && string(v) != "OFF" {
		return "a legal hold"
	}
	if v := e.Extended[attrBucketLock]; len(v) > 0 && string(v) != "Disabled" {
		return "an object lock (" + attrBucketLock + ")"
	}
	if e.PB.GetWormEnforcedAtTsNs() > 0 {
		return "a write-once guard"
	}
	return ""
}

// refuse says why an entry is never removed, whatever references it.
func refuse(e *filer.Entry) error {
	why := ""
	switch {
	case e.Versions():
		why = "it is a tree of object versions"
	case e.IsDir:
		why = "it is a directory"
	case locked(e) != "":
		why = "it is under " + locked(e)
	case e.RemoteBacked():
		why = "it mirrors a remote store"
	case e.Encrypted() != "":
		why = "it is encrypted for a client (" + e.Encrypted() + ")"
	case len(e.PB.GetHardLinkId()) > 0:
		why = "it is a hard link"
	case slices.ContainsFunc(e.AttributeNames(), func(n string) bool { return strings.HasPrefix(n, ssePrefix) }):
		why = "it is encrypted for a client"
	default:
		return nil
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("remove %s: %s", e.Path, why))
}

// refusePath says why nothing at p may be removed on behalf of a table in
// bucket.
func refusePath(p filer.Path, bucket string) error {
	if _, err := filer.ParsePath(string(p)); err != nil {
		return fault.In("remove a file", err)
	}
	why := ""
	switch root := filer.BucketPath(bucket); {
	case p.Bucket() != bucket || bucket == "":
		why = "it is not in bucket " + bucket
	case p == root:
		why = "it is the bucket"
	case p.Within(root.Join(Dir)):
		why = "it is in the trash"
	case p.Within(root.Join(uploadsDir)):
		why = "it is part of an upload"
	default:
		for _, name := range strings.Split(p.Rel(root), "/") {
			if len(name) > len(filer.VersionsSuffix) && strings.HasSuffix(name, filer.VersionsSuffix) {
				why = "it is in a tree of object versions"
			}
		}
	}
	if why == "" {
		return nil
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("remove %s: %s", p, why))
}

// checkBucket refuses buckets whose objects are under lock by default.
func (t *Trash) checkBucket(ctx context.Context, bucket string) error {
	e, err := t.fl.Stat(ctx, filer.BucketPath(bucket))
	if err != nil {
		return fault.In("look at bucket "+bucket, err)
	}
	if why := locked(e); why != "" {
		return fault.New(fault.Unsupported, fmt.Sprintf("remove files of bucket %s: it is under %s", bucket, why))
	}
	return nil
}

// twins reports whether two entries hold the same file: deleting the data of
// one would take it from the other.
func twins(a, b *filer.Entry) bool {
	if a.IsDir || b.IsDir {
		return false
	}
	if a.Identity() == b.Identity() {
		return true
	}
	held := map[string]bool{}
	for _, c := range a.PB.GetChunks() {
		held[c.GetFileIdString()] = true
	}
	for _, c := range b.PB.GetChunks() {
		if held[c.GetFileIdString()] {
			return true
		}
	}
	return false
}

// find is Stat with a nil entry for a missing one.
func (t *Trash) find(ctx context.Context, p filer.Path) (*filer.Entry, error) {
	e, err := t.fl.Stat(ctx, p)
	if filer.NotFound(err) {
		return nil, nil
	}
	return e, err
}

// pool runs functions at once, up to the trash's concurrency. With a
// concurrency of 1 it runs them in order, in the caller's goroutine.
type pool struct {
	g   errgroup.Group
	one bool
}

func (t *Trash) pool() *pool {
	p := &pool{one: t.o.Concurrency == 1}
	p.g.SetLimit(t.o.Concurrency)
	return p
}

func (p *pool) run(fn func()) {
	if p.one {
		fn()
		return
	}
	p.g.Go(func() error { fn(); return nil })
}

func (p *pool) wait() { _ = p.g.Wait() } // what failed the functions report themselves
