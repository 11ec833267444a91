package rewrite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/movement"
	"github.com/seaice/seaice/rewrite/resolve"
)

// engine is one unit in work.
type engine struct {
	q *Request
	// workers is how many columns are made at a time.
	workers  int
	settings settings
	target   *resolve.Target
	// measures says what is counted of each leaf.
	measures []*metrics.Column
	codec    format.Codec
	// gains says of each leaf whether a dictionary is worth encoding it anew.
	gains   []verdict
	sources []*source
	layout  *layout
	// lanes bounds what waits for its turn in the file, reading what readers and
	// decoders take.
	lanes   *semaphore.Weighted
	reading *column.Budget
	// room is what of that the open files leave.
	room   int64
	moves  *movement.Builder
	proof  *xxh3.Hasher
	counts counters
	// encoders and remappers are not used at the moment.
	encoders, remappers sync.Pool
	// footers is about what the footers take.
	footers atomic.Int64
	// whole is the size up to which sources are kept whole, negative for none.
	whole int64
	// tails is what the page indexes take that are kept, tail how long they are.
	tails atomic.Int64
	tail  tailGuess
	// banded reports that the row group that is moved is read in bands.
	banded bool
	// broken lets tests break the bytes of pages on their way.
	broken func(place, []byte)
}

// place is where a test may break a page: as it was made, before it is proved,
// and while it waits for its turn in the file.
type place uint8

const (
	faultMade place = iota
	faultHeld
)

// breaking is the key of a function in a context that breaks pages.
type breaking struct{}

func (e *engine) fault(p place, body []byte) {
	if e.broken != nil {
		e.broken(p, body)
	}
}

// counters are what several columns count at once.
type counters struct {
	read                                      atomic.Int64
	verbatim, remapped, recompressed, encoded atomic.Int64
	proved                                    atomic.Int64
}

// Merge moves the rows of the sources, in their order and without those deleted,
// into as few outputs as the target allows, and proves that it did. No output is
// made for a unit without rows. On an error everything that was created is
// aborted; the kind says what is wrong: Corrupt and Unsupported name the file,
// TooLarge the bytes that are needed, and Halt means that what was written is
// not what was read.
func Merge(ctx context.Context, q Request) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Halt, fmt.Sprintf("merge: %v\n%s", p, debug.Stack()))
		}
	}()
	q.Progress = rising(q.Progress)
	workers := workersOf(runtime.GOMAXPROCS(0), q.memory())
	res, err = merge(ctx, &q, workers)
	if fault.Is(err, fault.TooLarge) && workers > 1 {
		// One column at a time takes less. Outputs that are made already are made anew.
		res, err = merge(ctx, &q, 1)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && fault.Of(err) == fault.Unknown {
		err = fault.Wrap(fault.Canceled, "merge", err)
	}
	return res, err
}

// workerBytes is the memory that a column takes which is made beside others; with less
// all would have to be begun anew, one at a time.
const workerBytes = 16 << 20

// workersOf is how many columns are made at a time with so many processors.
func workersOf(processors int, memory int64) int {
	n := min(int64(processors), max(2, memory/workerBytes))
	if memory >= n*4*workerBytes {
		n *= 2 // while some wait for their reads
	}
	return int(n)
}

// rising tells only numbers greater than those told before.
func rising(tell func(int64)) func(int64) {
	if tell == nil {
		return nil
	}
	var mu sync.Mutex
	most := int64(0)
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		if n > most {
			most = n
			tell(n)
		}
	}
}

// merge merges with so many columns at a time.
func merge(ctx context.Context, q *Request, workers int) (Result, error) {
	e, err := prepare(ctx, q, workers)
	if e != nil {
		defer e.close()
	}
	if err != nil {
		return Result{}, err
	}
	res, err := e.run(ctx)
	if err != nil {
		return Result{}, err
	}
	return res, nil
}

func (e *engine) close() {
	for _, s := range e.sources {
		if s != nil {
			s.close()
		}
	}
}

// prepare opens and resolves the sources and lays the unit out.
func prepare(ctx context.Context, q *Request, workers int) (*engine, error) {
	if len(q.Sources) == 0 || q.TargetBytes <= 0 || q.Table.Schema == nil || q.Reader == nil || q.Create == nil {
		return nil, fault.New(fault.Halt, "merge: a request needs sources, a target size, a schema, a reader and a sink")
	}
	e := &engine{q: q, workers: workers, proof: xxh3.New()}
	e.broken, _ = ctx.Value(breaking{}).(func(place, []byte))
	var err error
	if e.settings, err = readSettings(q.Table.Properties); err != nil {
		return e, err
	}
	e.lanes = semaphore.NewWeighted(e.memory() / 4)
	e.reading = column.NewBudget(e.memory() / 2)
	if err := e.open(ctx); err != nil {
		return e, err
	}
	if err := e.resolve(); err != nil {
		return e, err
	}
	modes := metrics.NewConfig(q.Table.Properties, q.Table.Schema, q.Table.Order)
	for i := range e.target.Leaves {
		e.measures = append(e.measures, metrics.For(&e.target.Leaves[i], modes))
	}
	e.gains = make([]verdict, len(e.target.Leaves))
	e.pickCodec()
	moved := make([]movement.Source, len(e.sources))
	for i, s := range e.sources {
		s.index = i
		moved[i] = movement.Source{Location: s.Location, Rows: s.Records}
	}
	e.moves = movement.NewBuilder(moved)
	e.layout = e.newLayout()
	return e, nil
}

