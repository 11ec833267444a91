package rewrite

import (
	"strconv"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// Table properties that say how Parquet files are written, with the defaults
// of Iceberg's own writers (configuration, write properties; the row limit is
// PyIceberg's).
const (
	propCodec      = "write.parquet.compression-codec"
	propLevel      = "write.parquet.compression-level"
	propGroupBytes = "write.parquet.row-group-size-bytes"
	propGroupRows  = "write.parquet.row-group-limit"
	propPageBytes  = "write.parquet.page-size-bytes"
	propPageRows   = "write.parquet.page-row-limit"
	propPage       = "write.parquet.page-version"
	propDictBytes  = "write.parquet.dict-size-bytes"
	propBloomBytes = "write.parquet.bloom-filter-max-bytes"
	propBloom      = "write.parquet.bloom-filter-enabled.column."
	propBloomFPP   = "write.parquet.bloom-filter-fpp.column."
)

// settings are the properties of a table in use.
type settings struct {
	// codec is the one asked for, if hasCodec; level is codec.DefaultLevel where the
	// table does not say.
	codec    format.Codec
	hasCodec bool
	level    int
	// Sizes are in bytes, except for those of rows.
	groupBytes, groupRows int64
	pageBytes, pageRows   int64
	dictBytes             int64
	bloomBytes            int64
	// pageV2 asks for data pages of version 2.
	pageV2 bool
	// blooms has the false positive rate of every column, by its full name,
	// that has a bloom filter.
	blooms map[string]float64
}

var codecs = map[string]format.Codec{
	"uncompressed": format.Uncompressed,
	"none":         format.Uncompressed,
	"snappy":       format.Snappy,
	"gzip":         format.Gzip,
	"brotli":       format.Brotli,
	"zstd":         format.Zstd,
	"lz4":          format.LZ4Raw,
	"lz4_raw":      format.LZ4Raw,
}

// readSettings reads the properties of a table. What cannot be read is
// Unsupported with the name of the property.
func readSettings(p map[string]string) (settings, error) {
	s := settings{level: codec.DefaultLevel, blooms: map[string]float64{}}
	if v, ok := p[propCodec]; ok {
		if s.codec, s.hasCodec = codecs[strings.ToLower(strings.TrimSpace(v))]; !s.hasCodec {
			return s, badProperty(propCodec, v)
		}
	}
	if v, ok := p[propLevel]; ok && v != "" && v != "null" {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < -(1<<20) || n > 1<<20 {
			return s, badProperty(propLevel, v)
		}
		s.level = n
	}
	for _, f := range []struct {
		name      string
		to        *int64
		usual     int64
		low, high int64
	}{
		{propGroupBytes, &s.groupBytes, 128 << 20, 1, 1 << 40},
		{propGroupRows, &s.groupRows, 1 << 20, 1, 1 << 40},
		{propPageBytes, &s.pageBytes, 1 << 20, 1, 1<<31 - 1},
		{propPageRows, &s.pageRows, 20000, 1, 1<<31 - 1},
		{propDictBytes, &s.dictBytes, 2 << 20, 0, 1<<31 - 1},
		{propBloomBytes, &s.bloomBytes, 1 << 20, 0, 128 << 20},
	} {
		*f.to = f.usual
		v, ok := p[f.name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil || n < f.low || n > f.high {
			return s, badProperty(f.name, v)
		}
		*f.to = n
	}
	switch v := p[propPage]; strings.ToLower(v) {
	case "", "v1", "1", "parquet_1_0":
	case "v2", "2", "parquet_2_0":
		s.pageV2 = true
	default:
		return s, badProperty(propPage, v)
	}
	for name, v := range p {
		column, ok := strings.CutPrefix(name, propBloom)
		if !ok || !strings.EqualFold(strings.TrimSpace(v), "true") {
			continue
		}
		fpp := 0.01
		if v, ok := p[propBloomFPP+column]; ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if err != nil || !(f > 0 && f < 1) {
				return s, badProperty(propBloomFPP+column, v)
			}
			fpp = f
		}
		s.blooms[column] = fpp
	}
	return s, nil
}

func badProperty(name, value string) error {
	return fault.New(fault.Unsupported, "table property "+name+" has the value "+strconv.Quote(value))
}
