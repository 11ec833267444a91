package iceberg

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Patterns are wildcard patterns of which one must match: * stands for any
// text, ? for one byte. No patterns match everything.
type Patterns []string

// ParsePatterns reads a comma separated list, as the forms of SeaweedFS's own
// worker hold it. Spaces around a pattern and empty patterns are ignored.
func ParsePatterns(s string) Patterns {
	var out Patterns
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// Match reports whether name matches.
func (p Patterns) Match(name string) bool {
	for _, pattern := range p {
		if matches(pattern, name) {
			return true
		}
	}
	return len(p) == 0
}

func matches(pattern, s string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// prefix is what every matching name begins with.
func (p Patterns) prefix() string {
	if len(p) != 1 {
		return ""
	}
	if i := strings.IndexAny(p[0], "*?"); i >= 0 {
		return p[0][:i]
	}
	return p[0]
}

// Filter restricts Discover. The zero Filter selects everything.
type Filter struct {
	Buckets    Patterns
	Namespaces Patterns
	Tables     Patterns
	// After resumes a walk behind this table, exclusive. Its parts may be empty
	// from the right.
	After TableID
}

// Found is one catalog record met by Discover.
type Found struct {
	ID TableID
	// Path is the directory that carries the record.
	Path  filer.Path
	Entry *filer.Entry
	// Bucket is the entry of the table bucket.
	Bucket *filer.Entry
	State  State
	// Record is nil when State is StateBroken.
	Record *Record
	// Err says why the record cannot be read. One bad record never ends a walk.
	Err error
}

// Maintainable returns nil for a table that may be worked on, and otherwise why
// not.
func (f Found) Maintainable() error {
	switch {
	case f.Err != nil:
		return f.Err
	case f.State == StateHidden:
		return fault.New(fault.Stale, fmt.Sprintf("directory %s is not a namespace", f.Path.Dir()))
	}
	return f.Record.Maintainable()
}

// Discover walks the table buckets and yields every record, tables and others,
// in the order of bucket, namespace and name, each compared by bytes. Nothing is
// held: a walk over any number of tables needs the memory of one directory of
// namespaces and one record.
//
// An error yielded names a directory that could not be listed; the walk then
// goes on behind it, unless ctx has ended. Its Found holds the parts of the id
// that are known.
func Discover(ctx context.Context, r filer.Reader, f Filter) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		w := walk{ctx: ctx, r: r, f: f, yield: yield}
		for bucket := range w.dirs(filer.BucketsRoot, TableID{}, f.Buckets, f.After.Bucket) {
			if _, ok := bucket.Extended[AttrTableBucket]; ok && !w.bucket(bucket) {
				return
			}
		}
	}
}

type walk struct {
	ctx   context.Context // lives as long as one walk
	r     filer.Reader
	f     Filter
	yield func(Found, error) bool
	ended bool
}

func (w *walk) bucket(bucket *filer.Entry) bool {
	id := TableID{Bucket: bucket.Path.Name()}
	after := ""
	if id.Bucket == w.f.After.Bucket {
		after = w.f.After.Namespace
	}
	for ns := range w.dirs(bucket.Path, id, w.f.Namespaces, after) {
		if !w.namespace(bucket, ns) {
			return false
		}
	}
	return !w.ended
}

func (w *walk) namespace(bucket, ns *filer.Entry) bool {
	id := TableID{Bucket: bucket.Path.Name(), Namespace: ns.Path.Name()}
	o := filer.ListOptions{Prefix: w.f.Tables.prefix()}
	if id.Bucket == w.f.After.Bucket && id.Namespace == w.f.After.Namespace {
		o.After = w.f.After.Name
	}
	hidden := len(ns.Extended[AttrMetadata]) == 0 || unfinished(ns)
	for e, err := range w.r.List(w.ctx, ns.Path, o) {
		if err != nil {
			return w.failed(id, ns.Path, err)
		}
		if !e.IsDir || len(e.Extended[AttrMetadata]) == 0 || !w.f.Tables.Match(e.Path.Name()) {
			continue
		}
		id.Name = e.Path.Name()
		found := Found{ID: id, Path: e.Path, Entry: e, Bucket: bucket}
		found.Record, found.Err = ParseRecord(e)
		switch {
		case found.Err != nil:
			found.State = StateBroken
		case hidden:
			found.State = StateHidden
		default:
			found.State = found.Record.State
		}
		if !w.yield(found, nil) {
			return false
		}
	}
	return true
}

func unfinished(e *filer.Entry) bool {
	switch string(e.Extended[AttrDeleting]) {
	case "create", "rename-dest":
		return true
	}
	return false
}

// dirs yields the directories in dir that match, from the name from on,
// inclusive. Names that begin with a dot are not the catalog's. The names are
// read in pages, so that no listing stays open while a consumer works.
func (w *walk) dirs(dir filer.Path, id TableID, p Patterns, from string) iter.Seq[*filer.Entry] {
	const page = 1000
	return func(yield func(*filer.Entry) bool) {
		if from != "" && !w.first(dir, id, p, from, yield) {
			return
		}
		for after := from; ; {
			entries := make([]*filer.Entry, 0, page)
			for e, err := range w.r.List(w.ctx, dir, filer.ListOptions{Prefix: p.prefix(), After: after, Limit: page}) {
				if err != nil {
					w.ended = !w.failed(id, dir, err)
					return
				}
				entries = append(entries, e)
			}
			for _, e := range entries {
				after = e.Path.Name()
				if selected(e, p) && !yield(e) {
					w.ended = true
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
	}
}

// first yields the directory a walk resumes in, if it still is there.
func (w *walk) first(dir filer.Path, id TableID, p Patterns, name string, yield func(*filer.Entry) bool) bool {
	path, err := filer.ParsePath(dir.String() + "/" + name)
	if err != nil || path.Dir() != dir {
		w.ended = true
		w.yield(Found{ID: id}, fault.New(fault.Unsupported, fmt.Sprintf("resume the walk behind %q", name)))
		return false
	}
	e, err := w.r.Stat(w.ctx, path)
	switch {
	case filer.NotFound(err):
		return true
	case err != nil:
		w.ended = !w.failed(id, path, err)
		return !w.ended
	}
	if selected(e, p) && !yield(e) {
		w.ended = true
		return false
	}
	return true
}

func selected(e *filer.Entry, p Patterns) bool {
	name := e.Path.Name()
	return e.IsDir && !strings.HasPrefix(name, ".") && p.Match(name)
}

// failed yields the error, which names what it is about, and reports whether the walk goes on.
func (w *walk) failed(id TableID, dir filer.Path, err error) bool {
	return w.yield(Found{ID: id, Path: dir}, err) && w.ctx.Err() == nil
}
