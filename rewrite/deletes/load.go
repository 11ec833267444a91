package deletes

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	icego "github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/resolve"
)

// Kind is what a delete is.
type Kind uint8

// The kinds.
const (
	PositionDelete Kind = iota + 1
	DeletionVector
	EqualityDelete
)

// DataFile is a data file whose deleted rows are asked for.
type DataFile struct {
	// Location is its name as the manifest spells it, At where it lies.
	Location string
	At       filer.Path
	// Records is the entry's row count.
	Records int64
	// Type and Partition are the spec and the tuple of its entry: columns that the
	// file lacks may have their value there.
	Type      *iceberg.PartitionType
	Partition iceberg.Tuple
	// Lower and Upper are the bounds of its entry, nil if it has none. Equality
	// keys outside are not looked for.
	Lower, Upper map[iceberg.FieldID][]byte
	// File is the file if it is open. Load does not close it.
	File *column.File
}

func (d *DataFile) bounds(id iceberg.FieldID) (lower, upper []byte, ok bool) {
	lower, upper = d.Lower[id], d.Upper[id]
	return lower, upper, lower != nil && upper != nil
}

// DeleteFile is a delete as its manifest entry describes it.
type DeleteFile struct {
	Kind     Kind
	Location string
	At       filer.Path
	// Format is the entry's file format, in any case.
	Format  string
	Records int64
	// Offset and Size locate a deletion vector.
	Offset, Size int64
	// EqualityIDs are the key columns of an equality delete.
	EqualityIDs []iceberg.FieldID
	// Applies are the indexes of the data files it applies to by sequence
	// numbers, specs, partitions and referenced data file, as the rules of
	// package manifests decide. What else a position delete file names is passed
	// over.
	Applies []int
}

// Request asks which rows are deleted.
type Request struct {
	Reader filer.Reader
	// FormatVersion, History, Names and HasNames are the table's. They find the
	// columns of equality keys.
	FormatVersion int
	History       *iceberg.History
	Names         icego.NameMapping
	HasNames      bool

	Data    []DataFile
	Deletes []DeleteFile
	// Candidates are the places that a spelling in a position delete file may
	// mean, the likeliest first: Locator.Candidates. Nil is for tables where all
	// spell a file alike.
	Candidates func(spelling string) ([]filer.Path, error)

	// Columns say how Parquet files are read, and have the budget that memory is
	// taken from.
	Columns column.Options
	// TableBytes is what one table of equality keys takes at most; 48 MiB by
	// default. More keys than fit are looked for in several passes over the key
	// columns of the data files.
	TableBytes int64
	// MaxKeys is how many equality keys there may be; 1 Gi by default. More are
	// fault.TooLarge.
	MaxKeys int64
	// Parallel is how many files are read at once; one for each CPU by default.
	Parallel int
	// Cache, if not nil, keeps delete files for other requests of the same run.
	Cache *Cache
}

// Counts are what was found in one delete.
type Counts struct {
	// Rows are the rows, positions or keys in it.
	Rows int64
	// Taken are those of a data file asked for, repeated ones included, or, of
	// keys, those inside of the data files' bounds.
	Taken int64
}

// Result says which rows are deleted.
type Result struct {
	// Positions are those of each data file, nil for none.
	Positions []*Positions
	// Deletes are counts for each delete.
	Deletes []Counts
	// Passes is how often the key columns of the data files were gone over.
	Passes int
}

const (
	defaultTableBytes = 48 << 20
	leastTableBytes   = 64 << 10
	defaultMaxKeys    = 1 << 30
)

