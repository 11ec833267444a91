package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/seaice/seaice/bench/harness"
)

// pages are the bodies of the compressed pages of a data set, with their
// lengths uncompressed.
type pages struct {
	bodies [][]byte
	sizes  []int
}

// pagesOf reads them with parquet-go's page headers and arrow-go's footer.
func pagesOf(d *dataset) (*pages, error) {
	out := &pages{}
	for _, f := range d.files {
		if err := out.add(f.path); err != nil {
			return nil, fmt.Errorf("pages of %s: %w", f.path, err)
		}
	}
	return out, nil
}

func (p *pages) add(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return err
	}
	defer r.Close()
	for g := range r.NumRowGroups() {
		rg := r.MetaData().RowGroup(g)
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				return err
			}
			from := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() {
				from = min(from, chunk.DictionaryPageOffset())
			}
			if err := p.chunk(raw[from : from+chunk.TotalCompressedSize()]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pages) chunk(raw []byte) error {
	var proto thrift.CompactProtocol
	for len(raw) > 0 {
		in := &counted{left: raw}
		var h format.PageHeader
		if err := thrift.NewDecoder(proto.NewReader(in)).Decode(&h); err != nil {
			return err
		}
		raw = in.left
		if int(h.CompressedPageSize) > len(raw) {
			return errors.New("a page ends behind its chunk")
		}
		p.bodies = append(p.bodies, raw[:h.CompressedPageSize])
		p.sizes = append(p.sizes, int(h.UncompressedPageSize))
		raw = raw[h.CompressedPageSize:]
	}
	return nil
}

// counted is a reader that knows what it left.
type counted struct{ left []byte }

func (c *counted) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, errors.New("the chunk ends within a page header")
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}

// ReadByte keeps decoders from buffering.
func (c *counted) ReadByte() (byte, error) {
	if len(c.left) == 0 {
		return 0, errors.New("the chunk ends within a page header")
	}
	b := c.left[0]
	c.left = c.left[1:]
	return b, nil
}

// codec decompresses and compresses the pages of the data set in memory, on all
// cores: what decoding could not be faster than.
func (a *arena) codec() harness.Side {
	var all *pages
	return func(ctx context.Context) (float64, error) {
		if all == nil {
			var err error
			if all, err = pagesOf(a.stored.dataset); err != nil {
				return 0, err
			}
		}
		return harness.Rate(float64(a.stored.bytes)/megabyte, func(ctx context.Context) error { return all.roundTrip(ctx, runtime.GOMAXPROCS(0)) })(ctx)
	}
}

func (p *pages) roundTrip(ctx context.Context, workers int) error {
	g, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		g.Go(func() error {
			dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return err
			}
			defer dec.Close()
			enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)))
			if err != nil {
				return err
			}
			var plain, packed []byte
			for i := w; i < len(p.bodies); i += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				if plain, err = dec.DecodeAll(p.bodies[i], plain[:0]); err != nil {
					return err
				}
				if len(plain) != p.sizes[i] {
					return fmt.Errorf("page %d has %d bytes, not %d", i, len(plain), p.sizes[i])
				}
				packed = enc.EncodeAll(plain, packed[:0])
			}
			return nil
		})
	}
	return g.Wait()
}
