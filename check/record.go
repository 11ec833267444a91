package check

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/google/uuid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// record compares the catalog record with the metadata and its file.
func (c *checker) record(ctx context.Context) error {
	rec := c.v.Record
	if rec.VersionToken == "" {
		c.found(RecordToken, Error, "record", "the record has no version token, so that no commit can be told from another")
	}
	if differ(rec.TableUUID, c.m.UUID) {
		c.found(RecordUUID, Error, "record", "the record has the table uuid %s, the metadata %s", rec.TableUUID, c.m.UUID)
	}
	if location, err := c.loc.Resolve(c.m.Location); err != nil {
		c.found(RecordOutside, Warning, "metadata", "the table's location cannot be told: %v", err)
	} else if c.loc.Foreign(location) {
		c.found(RecordOutside, Warning, "metadata", "the table's location %s is in another bucket", c.m.Location)
	}
	e, err := c.loc.Find(ctx, c.r, c.v.MetadataLocation)
	if err != nil {
		return c.wrong(MetadataUnreadable, MetadataMissing, c.v.MetadataLocation, err)
	}
	if rec.FullMetadata == nil {
		return nil // the file is what was read
	}
	stored, _, err := filer.ReadAll(ctx, c.r, e.Path, iceberg.MaxMetadataBytes)
	if err != nil {
		return c.wrong(MetadataUnreadable, MetadataMissing, c.v.MetadataLocation, err)
	}
	raw, _, err := iceberg.Decompress(stored)
	if err != nil {
		return c.wrong(MetadataUnreadable, MetadataMissing, c.v.MetadataLocation, err)
	}
	same, err := sameJSON(raw, rec.FullMetadata)
	if err != nil {
		return c.wrong(MetadataUnreadable, MetadataMissing, c.v.MetadataLocation, err)
	}
	if !same {
		c.add(Finding{Code: RecordCopy, Severity: Error, Subject: c.v.MetadataLocation,
			Text: "the metadata file and the copy in the catalog record differ",
			Hint: "readers that go by the file see another table than those that ask the catalog"})
	}
	return nil
}

func sameJSON(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	decode := func(raw []byte) (any, error) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // ids do not fit a float
		var v any
		err := d.Decode(&v)
		return v, fault.Wrap(fault.Corrupt, "read the metadata as json", err)
	}
	x, err := decode(a)
	if err != nil {
		return false, err
	}
	y, err := decode(b)
	return err == nil && reflect.DeepEqual(x, y), err
}

// differ: old catalogs keep the uuid in the metadata alone, and old metadata has
// none.
func differ(a, b uuid.UUID) bool { return a != uuid.Nil && b != uuid.Nil && a != b }
