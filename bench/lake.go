package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	builtin "github.com/seaweedfs/seaweedfs/weed/worker/tasks/iceberg"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
	"github.com/seaice/seaice/ops/expire"
	rewritemanifests "github.com/seaice/seaice/ops/manifests"
	"github.com/seaice/seaice/trash"
	"github.com/seaice/seaice/worker"
)

const (
	lakeBucket    = "bench"
	lakeNamespace = "tables"
	lakeSeed      = 20260815
)

// lake is a SeaweedFS with both maintainers at hand. It belongs to one bench,
// so that what another one left in it costs nobody.
type lake struct {
	*cluster.Cluster
	dir     string
	fl      *filer.Client
	conn    *grpc.ClientConn
	builtin *builtin.Handler
	tables  int
	sets    int // data sets stored
}

// registry is every operation the program has.
func registry() *ops.Registry {
	return ops.NewRegistry(compact.New(nil), rewritemanifests.New(), expire.New())
}

func openLake(ctx context.Context) (_ *lake, err error) {
	l := &lake{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.dir, err = os.MkdirTemp("", "seaice-bench-"); err != nil {
		return nil, err
	}
	if l.Cluster, err = cluster.Start(ctx, cluster.Options{Dir: l.dir, Admin: true, S3: true, Bucket: lakeBucket}); err != nil {
		return nil, err
	}
	if l.fl, err = filer.Dial(ctx, filer.Config{Addresses: []string{l.Filer}, Security: l.Security}); err != nil {
		return nil, err
	}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	// The admin gives the built-in worker connections without a practical limit.
	const large = 1 << 30
	if l.conn, err = grpc.NewClient(l.FilerGRPC, plain,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(large), grpc.MaxCallSendMsgSize(large))); err != nil {
		return nil, err
	}
	l.builtin = builtin.NewHandler(plain)
	return l, l.rest(ctx, http.MethodPost, "", map[string]any{"namespace": []string{lakeNamespace}})
}

func (l *lake) close() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
	if l.fl != nil {
		_ = l.fl.Close()
	}
	if l.Cluster != nil {
		l.Stop()
	}
	_ = os.RemoveAll(l.dir)
}

func (l *lake) weed() filer_pb.SeaweedFilerClient { return filer_pb.NewSeaweedFilerClient(l.conn) }

// rest calls the catalog below its namespaces.
func (l *lake) rest(ctx context.Context, method, below string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, l.REST+"/v1/"+lakeBucket+"/namespaces"+below, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: status %d: %s", method, req.URL, resp.StatusCode, text)
	}
	return err
}

// records writes synthetic tables into a real filer: the catalog makes a
// table's record, whose content is then replaced.
type records struct {
	*filer.Client
	ctx context.Context //nolint:containedctx // lives for one call of model.Synthetic
	l   *lake
	err error
}

// Mkdir makes the record of a table.
func (r *records) Mkdir(p filer.Path, set map[string][]byte) *filer.Entry {
	e, err := r.mkdir(p, set)
	r.err = errors.Join(r.err, err)
	return e
}

func (r *records) mkdir(p filer.Path, set map[string][]byte) (*filer.Entry, error) {
	schema := map[string]any{"type": "struct", "schema-id": 0, "fields": []any{
		map[string]any{"id": 1, "name": "id", "type": "long", "required": false},
	}}
	at := "/" + lakeNamespace + "/tables"
	if err := r.l.rest(r.ctx, http.MethodPost, at, map[string]any{"name": p.Name(), "schema": schema}); err != nil {
		return nil, err
	}
	base, err := r.Stat(r.ctx, p)
	if err != nil {
		return nil, err
	}
	return r.Update(r.ctx, filer.Update{Base: base, Expect: filer.Expectation(base, iceberg.CatalogAttributes()...), Set: set})
}

// table makes a fresh table that only differs from others of the same options
// in name and ids.
func (l *lake) table(ctx context.Context, o model.SyntheticOptions) (iceberg.TableID, error) {
	l.tables++
	o.ID = iceberg.TableID{Bucket: lakeBucket, Namespace: lakeNamespace, Name: fmt.Sprintf("t%03d", l.tables)}
	o.Seed, o.Clock = lakeSeed, clock.System()
	r := &records{Client: l.fl, ctx: ctx, l: l}
	_, err := model.Synthetic(ctx, r, o)
	return o.ID, errors.Join(err, r.err)
}

// drop forgets the table, so that it is not in the way of the next.
func (l *lake) drop(ctx context.Context, id iceberg.TableID) error {
	return l.rest(ctx, http.MethodDelete, "/"+lakeNamespace+"/tables/"+id.Name, nil)
}

// onFreshTable returns a side whose figure is amount per second of work on a
// table made for it. Making it does not count.
func (l *lake) onFreshTable(amount float64, o model.SyntheticOptions, work func(ctx context.Context, id iceberg.TableID) error) func(ctx context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		id, err := l.table(ctx, o)
		if err != nil {
			return 0, fmt.Errorf("make table: %w", err)
		}
		// Files as young as a plan, in the filer's seconds, are left alone.
		if err := clock.System().Sleep(ctx, 1100*time.Millisecond); err != nil {
			return 0, err
		}
		runtime.GC()
		start := time.Now()
		if err := work(ctx, id); err != nil {
			return 0, err
		}
		took := time.Since(start)
		return amount / took.Seconds(), l.drop(ctx, id)
	}
}

// run lets Seaice run an operation, as its program does, and requires that it
// committed.
func (l *lake) run(ctx context.Context, id iceberg.TableID, k ops.Kind) (ops.Result, error) {
	return l.runWith(ctx, id, k, nil)
}

// runWith is run with settings over the table's.
func (l *lake) runWith(ctx context.Context, id iceberg.TableID, k ops.Kind, set map[string]string) (ops.Result, error) {
	w := worker.New(worker.Options{
		Filer: l.fl, Clock: clock.System(), Registry: registry(), Tenancy: trash.NewReferences(l.fl),
	})
	results, err := w.Run(ctx, worker.Request{Table: id, Only: []ops.Kind{k}, Layers: config.Layers{Flags: set}})
	if err != nil {
		return ops.Result{}, err
	}
	if len(results) != 1 || results[0].Status != ops.Finished || results[0].Actual == nil || len(results[0].Warnings) > 0 {
		return ops.Result{}, fmt.Errorf("%s did not finish: %+v", k, results)
	}
	return results[0], nil
}

// did requires one figure of what the built-in worker says it did.
func did(metrics map[string]int64, name string, want int) error {
	if metrics[name] != int64(want) {
		return fmt.Errorf("the built-in worker's %s is %d, not %d", name, metrics[name], want)
	}
	return nil
}
