package deletes

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/resolve"
)

// equality applies the equality deletes: for each set of key columns and each
// chain, tables are filled with keys, and when one is full the keys of every data
// file in reach are looked up in it. A delete is read once, data files once for
// each table.
func (l *loader) equality(ctx context.Context) error {
	groups := map[string][]int{}
	var order []string
	keys := int64(0)
	for _, i := range l.kind[EqualityDelete] {
		d := &l.q.Deletes[i]
		ids := slices.Compact(slices.Sorted(slices.Values(d.EqualityIDs)))
		if len(ids) == 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("equality delete %s has no key columns", d.Location))
		}
		if d.Records < 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("equality delete %s has %d records", d.Location, d.Records))
		}
		if keys += min(d.Records, l.q.MaxKeys+1); keys > l.q.MaxKeys {
			return fault.New(fault.TooLarge, fmt.Sprintf("the equality deletes have %d keys or more, of %d at most", keys, l.q.MaxKeys))
		}
		var name []byte
		for _, id := range ids {
			name = binary.AppendVarint(name, int64(id))
		}
		if groups[string(name)] == nil {
			order = append(order, string(name))
		}
		groups[string(name)] = append(groups[string(name)], i)
	}
	if len(order) > 0 && l.q.History == nil {
		return fault.New(fault.Halt, "equality deletes are read without the table's schemas")
	}
	var all []*join
	for _, name := range order {
		group := groups[name]
		first := &l.q.Deletes[group[0]]
		target, err := resolve.NewFields(l.q.History, first.EqualityIDs)
		if err != nil {
			return fault.In("find the key columns of the equality delete "+first.Location, err)
		}
		for _, c := range chains(group, func(i int) []int { return l.q.Deletes[i].Applies }) {
			all = append(all, l.join(target, c))
		}
	}
	return l.joins(ctx, all)
}

// join is the work of one chain.
type join struct {
	*loader
	target *resolve.Target
	chain  *chain
	files  []int // data files in reach
	limits []limit
	wide   bool
	bytes  int64 // that a table for all keys takes
	table  *table
}

func (l *loader) join(target *resolve.Target, c *chain) *join {
	j := &join{loader: l, target: target, chain: c, files: slices.Sorted(maps.Keys(c.level)), wide: !exactKey(target)}
	var data []*DataFile
	for _, n := range j.files {
		data = append(data, &l.q.Data[n])
	}
	for i := range target.Leaves {
		leaf := &target.Leaves[i]
		j.limits = append(j.limits, limitOf(leaf.ID, leaf.Type, data))
	}
	keys := int64(0)
	for _, m := range c.members {
		keys += l.q.Deletes[m.delete].Records
	}
	j.bytes = tableBytes(keys, j.wide, c.ranks > 1)
	return j
}

