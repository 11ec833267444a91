package weed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // s3:// paths
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
	"github.com/seaice/seaice/ops/expire"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

const (
	lakeBucket    = "lake"
	lakeNamespace = "proofs"
)

// lake is the one cluster that the proofs share: both maintainers work on
// tables of the same shape in it.
type lake struct {
	*cluster.Cluster
	fl  *filer.Client
	cat *rest.Catalog
	dir string
}

var shared = sync.OnceValues(openLake)

func openLake() (_ *lake, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l := &lake{}
	if l.dir, err = os.MkdirTemp("", "seaice-proofs-"); err != nil {
		return nil, err
	}
	started.Store(l)
	if l.Cluster, err = cluster.Start(ctx, cluster.Options{Dir: l.dir, Admin: true, S3: true, Bucket: lakeBucket}); err != nil {
		return nil, err
	}
	if l.fl, err = filer.Dial(ctx, filer.Config{Addresses: []string{l.Filer}, Security: l.Security}); err != nil {
		return nil, err
	}
	l.cat, err = rest.NewCatalog(ctx, "proofs", l.REST, rest.WithWarehouseLocation("s3://"+lakeBucket+"/"),
		rest.WithAdditionalProps(icego.Properties{
			"s3.endpoint": l.S3, "s3.region": "us-east-1", "s3.force-virtual-addressing": "false",
			"s3.access-key-id": "any", "s3.secret-access-key": "any",
		}))
	if err != nil {
		return nil, err
	}
	return l, l.cat.CreateNamespace(ctx, icetable.Identifier{lakeNamespace}, nil)
}

// started is the lake if it was ever begun, so that its end needs no start.
var started atomic.Pointer[lake]

