package resolve_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/resolve"
)

func int96(days int32, nanos int64) []byte { return append(le64(nanos), le32(days+2440588)...) }

func ts(u format.TimeUnit) *format.Node {
	return logical(format.Logical{Kind: format.LogicalTimestamp, Unit: u}, leaf("c", format.Optional, format.Int64))
}

func uns(bits int8, typ format.Type) *format.Node {
	return logical(format.Logical{Kind: format.LogicalInteger, BitWidth: bits}, leaf("c", format.Optional, typ))
}

// conversion is a value of a leaf of a file and what it is in the table.
type conversion struct {
	name string
	node *format.Node
	typ  icego.Type
	in   []byte
	// out is nil for refused.
	out []byte
}

func convert(t *testing.T, cases []conversion) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := footer(t, withID(1, c.node))
			m, err := resolve.File(target(t, optional(1, "c", c.typ)), f, v3)
			require.NoError(t, err)
			var out column.Batch
			got, err := m.Leaves[0].Apply(values(f.Schema.Leaves[0], c.in), &out)
			if c.out == nil {
				require.Contains(t, []fault.Kind{fault.Unsupported, fault.Corrupt}, fault.Of(err))
				require.ErrorContains(t, err, "column c")
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1, got.Values.Len())
			require.Equal(t, c.out, got.Values.At(0))
		})
	}
}

func TestF058PromotedValuesAreConverted(t *testing.T) {
	p := icego.PrimitiveTypes
	convert(t, []conversion{
		{"int to long", leaf("c", format.Optional, format.Int32), p.Int64, le32(math.MinInt32), le64(math.MinInt32)},
		{"float to double", leaf("c", format.Optional, format.Float), p.Float64, le32(int32(math.Float32bits(-0.1))), le64(int64(math.Float64bits(float64(float32(-0.1)))))},
		{"date to timestamp", converted(6, leaf("c", format.Optional, format.Int32)), p.Timestamp, le32(-1), le64(-86_400_000_000)},
		{"date to timestamp_ns out of range", converted(6, leaf("c", format.Optional, format.Int32)), p.TimestampNs, le32(200_000), nil},
	})
}

func TestF032DecimalsOfEveryPhysicalForm(t *testing.T) {
	convert(t, []conversion{
		{"int32 to int64", decimalNode(9, 2, leaf("c", format.Optional, format.Int32)), icego.DecimalTypeOf(18, 2), le32(-100), le64(-100)},
		{"int64 to fixed", decimalNode(18, 4, leaf("c", format.Optional, format.Int64)), icego.DecimalTypeOf(38, 4), le64(-1), bytesOf(16, 0xff)},
		{"bytes to int32", decimalNode(9, 2, leaf("c", format.Optional, format.ByteArray)), icego.DecimalTypeOf(9, 2), []byte{0xff, 0x9c}, le32(-100)},
		{"long bytes to int64", decimalNode(18, 2, leaf("c", format.Optional, format.ByteArray)), icego.DecimalTypeOf(18, 2), twos(big.NewInt(-999), 20), le64(-999)},
		{"bytes out of range", decimalNode(9, 2, leaf("c", format.Optional, format.ByteArray)), icego.DecimalTypeOf(9, 2), twos(big.NewInt(1_000_000_000), 5), nil},
		{"no bytes", decimalNode(9, 2, leaf("c", format.Optional, format.ByteArray)), icego.DecimalTypeOf(9, 2), []byte{}, nil},
		{"fixed to shorter fixed", decimalNode(20, 2, fixedLeaf("c", 16)), icego.DecimalTypeOf(20, 2), twos(big.NewInt(-5), 16), twos(big.NewInt(-5), 9)},
	})
}

func TestF033DecimalsNarrowerThanTheTable(t *testing.T) {
	convert(t, []conversion{
		{"narrower than the table", decimalNode(3, 0, leaf("c", format.Optional, format.Int32)), icego.DecimalTypeOf(38, 0), le32(5), twos(big.NewInt(5), 16)},
	})
}

