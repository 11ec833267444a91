package avro_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/manifests/avro"
)

const pairSchema = `{"type":"record","name":"r","fields":[{"name":"a","type":"long","field-id":1},{"name":"b","type":["null","string"],"field-id":2}]}`

// file writes records of pairSchema.
func file(t testing.TB, codec avro.Codec, n int) []byte {
	t.Helper()
	schema, err := avro.ParseSchema([]byte(pairSchema))
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := avro.NewWriter(&out, schema, avro.Options{Codec: codec, Meta: map[string][]byte{"k": []byte("v")}})
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, w.Append(func(b []byte) ([]byte, error) {
			return avro.AppendBytes(avro.AppendLong(avro.AppendLong(b, int64(i)), 1), strings.Repeat("x", i%100)), nil
		}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.Equal(t, int64(out.Len()), w.Written())
	return out.Bytes()
}

// drain reads all records by skipping them.
func drain(b []byte, l avro.Limits) (int, error) {
	r, err := avro.NewReader(bytes.NewReader(b), "f.avro", l)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	total := 0
	for {
		data, count, err := r.Next()
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		p := 0
		for range count {
			if p = avro.Skip(r.Schema(), data, p); p < 0 {
				return total, fault.New(fault.Corrupt, "f.avro: a record")
			}
			total++
		}
		if p != len(data) {
			return total, fault.New(fault.Corrupt, "f.avro: the rest of a block")
		}
	}
}

var codecs = []avro.Codec{avro.Uncompressed, avro.Deflate, avro.Snappy, avro.Zstandard}

func TestRoundTrip(t *testing.T) {
	for _, codec := range codecs {
		for _, n := range []int{0, 1, 5000} {
			b := file(t, codec, n)
			got, err := drain(b, avro.Limits{})
			require.NoError(t, err)
			require.Equal(t, n, got)
			r, err := avro.NewReader(iotest.OneByteReader(bytes.NewReader(b)), "f.avro", avro.Limits{})
			require.NoError(t, err)
			require.Equal(t, codec, r.Codec())
			require.Equal(t, "v", string(r.Meta("k")))
		}
	}
}

// TestTruncatedAndFlipped: every cut and many flipped bits are Corrupt with the
// file named, or, where no check can see them, no error; never a panic.
func TestTruncatedAndFlipped(t *testing.T) {
	for _, codec := range codecs {
		b := file(t, codec, 60)
		for cut := range b {
			got, err := drain(b[:cut], avro.Limits{})
			if err == nil {
				// Only between header and block is nothing missing.
				require.Zero(t, got)
				continue
			}
			require.Equal(t, fault.Corrupt, fault.Of(err), "cut at %d: %v", cut, err)
			require.ErrorContains(t, err, "f.avro")
		}
		for i := range b {
			for bit := range 8 {
				c := bytes.Clone(b)
				c[i] ^= 1 << bit
				if _, err := drain(c, avro.Limits{}); err != nil {
					require.Contains(t, []fault.Kind{fault.Corrupt, fault.Unsupported}, fault.Of(err), "%v", err)
					require.ErrorContains(t, err, "f.avro")
				}
			}
		}
	}
}

func TestErrorsFromBelowKeepTheirKind(t *testing.T) {
	b := file(t, avro.Deflate, 5000)
	for _, at := range []int{0, 10, len(b) / 2} {
		in := io.MultiReader(bytes.NewReader(b[:at]), iotest.ErrReader(fault.New(fault.Transient, "filer is away")))
		r, err := avro.NewReader(in, "f.avro", avro.Limits{})
		for err == nil {
			_, _, err = r.Next()
		}
		require.Equal(t, fault.Transient, fault.Of(err))
	}
}

func TestLimits(t *testing.T) {
	zeros := func(codec avro.Codec) []byte {
		schema := avro.RecordOf("r", avro.Required("a", 1, avro.Primitive(avro.Bytes)))
		var out bytes.Buffer
		w, err := avro.NewWriter(&out, schema, avro.Options{Codec: codec})
		require.NoError(t, err)
		require.NoError(t, w.Append(func(b []byte) ([]byte, error) { return avro.AppendBytes(b, make([]byte, 8<<20)), nil }))
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	for _, codec := range codecs {
		b := zeros(codec)
		_, err := drain(b, avro.Limits{})
		require.NoError(t, err, codec)
		_, err = drain(b, avro.Limits{Block: 1 << 20})
		require.Equal(t, fault.Corrupt, fault.Of(err), codec)
	}
	_, err := drain(file(t, avro.Deflate, 1), avro.Limits{Header: 50})
	require.Equal(t, fault.Corrupt, fault.Of(err))
}

// header makes a file by hand.
func header(meta ...string) []byte {
	b := []byte{'O', 'b', 'j', 1}
	b = avro.AppendLong(b, int64(len(meta)/2))
	for _, s := range meta {
		b = avro.AppendBytes(b, s)
	}
	return append(append(b, 0), make([]byte, 16)...)
}

func block(count, size int64, data []byte) []byte {
	b := avro.AppendLong(avro.AppendLong(nil, count), size)
	return append(append(b, data...), make([]byte, 16)...)
}

func TestHostileFiles(t *testing.T) {
	ok := header("avro.schema", pairSchema)
	snap := func(data []byte, sum uint32) []byte {
		c := snappy.Encode(nil, data)
		return append(c, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	}
	rec := []byte{2, 0}
	snapped := snap(rec, crc32.ChecksumIEEE(rec))
	wrong := snap(rec, 1)
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"empty":                    {nil, fault.Corrupt},
		"other magic":              {[]byte("PAR1PAR1"), fault.Corrupt},
		"no schema":                {header("k", "v"), fault.Corrupt},
		"schema is no record":      {header("avro.schema", `"long"`), fault.Corrupt},
		"record without bytes":     {header("avro.schema", `{"type":"record","name":"r","fields":[{"name":"a","type":"null"}]}`), fault.Corrupt},
		"unknown codec":            {header("avro.schema", pairSchema, "avro.codec", "bzip2"), fault.Unsupported},
		"key twice":                {header("avro.schema", pairSchema, "avro.schema", pairSchema), fault.Corrupt},
		"too many keys":            {avro.AppendLong([]byte{'O', 'b', 'j', 1}, math.MaxInt64), fault.Corrupt},
		"least number":             {avro.AppendLong([]byte{'O', 'b', 'j', 1}, math.MinInt64), fault.Corrupt},
		"huge value":               {avro.AppendLong(avro.AppendBytes(avro.AppendLong([]byte{'O', 'b', 'j', 1}, 1), "k"), math.MaxInt64), fault.Corrupt},
		"block with more records":  {append(bytes.Clone(ok), block(3, 2, rec)...), fault.Corrupt},
		"block of negative count":  {append(bytes.Clone(ok), block(-1, 2, rec)...), fault.Corrupt},
		"block of huge size":       {append(bytes.Clone(ok), block(1, math.MaxInt64, rec)...), fault.Corrupt},
		"block of huge count":      {append(bytes.Clone(ok), block(math.MaxInt64, 2, rec)...), fault.Corrupt},
		"block beyond the end":     {append(bytes.Clone(ok), block(1, 60<<20, rec)...), fault.Corrupt},
		"empty blocks":             {append(bytes.Clone(ok), block(0, 0, nil)...), fault.None},
		"one record":               {append(bytes.Clone(ok), block(1, 2, rec)...), fault.None},
		"snappy":                   {append(header("avro.schema", pairSchema, "avro.codec", "snappy"), block(1, int64(len(snapped)), snapped)...), fault.None},
		"snappy of a wrong sum":    {append(header("avro.schema", pairSchema, "avro.codec", "snappy"), block(1, int64(len(wrong)), wrong)...), fault.Corrupt},
		"snappy without sum":       {append(header("avro.schema", pairSchema, "avro.codec", "snappy"), block(1, 2, rec)...), fault.Corrupt},
		"snappy of a huge length":  {append(header("avro.schema", pairSchema, "avro.codec", "snappy"), block(1, 9, []byte{0xff, 0xff, 0xff, 0x1f, 0, 0, 0, 0, 0})...), fault.Corrupt},
		"header in counted blocks": {append(append([]byte{'O', 'b', 'j', 1}, avro.AppendLong(avro.AppendLong(nil, -1), 99)...), append(avro.AppendBytes(avro.AppendBytes(nil, "avro.schema"), pairSchema), make([]byte, 17)...)...), fault.None},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := drain(c.b, avro.Limits{})
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
		})
	}
}

func TestHostileSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 60) + `"int"` + strings.Repeat(`}`, 60)
	wide := `{"type":"record","name":"r0","fields":[{"name":"a","type":"int"}]}`
	for i := 1; i < 40; i++ {
		wide = fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"a","type":%s},{"name":"b","type":"r%d"}]}`, i, wide, i-1)
	}
	for name, s := range map[string]string{
		"empty": ``, "number": `7`, "nothing": `{}`, "unknown": `"strang"`, "unfinished": `{"type":"record"`,
		"recursive": `{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]}]}`,
		"deep":      deep, "wide": wide,
		"named twice":       `["null",{"type":"fixed","name":"f","size":1},{"type":"fixed","name":"f","size":2}]`,
		"no name":           `{"type":"record","fields":[]}`,
		"no field name":     `{"type":"record","name":"r","fields":[{"type":"int"}]}`,
		"no field type":     `{"type":"record","name":"r","fields":[{"name":"a"}]}`,
		"negative fixed":    `{"type":"fixed","name":"f","size":-1}`,
		"huge fixed":        `{"type":"fixed","name":"f","size":1000000000}`,
		"no symbols":        `{"type":"enum","name":"e","symbols":[]}`,
		"empty union":       `[]`,
		"union in a union":  `["null",["int","string"]]`,
		"weightless array":  `{"type":"array","items":"null"}`,
		"weightless record": `{"type":"array","items":{"type":"record","name":"r","fields":[{"name":"n","type":"null"}]}}`,
	} {
		_, err := avro.ParseSchema([]byte(s))
		require.Error(t, err, name)
	}
}

// TestSchemaText: what is written parses to the same types, with ids and
// attributes, and named types of the same name stay apart.
func TestSchemaText(t *testing.T) {
	for _, s := range []string{
		pairSchema,
		`{"type":"record","name":"a.b.r","fields":[{"name":"x","type":{"type":"fixed","name":"f","size":3},"default":"abc","vendor":[1,2]},{"name":"y","type":["null","f"]},{"name":"z","type":"a.b.f"}]}`,
		`{"type":"record","name":"r","namespace":"n","fields":[{"name":"e","type":{"type":"enum","name":"e","symbols":["A","B"]}},{"name":"m","type":{"type":"map","values":"n.e"}}]}`,
		`{"type":"record","name":"r","fields":[{"name":"t","type":{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}},{"name":"u","type":{"type":{"type":"array","items":"int","element-id":7}}}]}`,
	} {
		n, err := avro.ParseSchema([]byte(s))
		require.NoError(t, err)
		again, err := avro.ParseSchema(n.JSON())
		require.NoError(t, err, "%s", n.JSON())
		require.True(t, avro.SameEncoding(n, again))
		require.JSONEq(t, string(n.JSON()), string(again.JSON()))
	}
	two := avro.RecordOf("r", avro.Required("a", 1, avro.FixedOf("fixed", 3)), avro.Required("b", 2, avro.FixedOf("fixed", 9)), avro.Required("c", 3, avro.FixedOf("fixed", 9)))
	again, err := avro.ParseSchema(two.JSON())
	require.NoError(t, err, "%s", two.JSON())
	require.True(t, avro.SameEncoding(two, again))
	ts, err := avro.ParseSchema([]byte(`{"type":"record","name":"r","fields":[{"name":"t","type":{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true},"field-id":5}]}`))
	require.NoError(t, err)
	f, ok := ts.Field(5)
	require.True(t, ok)
	require.Equal(t, "timestamp-micros", f.Type.Logical)
	require.Equal(t, "true", string(f.Type.Props["adjust-to-utc"]))
}

func TestSameEncoding(t *testing.T) {
	parse := func(s string) *avro.Node {
		n, err := avro.ParseSchema([]byte(s))
		require.NoError(t, err)
		return n
	}
	for _, c := range []struct {
		a, b        string
		same, bytes bool
	}{
		{`"int"`, `{"type":"int","logicalType":"date"}`, true, true},
		{`"int"`, `"long"`, false, false},
		{`["null","int"]`, `["int","null"]`, false, false},
		{`{"type":"long","logicalType":"timestamp-millis"}`, `{"type":"long","logicalType":"timestamp-micros"}`, false, false},
		{`{"type":"fixed","name":"a","size":4}`, `{"type":"fixed","name":"b","size":4}`, true, true},
		{`{"type":"fixed","name":"a","size":4}`, `{"type":"fixed","name":"a","size":5}`, false, false},
		{`{"type":"record","name":"a","fields":[{"name":"x","type":"int","field-id":1}]}`, `{"type":"record","name":"b","fields":[{"name":"y","type":"int","field-id":1}]}`, true, true},
		{`{"type":"record","name":"a","fields":[{"name":"x","type":"int","field-id":1}]}`, `{"type":"record","name":"a","fields":[{"name":"x","type":"int","field-id":2}]}`, false, true},
		{`{"type":"enum","name":"a","symbols":["A","B"]}`, `{"type":"enum","name":"a","symbols":["B","A"]}`, false, false},
		{`{"type":"map","values":"int"}`, `{"type":"map","values":"int"}`, true, true},
	} {
		require.Equal(t, c.same, avro.SameEncoding(parse(c.a), parse(c.b)), "%s %s", c.a, c.b)
		require.Equal(t, c.bytes, avro.SameBytes(parse(c.a), parse(c.b)), "%s %s", c.a, c.b)
	}
}

// TestPropertySkip: Skip ends where the value ends, and every cut is seen.
func TestPropertySkip(t *testing.T) {
	schema, err := avro.ParseSchema([]byte(`{"type":"record","name":"r","fields":[{"name":"a","type":["long","null"]},
 {"name":"b","type":{"type":"array","items":{"type":"record","name":"kv","fields":[{"name":"k","type":"int"},{"name":"v","type":"bytes"}]}}},
 {"name":"c","type":{"type":"map","values":{"type":"array","items":"double"}}},{"name":"d","type":{"type":"enum","name":"e","symbols":["x","y"]}},
 {"name":"e","type":"boolean"},{"name":"f","type":"float"},{"name":"g","type":{"type":"fixed","name":"fx","size":5}},{"name":"h","type":"string"}]}`))
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		var b []byte
		if rapid.Bool().Draw(rt, "null") {
			b = avro.AppendLong(b, 1)
		} else {
			b = avro.AppendLong(avro.AppendLong(b, 0), rapid.Int64().Draw(rt, "a"))
		}
		for range rapid.IntRange(0, 3).Draw(rt, "blocks") {
			n := rapid.IntRange(1, 3).Draw(rt, "n")
			var items []byte
			for range n {
				items = avro.AppendBytes(avro.AppendLong(items, int64(rapid.Int32().Draw(rt, "k"))), rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "v"))
			}
			if rapid.Bool().Draw(rt, "sized") {
				b = avro.AppendLong(avro.AppendLong(b, -int64(n)), int64(len(items)))
			} else {
				b = avro.AppendLong(b, int64(n))
			}
			b = append(b, items...)
		}
		b = append(b, 0)
		if rapid.Bool().Draw(rt, "map") {
			b = avro.AppendLong(avro.AppendDouble(avro.AppendLong(avro.AppendBytes(avro.AppendLong(b, 1), "key"), 1), 2.5), 0)
		}
		b = append(b, 0)
		b = avro.AppendLong(b, 1)
		b = avro.AppendFloat(avro.AppendBool(b, true), 1)
		b = avro.AppendBytes(append(b, 1, 2, 3, 4, 5), rapid.String().Draw(rt, "h"))
		require.Equal(rt, len(b), avro.Skip(schema, append(bytes.Clone(b), 0xff, 0xff), 0))
		cut := rapid.IntRange(0, len(b)-1).Draw(rt, "cut")
		require.Equal(rt, -1, avro.Skip(schema, b[:cut], 0))
	})
}

func TestParseCodec(t *testing.T) {
	for name, want := range map[string]avro.Codec{
		"gzip": avro.Deflate, "DEFLATE": avro.Deflate, "zstd": avro.Zstandard, "Zstandard": avro.Zstandard, "snappy": avro.Snappy,
		"uncompressed": avro.Uncompressed, "none": avro.Uncompressed, "null": avro.Uncompressed,
	} {
		got, err := avro.ParseCodec(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := avro.ParseCodec("lzma")
	require.Equal(t, fault.Unsupported, fault.Of(err))
	_, err = avro.NewWriter(io.Discard, avro.RecordOf("r"), avro.Options{Codec: "lzma"})
	require.Equal(t, fault.Unsupported, fault.Of(err))
	_, err = avro.NewWriter(io.Discard, avro.RecordOf("r"), avro.Options{Codec: avro.Deflate, Level: 99})
	require.Equal(t, fault.Unsupported, fault.Of(err))
}

// FuzzAvroHeader: no input panics, hangs or makes the reader hold more than the
// limits allow.
func FuzzAvroHeader(f *testing.F) {
	for _, codec := range codecs {
		f.Add(file(f, codec, 40))
	}
	f.Add(header("avro.schema", pairSchema, "avro.codec", "bzip2"))
	f.Add(append(header("avro.schema", pairSchema), block(1, 2, []byte{2, 0})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := drain(b, avro.Limits{Block: 1 << 20, Header: 1 << 20}); err != nil {
			if k := fault.Of(err); k != fault.Corrupt && k != fault.Unsupported {
				t.Fatalf("kind %s: %v", k, err)
			}
		}
	})
}
