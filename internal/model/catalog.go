package model

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

// catalog reads and swaps a table's record as the REST catalog does: the
// record is written anew from known fields, so foreign ones are lost.
type catalog struct {
	fl           filer.Filer
	id           iceberg.TableID
	clk          clock.Clock
	rng          *rand.Rand
	locationOnly bool
}

// maker makes directories with attributes; filertest.Filer is one.
type maker interface {
	Mkdir(p filer.Path, set map[string][]byte) *filer.Entry
}

const owner = "000000000000"

type tableRecord struct {
	Name              string          `json:"name"`
	Namespace         string          `json:"namespace"`
	Format            string          `json:"format"`
	CreatedAt         time.Time       `json:"createdAt"`
	ModifiedAt        time.Time       `json:"modifiedAt"`
	OwnerAccountID    string          `json:"ownerAccountId"`
	VersionToken      string          `json:"versionToken"`
	MetadataVersion   int64           `json:"metadataVersion"`
	MetadataLocation  string          `json:"metadataLocation,omitempty"`
	Metadata          *recordMetadata `json:"metadata,omitempty"`
	WarehouseLocation string          `json:"warehouseLocation,omitempty"`
}

type recordMetadata struct {
	Iceberg      *recordIceberg  `json:"iceberg,omitempty"`
	FullMetadata json.RawMessage `json:"fullMetadata,omitempty"`
}

type recordIceberg struct {
	TableUUID string `json:"tableUuid,omitempty"`
}

func (c catalog) path() filer.Path {
	return filer.BucketPath(c.id.Bucket).Join(c.id.Namespace, c.id.Name)
}

// create makes the record, and the bucket and the namespace if missing.
func (c catalog) create(ctx context.Context, location, warehouse string, metadata []byte) error {
	m, ok := c.fl.(maker)
	if !ok {
		return fault.New(fault.Unsupported, "the filer cannot make directories with attributes; create the table through the catalog and use Attach")
	}
	at := c.clk.Now().UTC()
	bucket := filer.BucketPath(c.id.Bucket)
	if err := c.ensure(ctx, m, bucket, map[string][]byte{"s3tables.tableBucket": []byte("true")}, map[string]any{
		"name": c.id.Bucket, "createdAt": at, "ownerAccountId": owner, "format": "ICEBERG",
	}); err != nil {
		return err
	}
	if err := c.ensure(ctx, m, bucket.Join(c.id.Namespace), map[string][]byte{}, map[string]any{
		"namespace": strings.Split(c.id.Namespace, "."), "createdAt": at, "ownerAccountId": owner,
	}); err != nil {
		return err
	}
	rec := tableRecord{
		Name: c.id.Name, Namespace: c.id.Namespace, Format: "ICEBERG", CreatedAt: at, OwnerAccountID: owner,
		WarehouseLocation: warehouse,
	}
	data, err := c.encode(rec, location, 1, metadata)
	if err != nil {
		return err
	}
	m.Mkdir(c.path(), map[string][]byte{iceberg.AttrMetadata: data})
	return nil
}

func (c catalog) ensure(ctx context.Context, m maker, p filer.Path, set map[string][]byte, record map[string]any) error {
	e, err := c.fl.Stat(ctx, p)
	if err != nil && !filer.NotFound(err) {
		return err
	}
	if e != nil && e.Extended[iceberg.AttrMetadata] != nil {
		return nil
	}
	data, err := json.Marshal(record)
	if err != nil {
		return fault.Wrap(fault.Halt, "encode record", err)
	}
	set[iceberg.AttrMetadata] = data
	m.Mkdir(p, set)
	return nil
}

func (c catalog) encode(rec tableRecord, location string, version int64, metadata []byte) ([]byte, error) {
	var token [16]byte
	for i := range token {
		token[i] = byte(c.rng.Uint32())
	}
	rec.VersionToken, rec.MetadataVersion, rec.MetadataLocation = hex.EncodeToString(token[:]), version, location
	rec.ModifiedAt = c.clk.Now().UTC()
	d, err := parseDocument(metadata)
	if err != nil {
		return nil, err
	}
	rec.Metadata = &recordMetadata{Iceberg: &recordIceberg{TableUUID: d.text("table-uuid")}}
	if !c.locationOnly {
		rec.Metadata.FullMetadata = metadata
	}
	out, err := json.Marshal(rec)
	return out, fault.Wrap(fault.Halt, "encode record", err)
}

// head is the record as it is now.
func (c catalog) head(ctx context.Context) (*filer.Entry, tableRecord, error) {
	e, err := c.fl.Stat(ctx, c.path())
	if err != nil {
		return nil, tableRecord{}, fault.In("read the record of "+c.id.String(), err)
	}
	var rec tableRecord
	if err := json.Unmarshal(e.Extended[iceberg.AttrMetadata], &rec); err != nil {
		return nil, tableRecord{}, fault.Wrap(fault.Corrupt, "parse the record of "+c.id.String(), err)
	}
	return e, rec, nil
}

// swap moves the pointer if the record still is base.
func (c catalog) swap(ctx context.Context, base *filer.Entry, rec tableRecord, location string, metadata []byte) error {
	data, err := c.encode(rec, location, rec.MetadataVersion+1, metadata)
	if err != nil {
		return err
	}
	_, err = c.fl.Update(ctx, filer.Update{
		Base: base, Expect: filer.Expectation(base, iceberg.CatalogAttributes()...),
		Set: map[string][]byte{iceberg.AttrMetadata: data},
	})
	return fault.In(fmt.Sprintf("swap the record of %s to %s", c.id, location), err)
}
