package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	icego "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	icetable "github.com/apache/iceberg-go/table"
)

// state is what a reader sees of tables at their heads.
type state struct {
	snapshots, manifests int
	// files are data files; deletes are position and equality delete files and
	// deletion vectors. bytes are those of all of them.
	files, deletes int
	bytes          int64
	rows           int64
	// digest is over the multiset of rows.
	digest   [32]byte
	planning time.Duration
}

// look reads the tables through the REST catalog with iceberg-go.
func look(ctx context.Context, cat *rest.Catalog) (s state, err error) {
	for _, w := range writers() {
		if err := s.look(ctx, cat, w.name); err != nil {
			return s, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return s, nil
}

func (s *state) look(ctx context.Context, cat *rest.Catalog, name string) error {
	t, err := cat.LoadTable(ctx, ident(name))
	if err != nil {
		return err
	}
	s.snapshots += len(t.Metadata().Snapshots())
	if err := s.count(ctx, t); err != nil {
		return err
	}
	start := time.Now()
	if _, err := t.Scan().PlanFiles(ctx); err != nil {
		return err
	}
	s.planning += time.Since(start)
	_, records, err := t.Scan().ToArrowRecords(ctx)
	if err != nil {
		return err
	}
	for rec, err := range records {
		if err != nil {
			return err
		}
		s.rows += rec.NumRows()
		for i := range int(rec.NumRows()) {
			add(&s.digest, name, rec, i)
		}
		rec.Release()
	}
	return nil
}

// count counts the live entries of the head.
func (s *state) count(ctx context.Context, t *icetable.Table) error {
	fs, err := t.FS(ctx)
	if err != nil {
		return err
	}
	list, err := t.CurrentSnapshot().Manifests(fs)
	if err != nil {
		return err
	}
	s.manifests += len(list)
	for _, m := range list {
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return err
			}
			f := e.DataFile()
			if f.ContentType() == icego.EntryContentData {
				s.files++
			} else {
				s.deletes++
			}
			if size := f.ContentSizeInBytes(); size != nil {
				s.bytes += *size // a vector is a part of its file
			} else {
				s.bytes += f.FileSizeBytes()
			}
		}
	}
	return nil
}

// add sums the hash of a row into d, so that the order of rows does not matter
// and their number does.
func add(d *[32]byte, table string, rec arrow.RecordBatch, row int) {
	text := append([]byte(table), 0)
	for c := range int(rec.NumCols()) {
		v := rec.Column(c).ValueStr(row)
		text = binary.BigEndian.AppendUint32(text, uint32(len(v)))
		text = append(text, v...)
	}
	h := sha256.Sum256(text)
	carry := uint16(0)
	for i := range d {
		sum := uint16(d[i]) + uint16(h[i]) + carry
		d[i], carry = byte(sum), sum>>8
	}
}
