package iceberg

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// MaxInlineBytes is the size in bytes of a record above which the metadata is
// left out and only its location kept, as the catalog does with requests above
// its limit of 10 MB. The margin is for what the catalog wraps around it.
const MaxInlineBytes = 10<<20 - 64<<10

// Next is what a commit changes in a record.
type Next struct {
	// MetadataLocation is the absolute location of the new metadata file.
	MetadataLocation string
	// FullMetadata is the content of that file. It is kept inside the record if
	// it fits.
	FullMetadata []byte
	// VersionToken is new and unique, see NewVersionToken.
	VersionToken string
	// ModifiedAt is the time of the commit.
	ModifiedAt time.Time
}

// NewVersionToken returns a token as the catalog makes them: 128 random bits in
// hexadecimal.
func NewVersionToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Successor returns the attribute AttrMetadata of the record that follows r:
// the metadata version is the stored one plus one, and everything that n does
// not name keeps its bytes and its place.
func (r *Record) Successor(n Next) ([]byte, error) {
	switch {
	case n.MetadataLocation == "" || n.VersionToken == "" || n.VersionToken == r.VersionToken || n.ModifiedAt.IsZero():
		return nil, fault.New(fault.Halt, "succeed the catalog record "+r.Path.String()+" without a new location, token and time")
	case r.MetadataVersion == math.MaxInt64:
		return nil, fault.New(fault.Corrupt, "metadata version of the catalog record "+r.Path.String()+" cannot grow")
	}
	o, err := rawjson.ParseObject(r.Raw)
	if err != nil {
		return nil, fault.In("edit the catalog record "+r.Path.String(), err)
	}
	o.Set("metadataVersion", rawjson.Int(r.MetadataVersion+1))
	o.Set("versionToken", rawjson.Quote(n.VersionToken))
	o.Set("modifiedAt", rawjson.Quote(n.ModifiedAt.UTC().Format(time.RFC3339Nano)))
	o.Set("metadataLocation", rawjson.Quote(n.MetadataLocation))
	inner, err := innerObject(o)
	if err != nil {
		return nil, fault.In("edit the catalog record "+r.Path.String(), err)
	}
	if len(n.FullMetadata) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, n.FullMetadata); err != nil {
			return nil, fault.Wrap(fault.Halt, "keep the new metadata in the catalog record "+r.Path.String(), err)
		}
		inner.Set("fullMetadata", compact.Bytes())
		o.Set("metadata", inner.Bytes())
		if out := o.Bytes(); len(out) <= MaxInlineBytes {
			return out, nil
		}
	}
	if inner.Delete("fullMetadata") || inner.Len() > 0 {
		o.Set("metadata", inner.Bytes())
	}
	out := o.Bytes()
	if len(out) > MaxInlineBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("catalog record %s would have %d bytes", r.Path, len(out)))
	}
	return out, nil
}

// Touched returns the attribute AttrMetadata of r with another version token
// and nothing else changed. Whoever still holds the old bytes can no longer
// swap them.
func (r *Record) Touched(token string) ([]byte, error) {
	if token == "" || token == r.VersionToken {
		return nil, fault.New(fault.Halt, "touch the catalog record "+r.Path.String()+" without a new token")
	}
	o, err := rawjson.ParseObject(r.Raw)
	if err != nil {
		return nil, fault.In("edit the catalog record "+r.Path.String(), err)
	}
	o.Set("versionToken", rawjson.Quote(token))
	return o.Bytes(), nil
}

func innerObject(o *rawjson.Object) (*rawjson.Object, error) {
	raw, ok := o.Get("metadata")
	if !ok || rawjson.IsNull(raw) {
		raw = []byte("{}")
	}
	return rawjson.ParseObject(raw)
}