// joins does one chain after another in the memory of one table: as large as the
// greatest needs, as the request allows, and as the budget has room for.
func (l *loader) joins(ctx context.Context, all []*join) error {
	size := int64(0)
	for _, j := range all {
		size = max(size, min(j.bytes, l.q.TableBytes))
	}
	budget := l.q.Columns.Budget
	err := budget.Take(size)
	for ; err != nil && size > leastTableBytes; err = budget.Take(size) {
		size /= 2
	}
	if err != nil {
		return fault.In("make room for equality keys", err)
	}
	defer budget.Give(size)
	slices.SortStableFunc(all, func(a, b *join) int { return cmp.Compare(b.bytes, a.bytes) })
	s := newSecret()
	var last *table
	for _, j := range all {
		last = newTable(s, min(j.bytes, size), j.wide, j.chain.ranks > 1, last)
		j.table = last
		if err := j.fill(ctx); err != nil {
			return err
		}
		if err := j.probe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keysAtOnce are in one batch, and a few batches on their way for each file that
// is read.
const keysAtOnce = 4096

// batch is keys of one delete.
type batch struct {
	keys []key
	rank rank
}

// fill reads the deletes, several at once, and puts their keys into the table,
// which is looked up and emptied whenever it is full.
func (j *join) fill(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	g, readers := errgroup.WithContext(reading)
	g.SetLimit(j.q.Parallel)
	full := make(chan batch, j.q.Parallel)
	free := make(chan []key, 2*j.q.Parallel)
	sent := make(chan error, 1)
	go func() {
		defer close(full)
		for _, m := range j.chain.members {
			if readers.Err() != nil {
				break
			}
			g.Go(func() (err error) {
				defer guard(&err)
				return j.read(readers, m, full, free)
			})
		}
		sent <- g.Wait()
	}()
	var failed error
	for b := range full {
		for _, k := range b.keys {
			if failed != nil {
				break
			}
			if j.table.full() {
				if failed = j.probe(ctx); failed != nil {
					stop() // and take what is on its way
					break
				}
				j.table.reset()
			}
			j.table.add(k, b.rank)
		}
		select {
		case free <- b.keys[:cap(b.keys)]:
		default:
		}
	}
	if err := <-sent; err != nil && failed == nil {
		return err
	}
	return failed
}

// read sends the keys of one delete.
func (j *join) read(ctx context.Context, m member, full chan<- batch, free <-chan []key) error {
	d := &j.q.Deletes[m.delete]
	return j.parquet(ctx, d.At, d.Location, func(f *column.File) error {
		if rows := f.Footer().Rows; rows != d.Records {
			return fault.New(fault.Corrupt, fmt.Sprintf("%s has %d rows, its manifest says %d", d.Location, rows, d.Records))
		}
		// No tuple: an equality delete holds its keys.
		c := resolve.Context{FormatVersion: j.q.FormatVersion, Names: j.q.Names, HasNames: j.q.HasNames}
		k, err := j.reader(f, c)
		if err != nil {
			return err
		}
		defer k.close()
		for i := range k.columns {
			if s := k.columns[i].source; s.Synthetic {
				return fault.New(fault.Corrupt, fmt.Sprintf("equality delete %s has no column %s (id %d), which is part of its key",
					d.Location, k.columns[i].name, j.target.Leaves[i].ID))
			}
			k.columns[i].limit = j.limits[i]
		}
		counts := Counts{}
		for {
			var keys []key
			select {
			case keys = <-free:
			default:
				keys = make([]key, keysAtOnce)
			}
			n, rows, err := k.next(keys, nil)
			if err != nil {
				return err
			}
			if rows == 0 {
				break
			}
			counts.Rows, counts.Taken = counts.Rows+int64(rows), counts.Taken+int64(n)
			if n == 0 {
				continue
			}
			select {
			case full <- batch{keys: keys[:n], rank: m.rank}:
			case <-ctx.Done():
				return fault.Wrap(fault.Canceled, "read "+d.Location, ctx.Err())
			}
		}
		j.out.Deletes[m.delete] = counts
		return nil
	})
}

// reader reads keys of a file.
func (j *join) reader(f *column.File, c resolve.Context) (*keyReader, error) {
	m, err := resolve.File(j.target, f.Footer(), c)
	if err != nil {
		return nil, fault.In("find the key columns of "+f.Name(), err)
	}
	return newKeyReader(f, j.target, m, &j.table.secret)
}

// probe looks the keys of every data file in reach up in the table.
func (j *join) probe(ctx context.Context) error {
	if j.table.empty() {
		return nil
	}
	j.out.Passes++
	return j.parallel(ctx, len(j.files), func(ctx context.Context, i int) error {
		n := j.files[i]
		return j.data(ctx, n, func(f *column.File) error { return j.lookUp(f, n) })
	})
}

func (j *join) lookUp(f *column.File, n int) error {
	k, err := j.reader(f, j.context(&j.q.Data[n]))
	if err != nil {
		return err
	}
	defer k.close()
	level, hit := j.chain.level[n], j.out.Positions[n]
	keys := make([]key, keysAtOnce)
	row := int64(0)
	begin, end := int64(0), int64(0) // a range not added yet
	for {
		m, rows, err := k.next(keys, j.table)
		if err != nil {
			return err
		}
		if rows == 0 {
			break
		}
		if m != rows {
			return fault.New(fault.Halt, fmt.Sprintf("%d keys of %d rows of %s", m, rows, f.Name()))
		}
		for i := range keys[:rows] {
			if r := j.table.rankOf(keys[i]); r == 0 || r < level {
				continue
			}
			at := row + int64(i)
			if at == end && end > begin {
				end++
				continue
			}
			hit.addRun(begin, end)
			begin, end = at, at+1
		}
		row += int64(rows)
	}
	hit.addRun(begin, end)
	return nil
}
