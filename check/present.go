package check

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/manifests"
)

// lookups are the files looked up at once.
const lookups = 16

// present checks that every live file exists with the size its entry says.
func (c *checker) present(ctx context.Context) error {
	files := slices.DeleteFunc(c.uses.all, func(u use) bool { return u.kind == useVector })
	slices.SortFunc(files, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.size, b.size), cmp.Compare(a.manifest, b.manifest))
	})
	files = slices.CompactFunc(files, func(a, b use) bool { return a.hash == b.hash && a.size == b.size })
	for i, u := range files {
		if i == 0 || files[i-1].hash != u.hash {
			c.report.Stats.Files++
			plus(&c.report.Stats.Bytes, u.size)
		}
	}
	c.uses.all = nil
	if !c.uses.many {
		return c.lookUp(ctx, files, func(yield func(use, string) bool) error {
			for i, u := range files {
				c.o.Progress("files", int64(i), int64(len(files)))
				if !yield(u, c.uses.texts[u.hash]) {
					return nil
				}
			}
			return nil
		})
	}
	seen, err := c.walk(ctx, files)
	if err != nil {
		return err
	}
	return c.lookUp(ctx, files, func(yield func(use, string) bool) error { return c.unseen(ctx, files, seen, yield) })
}

// lookUp stats the files one by one, several at once.
func (c *checker) lookUp(ctx context.Context, files []use, each func(yield func(use, string) bool) error) error {
	if len(files) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	var mu sync.Mutex
	told := map[string]bool{}
	err := each(func(u use, spelling string) bool {
		g.Go(func() error {
			e, err := c.loc.Find(ctx, c.r, spelling)
			if err != nil {
				mu.Lock()
				again := told[spelling]
				told[spelling] = true
				mu.Unlock()
				if again {
					return nil // another entry has another size for it
				}
				return c.wrong(FileMissing, FileMissing, spelling, err)
			}
			c.compareSize(u, e)
			return nil
		})
		return ctx.Err() == nil
	})
	if werr := g.Wait(); werr != nil {
		return werr
	}
	return err
}

func (c *checker) compareSize(u use, e *filer.Entry) {
	if e.Size != u.size {
		c.found(FileSize, Error, c.loc.Spelling(e.Path), "the file has %d bytes, manifest %s says %d", e.Size, c.manifests[u.manifest].spelling, u.size)
	}
}

// walk lists the table's locations and marks the files it meets. files are in
// the order of their hashes.
func (c *checker) walk(ctx context.Context, files []use) ([]bool, error) {
	seen := make([]bool, len(files))
	n := int64(0)
	for _, root := range c.walkable() {
		for e, err := range filer.WalkTree(ctx, c.r, root, filer.WalkOptions{}) {
			if err != nil {
				return nil, err
			}
			if e.IsDir {
				continue
			}
			h := c.hash(e.Path)
			at, _ := slices.BinarySearchFunc(files, h, func(u use, h uint64) int { return cmp.Compare(u.hash, h) })
			for ; at < len(files) && files[at].hash == h; at++ {
				if seen[at] {
					continue
				}
				seen[at] = true
				if n++; n%10_000 == 0 {
					c.o.Progress("files", n, int64(len(files)))
				}
				c.compareSize(files[at], e)
			}
		}
	}
	return seen, nil
}

// walkable are the table's own locations, without those inside others.
func (c *checker) walkable() []filer.Path {
	var roots []filer.Path
	for _, r := range c.loc.Roots() {
		if c.loc.Owned(r.Path.Join("x")) {
			roots = append(roots, r.Path)
		}
	}
	slices.Sort(roots)
	var out []filer.Path
	for _, p := range roots {
		if !slices.ContainsFunc(out, func(o filer.Path) bool { return p.Within(o) }) {
			out = append(out, p)
		}
	}
	return out
}

// unseen yields the files that the walk did not meet, because they are missing,
// elsewhere or spelled otherwise, with their spelling from their manifest.
func (c *checker) unseen(ctx context.Context, files []use, seen []bool, yield func(use, string) bool) error {
	wanted := map[int32]map[uint64][]use{}
	for i, u := range files {
		if seen[i] {
			continue
		}
		if wanted[u.manifest] == nil {
			wanted[u.manifest] = map[uint64][]use{}
		}
		wanted[u.manifest][u.hash] = append(wanted[u.manifest][u.hash], u)
	}
	for _, at := range sortedKeys(wanted) {
		m := c.manifests[at]
		o := c.readOptions(m)
		o.Projection = manifests.ProjectPath
		for e, err := range manifests.EntriesOf(ctx, c.r, c.loc, m.file, o) {
			if err != nil {
				if err := c.wrong(ManifestUnreadable, ManifestMissing, m.spelling, err); err != nil {
					return err
				}
				break
			}
			p, err := c.loc.Resolve(e.Path)
			if err != nil || !e.Live() {
				continue
			}
			h := c.hash(p)
			for _, u := range wanted[at][h] {
				if !yield(u, e.Path) {
					return nil
				}
			}
			delete(wanted[at], h)
		}
	}
	return nil
}