// Load reads deletes and says which rows of the data files they delete. Every
// delete is read once. What this program cannot read (Avro, ORC, keys in lists)
// is fault.Unsupported, what contradicts itself or its manifest entry
// fault.Corrupt, each with the file named; two vectors for one data file are
// fault.Corrupt (F020).
func Load(ctx context.Context, q Request) (*Result, error) {
	l := loader{q: q, out: &Result{Positions: make([]*Positions, len(q.Data)), Deletes: make([]Counts, len(q.Deletes))}}
	if err := l.prepare(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{l.vectors, l.positions, l.equality} {
		err := step(ctx)
		if err == nil {
			err = l.admit()
		}
		if err != nil {
			return nil, err
		}
	}
	for i, p := range l.out.Positions {
		if p.Empty() {
			l.out.Positions[i] = nil
		}
	}
	return l.out, nil
}

// admit looks whether there is room for the positions found so far. The caller,
// who keeps them, takes what they need.
func (l *loader) admit() error {
	n := int64(0)
	for _, p := range l.out.Positions {
		n += p.Bytes()
	}
	budget := l.q.Columns.Budget
	if err := budget.Take(n); err != nil {
		return fault.In("keep the positions of deleted rows", err)
	}
	budget.Give(n)
	return nil
}

type loader struct {
	q    Request
	out  *Result
	kind map[Kind][]int // indexes of deletes that apply to something
}

func (l *loader) prepare() error {
	q := &l.q
	if q.TableBytes <= 0 {
		q.TableBytes = defaultTableBytes
	}
	if q.MaxKeys <= 0 {
		q.MaxKeys = defaultMaxKeys
	}
	if q.Parallel <= 0 {
		q.Parallel = runtime.GOMAXPROCS(0)
	}
	for i := range q.Data {
		if d := &q.Data[i]; d.Records < 0 {
			return fault.New(fault.Corrupt, fmt.Sprintf("data file %s has %d records", d.Location, d.Records))
		}
		l.out.Positions[i] = &Positions{}
	}
	l.kind = map[Kind][]int{}
	for i := range q.Deletes {
		d := &q.Deletes[i]
		if len(d.Applies) == 0 {
			continue
		}
		for _, n := range d.Applies {
			if n < 0 || n >= len(q.Data) {
				return fault.New(fault.Halt, fmt.Sprintf("delete %s applies to data file %d of %d", d.Location, n, len(q.Data)))
			}
		}
		want := "PARQUET"
		switch d.Kind {
		case DeletionVector:
			want = "PUFFIN"
		case PositionDelete, EqualityDelete:
		default:
			return fault.New(fault.Halt, fmt.Sprintf("delete %s has the kind %d", d.Location, d.Kind))
		}
		if !strings.EqualFold(d.Format, want) {
			return fault.New(fault.Unsupported, fmt.Sprintf("delete %s has the format %s; only %s is read", d.Location, d.Format, want))
		}
		l.kind[d.Kind] = append(l.kind[d.Kind], i)
	}
	return nil
}

// parallel does things n at once and ends with the first error.
func (l *loader) parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, each := errgroup.WithContext(ctx)
	g.SetLimit(l.q.Parallel)
	for i := range n {
		if each.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			defer guard(&err)
			return do(each, i)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return fault.Wrap(fault.Canceled, "read deletes", ctx.Err())
}

// parquet opens a delete file and has it used.
func (l *loader) parquet(ctx context.Context, at filer.Path, name string, use func(f *column.File) error) error {
	return l.through(ctx, l.q.Cache, at, name, use)
}

func (l *loader) through(ctx context.Context, cache *Cache, at filer.Path, name string, use func(f *column.File) error) error {
	o, done, err := cache.open(ctx, l.q.Reader, at)
	if err != nil {
		return missing(name, err)
	}
	defer done()
	f, err := column.Open(ctx, o, name, l.q.Columns)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(f)
}

// missing makes a file that its manifest names and that is not there damage.
func missing(name string, err error) error {
	if filer.NotFound(err) {
		return fault.Wrap(fault.Corrupt, "open "+name, err)
	}
	return fault.In("open "+name, err)
}

// data opens a data file and has it used.
func (l *loader) data(ctx context.Context, n int, use func(f *column.File) error) error {
	d := &l.q.Data[n]
	checked := func(f *column.File) error {
		if rows := f.Footer().Rows; rows != d.Records {
			return fault.New(fault.Corrupt, fmt.Sprintf("%s has %d rows, its manifest says %d", d.Location, rows, d.Records))
		}
		return use(f)
	}
	if d.File != nil {
		return checked(d.File)
	}
	return l.through(ctx, nil, d.At, d.Location, checked)
}

// context is what is known of a data file besides its footer.
func (l *loader) context(d *DataFile) resolve.Context {
	return resolve.Context{FormatVersion: l.q.FormatVersion, Names: l.q.Names, HasNames: l.q.HasNames, Type: d.Type, Partition: d.Partition}
}
