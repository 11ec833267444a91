package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"

	iceio "github.com/apache/iceberg-go/io"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

// Peer opens a table with iceberg-go for writing: the transactions of the
// result commit to the record by compare-and-swap, as another engine beside
// this program. Its ids and names are iceberg-go's own and differ each time.
// Refresh takes its commits into the model.
func Peer(ctx context.Context, fl filer.Filer, id iceberg.TableID, clk clock.Clock, seed uint64) (*icetable.Table, error) {
	p := &peer{fl: fl, id: id, cat: catalog{fl: fl, id: id, clk: clk, rng: rand.New(newSource(seed, id))}}
	return p.LoadTable(ctx, nil)
}

// peer is a catalog of one table.
type peer struct {
	fl  filer.Filer
	id  iceberg.TableID
	cat catalog
}

// LoadTable opens the head.
func (p *peer) LoadTable(ctx context.Context, _ icetable.Identifier) (*icetable.Table, error) {
	_, rec, err := p.cat.head(ctx)
	if err != nil {
		return nil, err
	}
	t, err := OpenMetadata(ctx, p.fl, rec.MetadataLocation)
	if err != nil {
		return nil, err
	}
	root, err := rootOf(t.Location())
	if err != nil {
		return nil, err
	}
	files := func(ctx context.Context) (iceio.IO, error) { return writeIO{readIO{ctx, p.fl, root}, p.fl}, nil }
	return icetable.New(icetable.Identifier{p.id.Namespace, p.id.Name}, t.Metadata(), rec.MetadataLocation, files, p), nil
}

// CommitTable validates, writes the next metadata and swaps the record.
func (p *peer) CommitTable(ctx context.Context, _ icetable.Identifier, reqs []icetable.Requirement, updates []icetable.Update) (icetable.Metadata, string, error) {
	entry, rec, err := p.cat.head(ctx)
	if err != nil {
		return nil, "", err
	}
	t, err := OpenMetadata(ctx, p.fl, rec.MetadataLocation)
	if err != nil {
		return nil, "", err
	}
	for _, r := range reqs {
		if err := r.Validate(t.Metadata()); err != nil {
			return nil, "", fmt.Errorf("%w: %w", icetable.ErrCommitFailed, err)
		}
	}
	next, err := icetable.UpdateTableMetadata(t.Metadata(), updates, rec.MetadataLocation)
	if err != nil {
		return nil, "", fault.Wrap(fault.Unsupported, "update metadata", err)
	}
	data, err := json.Marshal(next)
	if err != nil {
		return nil, "", fault.Wrap(fault.Halt, "encode metadata", err)
	}
	at, err := rootOf(rec.MetadataLocation)
	if err != nil {
		return nil, "", err
	}
	at = at.Dir().Join(fmt.Sprintf("v%d.metadata.json", rec.MetadataVersion+1))
	if _, err := p.fl.Put(ctx, at, data, filer.CreateOptions{Mime: "application/json"}); err != nil {
		return nil, "", fmt.Errorf("%w: %w", icetable.ErrCommitFailed, err)
	}
	if err := p.cat.swap(ctx, entry, rec, s3Path(at), data); err != nil {
		return nil, "", fmt.Errorf("%w: %w", icetable.ErrCommitFailed, err)
	}
	return next, s3Path(at), nil
}

// writeIO lets iceberg-go write to a filer.
type writeIO struct {
	readIO
	out filer.Filer
}

// Create starts a file; closing it makes it visible.
func (w writeIO) Create(name string) (iceio.FileWriter, error) {
	at, err := w.resolve(name)
	if err != nil {
		return nil, err
	}
	up, err := w.out.Create(w.ctx, at, filer.CreateOptions{})
	if err != nil {
		return nil, fault.In("create "+name, err)
	}
	return &writer{w.ctx, up}, nil
}

// WriteFile writes a file at once.
func (w writeIO) WriteFile(name string, p []byte) error {
	at, err := w.resolve(name)
	if err != nil {
		return err
	}
	_, err = w.out.Put(w.ctx, at, p, filer.CreateOptions{})
	return fault.In("write "+name, err)
}

func (w writeIO) resolve(name string) (filer.Path, error) {
	if c := candidates(w.root, name); len(c) > 0 {
		return c[0], nil
	}
	return "", fault.New(fault.Unsupported, fmt.Sprintf("path %q means nothing", name))
}

type writer struct {
	ctx context.Context //nolint:containedctx // iceberg-go's interface has none
	filer.Upload
}

func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w.Upload}, r)
}

func (w *writer) Close() error {
	_, err := w.Commit(w.ctx)
	return err
}
