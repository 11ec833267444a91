package filer

import (
	"context"
	"fmt"
	"iter"

	"github.com/seaice/seaice/fault"
)

// WalkOptions restricts WalkTree.
type WalkOptions struct {
	// SkipDir, if not nil, is asked before a directory is entered. The
	// directory itself is yielded either way.
	SkipDir func(*Entry) bool
	// MaxDepth bounds how deep below root directories are entered; deeper ones
	// are fault.TooLarge. 0 is 128.
	MaxDepth int
}

const defaultMaxDepth = 128

// WalkTree yields every entry below root, depth first: the entries of a
// directory in byte order of their names, each directory before what it holds.
// Root itself is not yielded, and a root that does not exist is empty. The
// sequence ends after the first error. Memory is bounded by one open listing
// per level.
func WalkTree(ctx context.Context, r Reader, root Path, o WalkOptions) iter.Seq2[*Entry, error] {
	if o.MaxDepth <= 0 {
		o.MaxDepth = defaultMaxDepth
	}
	return func(yield func(*Entry, error) bool) {
		walkDir(ctx, r, root, o, o.MaxDepth, yield)
	}
}

// walkDir reports whether the walk goes on.
func walkDir(ctx context.Context, r Reader, dir Path, o WalkOptions, depth int, yield func(*Entry, error) bool) bool {
	if depth == 0 {
		yield(nil, fault.New(fault.TooLarge, fmt.Sprintf("walk %s: more than %d levels of directories", dir, o.MaxDepth)))
		return false
	}
	for e, err := range r.List(ctx, dir, ListOptions{}) {
		if err != nil {
			yield(nil, err)
			return false
		}
		if !yield(e, nil) {
			return false
		}
		if !e.IsDir || o.SkipDir != nil && o.SkipDir(e) {
			continue
		}
		if !walkDir(ctx, r, e.Path, o, depth-1, yield) {
			return false
		}
	}
	return true
}