// defaultMemory is the budget of a request that states none.
const defaultMemory = 128 << 20

func (q *Request) memory() int64 {
	if q.MemoryBytes > 0 {
		return q.MemoryBytes
	}
	return defaultMemory
}

func (e *engine) memory() int64 { return e.q.memory() }

// pickCodec takes the table's codec, or else that of most bytes of the sources.
func (e *engine) pickCodec() {
	if e.settings.hasCodec {
		e.codec = e.settings.codec
		return
	}
	bytes := map[format.Codec]int64{}
	for _, s := range e.sources {
		for g := range s.file.Footer().RowGroups {
			for _, c := range s.file.Footer().RowGroups[g].Columns {
				bytes[outputCodec(c.Codec)] += c.CompressedSize
			}
		}
	}
	best := int64(-1)
	for _, c := range []format.Codec{format.Zstd, format.Snappy, format.Gzip, format.LZ4Raw, format.Brotli, format.Uncompressed} {
		if n, ok := bytes[c]; ok && n > best {
			e.codec, best = c, n
		}
	}
	if best < 0 {
		e.codec = format.Zstd
	}
}

// outputCodec is the codec that stands for one that is not written any more.
func outputCodec(c format.Codec) format.Codec {
	switch c {
	case format.LZ4:
		return format.LZ4Raw
	case format.LZO:
		return format.Zstd
	}
	return c
}

func (e *engine) newLayout() *layout {
	l := &layout{
		target: e.q.TargetBytes, groupBytes: e.settings.groupBytes, groupRows: e.settings.groupRows, maxRows: e.q.MaxRows,
		exact: e.q.Copying != CopyNever,
	}
	for i, s := range e.sources {
		l.deleted = append(l.deleted, s.Deleted)
		for g := range s.file.Footer().RowGroups {
			b := block{span: span{source: i, group: g, first: s.starts[g], rows: s.starts[g+1] - s.starts[g]}}
			b.live = b.rows - s.Deleted.Count(b.first, b.first+b.rows)
			if b.live == 0 {
				continue
			}
			b.bytes = float64(s.bytes(g)) * float64(b.live) / float64(b.rows)
			l.blocks = append(l.blocks, b)
		}
	}
	return l
}

// run writes the outputs.
func (e *engine) run(ctx context.Context) (res Result, err error) {
	var outs []*outFile
	finished := false
	defer func() {
		if err != nil || !finished { // or after a panic
			for _, o := range outs {
				o.sink.Abort()
			}
		}
	}()
	for !e.layout.empty() {
		o, err := e.create(ctx, len(outs))
		if err != nil {
			return res, err
		}
		outs = append(outs, o)
		if err := e.write(ctx, o); err != nil {
			return res, err
		}
		res.Outputs = append(res.Outputs, o.result)
	}
	locations := make([]string, len(outs))
	for i := range outs {
		locations[i] = res.Outputs[i].Location
	}
	if res.Map, err = e.moves.Build(locations); err != nil {
		return res, err
	}
	res.Proof, err = e.proved(res.Outputs)
	finished = true
	return res, err
}

// proved checks the counts and states what was proved.
func (e *engine) proved(outputs []Output) (Proof, error) {
	p := Proof{Verify: e.q.Verify.String(), Sum: hex.EncodeToString(e.proof.Sum(nil))}
	for _, s := range e.sources {
		p.RowsRead += s.Records
		p.RowsDeleted += s.Deleted.Count(0, s.Records)
	}
	for _, o := range outputs {
		p.RowsWritten += o.Records
	}
	p.BytesRead = e.counts.read.Load()
	p.Verbatim, p.Remapped = e.counts.verbatim.Load(), e.counts.remapped.Load()
	p.Recompressed, p.Encoded = e.counts.recompressed.Load(), e.counts.encoded.Load()
	p.Proved = e.counts.proved.Load()
	if p.RowsRead-p.RowsDeleted != p.RowsWritten {
		return p, fault.New(fault.Halt, fmt.Sprintf("merge: %d rows were read and %d deleted, but %d written", p.RowsRead, p.RowsDeleted, p.RowsWritten))
	}
	return p, nil
}

// group writes one row group: the leaves are made by workers, several at a time,
// and written in their order.
func (e *engine) group(ctx context.Context, o *outFile, spans []span) error {
	lanes := make([]*lane, len(e.target.Leaves))
	for i := range lanes {
		lanes[i] = newLane(e.lanes)
	}
	defer func() {
		for _, l := range lanes {
			l.drop()
		}
	}()
	bands := e.bands(spans)
	defer bands.close()
	work, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(e.workers, len(lanes)) {
		work.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(lanes) || ctx.Err() != nil {
					return nil
				}
				err := e.move(ctx, i, spans, lanes[i])
				bands.moved(i)
				lanes[i].finish(err)
				if err != nil {
					return err
				}
			}
		})
	}
	work.Go(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fault.New(fault.Halt, fmt.Sprintf("write a row group: %v\n%s", p, debug.Stack()))
			}
		}()
		return o.group(ctx, spans, lanes)
	})
	return work.Wait()
}

// recovered makes what a library panicked with an error about the input at hand.
func recovered(p any, doing string) error {
	if err, ok := p.(error); ok {
		var re runtime.Error
		if !errors.As(err, &re) {
			return fault.Wrap(fault.Corrupt, doing, err)
		}
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("%s: %v", doing, p))
}