func TestMain(m *testing.M) {
	code := m.Run()
	if err := closeLake(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func closeLake() error {
	l := started.Load()
	if l == nil {
		return nil
	}
	var err error
	if l.fl != nil {
		err = l.fl.Close()
	}
	if l.Cluster != nil {
		l.Stop()
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// proofLake is the shared cluster. Without weed the test is skipped, but not
// under CI.
func proofLake(t *testing.T) *lake {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	if _, err := cluster.Weed(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("no weed: %v", err)
	}
	l, err := shared()
	require.NoError(t, err)
	return l
}

// proofTable is a table with the columns id and v.
type proofTable struct {
	t    *testing.T
	l    *lake
	name string
	next int64
}

var proofTables atomic.Int64

// expirable makes every snapshot but the head's old enough to expire.
var expirable = icego.Properties{"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "1"}

// table makes a table as a streaming writer does: a data file of four rows, a
// manifest and a snapshot for each commit. It is dropped with the test, so that
// what a proof destroys bothers no other.
func (l *lake) table(t *testing.T, commits int, props icego.Properties) *proofTable {
	t.Helper()
	p := &proofTable{t: t, l: l, name: fmt.Sprintf("t%d", proofTables.Add(1))}
	schema := icego.NewSchema(0,
		icego.NestedField{ID: 1, Name: "id", Type: icego.PrimitiveTypes.Int64, Required: true},
		icego.NestedField{ID: 2, Name: "v", Type: icego.PrimitiveTypes.String})
	all := icego.Properties{"format-version": "2"}
	for k, v := range props {
		all[k] = v
	}
	_, err := l.cat.CreateTable(t.Context(), p.ident(), schema, catalog.WithProperties(all))
	require.NoError(t, err)
	p.dropped()
	for range commits {
		p.write(icetable.MainBranch)
	}
	return p
}

func (p *proofTable) dropped() {
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.l.cat.DropTable(ctx, p.ident()); err != nil && !errors.Is(err, catalog.ErrNoSuchTable) {
			p.t.Errorf("drop %s: %v", p.name, err)
		}
	})
}

func (p *proofTable) ident() icetable.Identifier { return icetable.Identifier{lakeNamespace, p.name} }

func (p *proofTable) id() iceberg.TableID {
	return iceberg.TableID{Bucket: lakeBucket, Namespace: lakeNamespace, Name: p.name}
}

// path is the table as the built-in handler names it, within its bucket.
func (p *proofTable) path() string { return lakeNamespace + "/" + p.name }

func (p *proofTable) load() *icetable.Table {
	p.t.Helper()
	t, err := p.l.cat.LoadTable(p.t.Context(), p.ident())
	require.NoError(p.t, err)
	return t
}

// write commits four more rows to a branch.
func (p *proofTable) write(branch string) {
	p.t.Helper()
	t := p.load()
	as, err := icetable.SchemaToArrowSchema(t.Schema(), nil, true, false)
	require.NoError(p.t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	const rows = 4
	for range rows {
		b.Field(0).(*array.Int64Builder).Append(p.next)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("value %d", p.next))
		p.next++
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	tx := t.NewTransactionOnBranch(branch)
	at := array.NewTableFromRecords(as, []arrow.RecordBatch{rec})
	defer at.Release()
	require.NoError(p.t, tx.AppendTable(p.t.Context(), at, rows, nil))
	_, err = tx.Commit(p.t.Context())
	require.NoError(p.t, err)
}

// settled waits until everything written so far is older than a plan made now:
// expiry keeps what carries the second of its plan or a later one.
func (p *proofTable) settled() {
	p.t.Helper()
	require.NoError(p.t, clock.System().Sleep(p.t.Context(), time.Second))
}

// rows are the rows of a branch as iceberg-go reads them, in order.
func (p *proofTable) rows(branch string) []string {
	p.t.Helper()
	rows, err := p.read(branch)
	require.NoError(p.t, err)
	return rows
}

func (p *proofTable) read(branch string) ([]string, error) {
	t, err := p.l.cat.LoadTable(p.t.Context(), p.ident())
	if err != nil {
		return nil, err
	}
	scan, err := t.Scan().UseRef(branch)
	if err != nil {
		return nil, err
	}
	_, records, err := scan.ToArrowRecords(p.t.Context())
	if err != nil {
		return nil, err
	}
	var rows []string
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		for i := range int(rec.NumRows()) {
			rows = append(rows, rec.Column(0).ValueStr(i)+" "+rec.Column(1).ValueStr(i))
		}
		rec.Release()
	}
	slices.Sort(rows)
	return rows, nil
}

// manifests are those of the head.
func (p *proofTable) manifests() []icego.ManifestFile {
	p.t.Helper()
	t := p.load()
	fs, err := t.FS(p.t.Context())
	require.NoError(p.t, err)
	list, err := t.CurrentSnapshot().Manifests(fs)
	require.NoError(p.t, err)
	return list
}

// entries are those of the head's manifests, removed ones too, by data file.
func (p *proofTable) entries() map[string]icego.ManifestEntry {
	p.t.Helper()
	fs, err := p.load().FS(p.t.Context())
	require.NoError(p.t, err)
	out := map[string]icego.ManifestEntry{}
	for _, m := range p.manifests() {
		for e, err := range m.Entries(fs, false) {
			require.NoError(p.t, err)
			require.NotContains(p.t, out, e.DataFile().FilePath(), "a file has one entry")
			out[e.DataFile().FilePath()] = e
		}
	}
	return out
}

// exists reports whether the filer has the file of a location.
func (p *proofTable) exists(location string) bool {
	p.t.Helper()
	_, err := p.l.fl.Stat(p.t.Context(), filer.BucketsRoot.Join(locationParts(p.t, location)...))
	if filer.NotFound(err) {
		return false
	}
	require.NoError(p.t, err)
	return true
}

// unreferenced are the files below the table's location that its metadata does
// not lead to from any snapshot or the metadata log.
func (p *proofTable) unreferenced() (left []string) {
	p.t.Helper()
	t := p.load()
	fs, err := t.FS(p.t.Context())
	require.NoError(p.t, err)
	known := map[string]bool{t.MetadataLocation(): true}
	for m := range t.Metadata().PreviousFiles() {
		known[m.MetadataFile] = true
	}
	for _, s := range t.Metadata().Snapshots() {
		known[s.ManifestList] = true
		list, err := s.Manifests(fs)
		require.NoError(p.t, err)
		for _, m := range list {
			known[m.FilePath()] = true
			for e, err := range m.Entries(fs, true) {
				require.NoError(p.t, err)
				known[e.DataFile().FilePath()] = true
			}
		}
	}
	root := filer.BucketsRoot.Join(locationParts(p.t, t.Location())...)
	for e, err := range filer.WalkTree(p.t.Context(), p.l.fl, root, filer.WalkOptions{}) {
		require.NoError(p.t, err)
		if location := "s3://" + e.Path.Rel(filer.BucketsRoot); !e.IsDir && !known[location] {
			left = append(left, location)
		}
	}
	return left
}

// record is the catalog record as stored.
func (p *proofTable) record() *filer.Entry {
	p.t.Helper()
	e, err := p.l.fl.Stat(p.t.Context(), filer.BucketPath(lakeBucket).Join(lakeNamespace, p.name))
	require.NoError(p.t, err)
	return e
}

// runnerOn is a worker as the program makes it, on fl.
func runnerOn(fl filer.Filer, c clock.Clock) *worker.Runner {
	return worker.New(worker.Options{
		Filer: fl, Clock: c, Registry: ops.NewRegistry(compact.New(nil), rewritemanifests.New(), expire.New()), Tenancy: trash.NewReferences(fl),
	})
}

// run lets Seaice run one operation on the table.
func (p *proofTable) run(fl filer.Filer, k ops.Kind) ops.Result {
	p.t.Helper()
	results, err := runnerOn(fl, clock.System()).Run(p.t.Context(), worker.Request{Table: p.id(), Only: []ops.Kind{k}})
	require.NoError(p.t, err)
	require.Len(p.t, results, 1)
	return results[0]
}

// atSwap is a filer that a test interferes with when a table's record is about
// to be changed, and after that.
type atSwap struct {
	filer.Filer
	before func()
	after  func() error
}

func (f *atSwap) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	if u.Set[iceberg.AttrMetadata] == nil {
		return f.Filer.Update(ctx, u)
	}
	if f.before != nil {
		f.before()
	}
	e, err := f.Filer.Update(ctx, u)
	if err == nil && f.after != nil {
		if lost := f.after(); lost != nil {
			return nil, lost
		}
	}
	return e, err
}

// locationParts are the names of an s3:// location, from the bucket on.
func locationParts(t *testing.T, location string) []string {
	t.Helper()
	path, ok := strings.CutPrefix(location, "s3://")
	require.True(t, ok, location)
	return strings.Split(path, "/")
}