func TestF037Int96IsExactOrRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	micros := func(text string) int64 {
		at, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return at.UnixMicro()
	}
	const day = int64(86_400_000_000_000)
	convert(t, []conversion{
		{"year 1", leaf("c", format.Optional, format.Int96), p.TimestampTz, int96(-719162, 0), le64(micros("0001-01-01T00:00:00Z"))},
		{"1677", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(-106752, 1000), le64(micros("1677-09-21T00:00:00.000001Z"))},
		{"before the epoch", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(-1, day-1000), le64(-1)},
		{"2262", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(106751, 0), le64(micros("2262-04-12T00:00:00Z") - 86_400_000_000)},
		{"9999", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(2932896, 0), le64(micros("9999-12-31T00:00:00Z"))},
		{"parts finer than micros", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(0, 1), nil},
		{"nanos", leaf("c", format.Optional, format.Int96), p.TimestampNs, int96(-1, 1), le64(1 - day)},
		{"least nanos", leaf("c", format.Optional, format.Int96), p.TimestampNs, int96(-106752, 763_145_224_192), le64(math.MinInt64)},
		{"below the least nanos", leaf("c", format.Optional, format.Int96), p.TimestampNs, int96(-106752, 763_145_224_191), nil},
		{"greatest nanos", leaf("c", format.Optional, format.Int96), p.TimestampNs, int96(106751, 85_636_854_775_807), le64(math.MaxInt64)},
		{"above the greatest nanos", leaf("c", format.Optional, format.Int96), p.TimestampNs, int96(106751, 85_636_854_775_808), nil},
		{"negative time of day", leaf("c", format.Optional, format.Int96), p.Timestamp, int96(1, -1000), le64(86_400_000_000 - 1)},
	})
}

func TestF038UnitsOfTimeAreExactOrRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	convert(t, []conversion{
		{"millis", ts(format.Millis), p.Timestamp, le64(-1001), le64(-1001000)},
		{"converted millis", converted(9, leaf("c", format.Optional, format.Int64)), p.TimestampTz, le64(5), le64(5000)},
		{"millis out of range", ts(format.Millis), p.Timestamp, le64(math.MaxInt64/1000 + 1), nil},
		{"micros", ts(format.Micros), p.Timestamp, le64(-1), le64(-1)},
		{"nanos", ts(format.Nanos), p.Timestamp, le64(-5000), le64(-5)},
		{"nanos too fine", ts(format.Nanos), p.Timestamp, le64(-5001), nil},
	})
}

func TestOtherValuesAreConvertedOrRefused(t *testing.T) {
	p := icego.PrimitiveTypes
	convert(t, []conversion{
		{"uint8 as int", uns(8, format.Int32), p.Int32, le32(255), le32(255)},
		{"uint32 as int that fits", uns(32, format.Int32), p.Int32, le32(math.MaxInt32), le32(math.MaxInt32)},
		{"uint32 as int that does not", uns(32, format.Int32), p.Int32, le32(-1), nil},
		{"uint32 as long", uns(32, format.Int32), p.Int64, le32(-1), le64(1<<32 - 1)},
		{"uint64 as long that fits", converted(14, leaf("c", format.Optional, format.Int64)), p.Int64, le64(1), le64(1)},
		{"uint64 as long that does not", converted(14, leaf("c", format.Optional, format.Int64)), p.Int64, le64(-1), nil},
		{"micros as nanos", ts(format.Micros), p.TimestampNs, le64(5), le64(5000)},
		{"micros as nanos out of range", ts(format.Micros), p.TimestampNs, le64(math.MaxInt64/1000 + 1), nil},
		{"time millis", converted(7, leaf("c", format.Optional, format.Int32)), p.Time, le32(86399999), le64(86399999000)},
		{"time nanos too fine", logical(format.Logical{Kind: format.LogicalTime, Unit: format.Nanos}, leaf("c", format.Optional, format.Int64)), p.Time, le64(1), nil},
		{"text without annotation", leaf("c", format.Optional, format.ByteArray), p.String, []byte("ab"), []byte("ab")},
		{"enumeration as text", converted(4, leaf("c", format.Optional, format.ByteArray)), p.String, []byte("ab"), []byte("ab")},
		{"bson as bytes", converted(20, leaf("c", format.Optional, format.ByteArray)), p.Binary, []byte("ab"), []byte("ab")},
		{"fixed as bytes", fixedLeaf("c", 3), p.Binary, []byte("abc"), []byte("abc")},
		{"uuid as fixed", logical(format.Logical{Kind: format.LogicalUUID}, fixedLeaf("c", 16)), icego.FixedTypeOf(16), bytesOf(16, 1), bytesOf(16, 1)},
		{"fixed as uuid", fixedLeaf("c", 16), p.UUID, bytesOf(16, 1), bytesOf(16, 1)},
		{"always null with a value", logical(format.Logical{Kind: format.LogicalUnknown}, leaf("c", format.Optional, format.Int32)), p.String, le32(1), nil},
	})
}
