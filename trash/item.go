package trash

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/journal"
)

// Item is a file in the trash.
type Item struct {
	// Path is where it lies, Origin where it came from.
	Path   filer.Path `json:"path"`
	Origin filer.Path `json:"origin"`
	Run    string     `json:"run"`
	// Table is the uuid of the table it belonged to.
	Table  string `json:"table,omitempty"`
	Reason string `json:"reason,omitempty"`
	Bytes  int64  `json:"bytes"`
	// RemovedAt and PurgeAfter are times of the filer; zero if not known. An item
	// without a purge time is never purged.
	RemovedAt  time.Time `json:"removed-at,omitzero"`
	PurgeAfter time.Time `json:"purge-after,omitzero"`
	// Problem says why the item is left to a person: it was not put there by
	// this program, or its attributes contradict its place.
	Problem string `json:"problem,omitempty"`

	entry *filer.Entry
}

// Selection chooses items of one bucket. Empty fields choose everything.
type Selection struct {
	// Bucket is required.
	Bucket string
	// Run chooses the items of one run.
	Run string
	// Table chooses by the uuid of the table.
	Table string
	// Paths chooses items by origin or place; a directory chooses all below it.
	Paths []filer.Path
}

func (s Selection) has(it Item) bool {
	if s.Run != "" && it.Run != s.Run || s.Table != "" && !strings.EqualFold(it.Table, s.Table) {
		return false
	}
	return len(s.Paths) == 0 || slices.ContainsFunc(s.Paths, func(p filer.Path) bool {
		return it.Path.Within(p) || it.Origin != "" && it.Origin.Within(p)
	})
}

func (s Selection) check() error {
	if s.Bucket == "" || strings.Contains(s.Bucket, "/") || s.Bucket == "." || s.Bucket == ".." {
		return fault.New(fault.Unsupported, fmt.Sprintf("trash: %q is no bucket", s.Bucket))
	}
	if s.Run != "" && !journal.ValidRun(s.Run) {
		return fault.New(fault.Unsupported, fmt.Sprintf("trash: %q is no run", s.Run))
	}
	return nil
}

// List yields what is in the trash of a bucket, by run and path. The sequence
// ends after the first error.
func (t *Trash) List(ctx context.Context, bucket string) iter.Seq2[Item, error] {
	return t.Select(ctx, Selection{Bucket: bucket})
}

// Select yields the chosen items, as List does.
func (t *Trash) Select(ctx context.Context, s Selection) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := s.check(); err != nil {
			yield(Item{}, err)
			return
		}
		root := Root(s.Bucket)
		if s.Run != "" {
			root = root.Join(s.Run)
		}
		for e, err := range filer.WalkTree(ctx, t.fl, root, filer.WalkOptions{}) {
			if err != nil {
				yield(Item{}, fault.In("list the trash of bucket "+s.Bucket, err))
				return
			}
			if e.IsDir {
				continue
			}
			if it := parse(s.Bucket, e); s.has(it) && !yield(it, nil) {
				return
			}
		}
	}
}

// parse reads an entry in the trash. Where the file came from its place tells;
// the attributes must agree.
func parse(bucket string, e *filer.Entry) Item {
	it := Item{Path: e.Path, Bytes: e.Size, entry: e}
	run, rest, below := strings.Cut(e.Path.Rel(Root(bucket)), "/")
	if !below || !journal.ValidRun(run) {
		it.Problem = "it was not put here by this program"
		return it
	}
	it.Run, it.Origin = run, filer.BucketPath(bucket).Join(rest)
	it.Reason, it.Table = string(e.Extended[AttrReason]), string(e.Extended[AttrTable])
	problem := func(format string, args ...any) {
		if it.Problem == "" {
			it.Problem = fmt.Sprintf(format, args...)
		}
	}
	for name, want := range map[string]string{AttrOrigin: string(it.Origin), AttrRun: run} {
		if got, ok := e.Extended[name]; ok && string(got) != want {
			problem("attribute %s is %q and its place says %q", name, got, want)
		}
	}
	for name, into := range map[string]*time.Time{AttrRemovedAt: &it.RemovedAt, AttrPurgeAfter: &it.PurgeAfter} {
		b, ok := e.Extended[name]
		if !ok {
			continue
		}
		v, err := time.Parse(time.RFC3339Nano, string(b))
		if err != nil {
			problem("attribute %s is no time: %q", name, b)
		}
		*into = v
	}
	return it
}
