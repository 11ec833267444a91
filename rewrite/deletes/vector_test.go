package deletes_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/iceberg-go/puffin"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/deletes"
)

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("SEAICE_FIXTURES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "fixtures")
	}
	b, err := os.ReadFile(filepath.Join(dir, "iceberg", name))
	if os.IsNotExist(err) {
		t.Skip("the fixtures are not here: " + err.Error())
	}
	require.NoError(t, err)
	return b
}

// frame puts bitmaps into the frame of a vector.
func frame(bitmaps []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(bitmaps)))
	b = binary.LittleEndian.AppendUint32(b, 0x6439D3D1)
	b = append(b, bitmaps...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func TestVectorsOfOtherWriters(t *testing.T) {
	for _, c := range []struct {
		file     string
		v        deletes.Vector
		dataFile string
		want     []int64
	}{
		{"deletion-vector-v1.puffin", deletes.Vector{Offset: 4, Size: 50, Records: 5, Rows: 10}, "data/test.parquet", []int64{1, 3, 5, 7, 9}},
		{"single-blob-dv.puffin", deletes.Vector{Offset: 4, Size: 50, Records: 5, Rows: 10}, "s3://warehouse/db/table/data/00000-0-abc.parquet", []int64{1, 3, 5, 7, 9}},
		{"multi-blob-dv.puffin", deletes.Vector{Offset: 4, Size: 46, Records: 3, Rows: 201}, "s3://warehouse/db/table/data/file-001.parquet", []int64{0, 100, 200}},
		{"multi-blob-dv.puffin", deletes.Vector{Offset: 50, Size: 44, Records: 2, Rows: 151}, "s3://warehouse/db/table/data/file-002.parquet", []int64{50, 150}},
	} {
		t.Run(fmt.Sprint(c.file, c.v.Offset), func(t *testing.T) {
			b := fixture(t, c.file)
			p, err := deletes.ReadVector(bytes.NewReader(b), int64(len(b)), c.v)
			require.NoError(t, err)
			require.Equal(t, c.want, slices.Collect(p.All()))
			pf, err := deletes.OpenPuffin(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			name, err := pf.Check(c.v)
			require.NoError(t, err)
			require.Equal(t, c.dataFile, name)

			v := c.v
			v.Rows-- // the last position is none of the file's
			_, err = deletes.ReadVector(bytes.NewReader(b), int64(len(b)), v)
			require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
		})
	}
}

// TestBitmapsOfOtherWriters reads the bitmaps that Java's tests keep.
func TestBitmapsOfOtherWriters(t *testing.T) {
	for _, name := range []string{"64map32bitvals.bin", "64mapempty.bin", "64mapspreadvals.bin"} {
		t.Run(name, func(t *testing.T) {
			b := fixture(t, name)
			ref := roaring64.New()
			_, err := ref.ReadFrom(bytes.NewReader(b))
			require.NoError(t, err)
			p, err := deletes.ParseVector(frame(b), 1<<62)
			require.NoError(t, err)
			requireBitmap(t, ref, p)
		})
	}
	for _, name := range []string{"all-container-types-position-index.bin", "empty-position-index.bin", "small-alternating-values-position-index.bin", "small-and-large-values-position-index.bin"} {
		t.Run(name, func(t *testing.T) {
			b := fixture(t, name)
			ref, err := dv.DeserializeDV(b, -1)
			require.NoError(t, err)
			p, err := deletes.ParseVector(b, 1<<62)
			require.NoError(t, err)
			require.Equal(t, ref.Cardinality(), p.Len())
			for pos := range p.All() {
				require.True(t, ref.Contains(uint64(pos)))
			}
		})
	}
}

// TestBitmapsThatWereText reads bitmaps that something took for UTF-8 text.
func TestBitmapsThatWereText(t *testing.T) {
	_, err := deletes.ParseVector(frame(fixture(t, "64maphighvals.bin")), 1<<62)
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
}

func requireBitmap(t require.TestingT, ref *roaring64.Bitmap, p *deletes.Positions) {
	require.EqualValues(t, ref.GetCardinality(), p.Len())
	for pos := range p.All() {
		require.True(t, ref.Contains(uint64(pos)))
	}
}

func TestF021VectorsThatContradictTheirEntry(t *testing.T) {
	var file bytes.Buffer
	written, size, err := deletes.WriteVectors(&file, "test", []deletes.Deleted{{DataFile: "a", Positions: deletes.Of(0, 1, 2)}})
	require.NoError(t, err)
	require.EqualValues(t, file.Len(), size)
	good := deletes.Vector{Offset: written[0].Offset, Size: written[0].Size, Records: 3, Rows: 3}
	in := bytes.NewReader(file.Bytes())
	_, err = deletes.ReadVector(in, size, good)
	require.NoError(t, err)
	for name, change := range map[string]func(v *deletes.Vector){
		"three positions, record count two": func(v *deletes.Vector) { v.Records = 2 },
		"three positions, two rows":         func(v *deletes.Vector) { v.Rows = 2 },
		"begins later":                      func(v *deletes.Vector) { v.Offset++ },
		"is shorter":                        func(v *deletes.Vector) { v.Size-- },
		"is longer":                         func(v *deletes.Vector) { v.Size++ },
		"is behind the file":                func(v *deletes.Vector) { v.Offset = size },
		"begins before the file":            func(v *deletes.Vector) { v.Offset = -4 },
		"has a negative size":               func(v *deletes.Vector) { v.Size = -1 },
		"overflows":                         func(v *deletes.Vector) { v.Offset, v.Size = 1<<62, 1<<62 },
	} {
		t.Run(name, func(t *testing.T) {
			v := good
			change(&v)
			_, err := deletes.ReadVector(in, size, v)
			require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
		})
	}
}

// TestF019ManyVectorsInOneFile writes many and has them read by iceberg-go.
func TestF019ManyVectorsInOneFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []deletes.Deleted
		for i := range rapid.IntRange(1, 8).Draw(t, "files") {
			p, _ := drawPositions(t, "positions")
			p.Add(rapid.Int64Range(0, 1000).Draw(t, "one"))
			all = append(all, deletes.Deleted{DataFile: fmt.Sprintf("s3://b/t/data/<%d>&.parquet", i), Positions: p})
		}
		var file bytes.Buffer
		written, size, err := deletes.WriteVectors(&file, "seaice test", all)
		require.NoError(t, err)
		require.EqualValues(t, file.Len(), size)
		in := bytes.NewReader(file.Bytes())
		ours, err := deletes.OpenPuffin(in, size)
		require.NoError(t, err)
		theirs, err := puffin.NewReader(in)
		require.NoError(t, err)
		require.Len(t, theirs.Blobs(), len(all))
		for i, w := range written {
			blob := theirs.Blobs()[i]
			require.Equal(t, puffin.BlobTypeDeletionVector, blob.Type)
			require.Equal(t, []int32{2147483645}, blob.Fields)
			require.EqualValues(t, -1, blob.SnapshotID)
			require.EqualValues(t, -1, blob.SequenceNumber)
			require.Equal(t, w.Offset, blob.Offset)
			require.Equal(t, w.Size, blob.Length)
			require.Equal(t, all[i].DataFile, blob.Properties["referenced-data-file"])
			data, err := theirs.ReadBlob(i)
			require.NoError(t, err)
			bits, err := dv.DeserializeDV(data.Data, w.Records)
			require.NoError(t, err)
			require.Equal(t, all[i].Positions.Len(), bits.Cardinality())
			for pos := range all[i].Positions.All() {
				require.True(t, bits.Contains(uint64(pos)))
			}
			v := deletes.Vector{Offset: w.Offset, Size: w.Size, Records: w.Records, Rows: 6 << 32}
			name, err := ours.Check(v)
			require.NoError(t, err)
			require.Equal(t, all[i].DataFile, name)
			back, err := deletes.ReadVector(in, size, v)
			require.NoError(t, err)
			require.True(t, all[i].Positions.Equal(back))
		}
	})
}

func TestVectorsAreNotWrittenTwiceOrEmpty(t *testing.T) {
	one := deletes.Deleted{DataFile: "a", Positions: deletes.Of(1)}
	_, _, err := deletes.WriteVectors(&bytes.Buffer{}, "", []deletes.Deleted{one, one})
	require.True(t, fault.Is(err, fault.Halt), "%v", err)
	_, _, err = deletes.WriteVectors(&bytes.Buffer{}, "", []deletes.Deleted{{DataFile: "a"}})
	require.True(t, fault.Is(err, fault.Halt), "%v", err)
	_, _, err = deletes.WriteVectors(&bytes.Buffer{}, "", []deletes.Deleted{{DataFile: "\xff", Positions: deletes.Of(1)}})
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	_, size, err := deletes.WriteVectors(&bytes.Buffer{}, "", nil)
	require.NoError(t, err)
	require.Positive(t, size)
}

func TestRunsAreWrittenAsRuns(t *testing.T) {
	p := &deletes.Positions{}
	p.AddRange(0, 1_000_000)
	blob, err := p.AppendVector([]byte("before"))
	require.NoError(t, err)
	require.Less(t, len(blob), 400)
	back, err := deletes.ParseVector(blob[len("before"):], 1_000_000)
	require.NoError(t, err)
	require.True(t, p.Equal(back))
}

func TestBitmapsOfManyShapes(t *testing.T) {
	u16 := func(v ...uint16) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	one := func(bitmap ...[]byte) []byte { // a vector with key 0
		return frame(slices.Concat(append([][]byte{binary.LittleEndian.AppendUint64(nil, 1), u32(0)}, bitmap...)...))
	}
	runs := u32(12347) // one container
	for _, c := range []struct {
		name string
		blob []byte
		want []int64 // nil: corrupt
	}{
		{"runs", one(runs, []byte{1}, u16(0, 3), u16(2, 1, 1, 7, 1)), []int64{1, 2, 7, 8}},
		{"runs that touch", one(runs, []byte{1}, u16(0, 3), u16(2, 1, 1, 3, 1)), []int64{1, 2, 3, 4}},
		{"runs that overlap", one(runs, []byte{1}, u16(0, 3), u16(2, 1, 2, 3, 1)), nil},
		{"runs backwards", one(runs, []byte{1}, u16(0, 3), u16(2, 9, 0, 3, 1)), nil},
		{"a run past the end", one(runs, []byte{1}, u16(0, 3), u16(1, 65535, 1)), nil},
		{"a run to the end", one(runs, []byte{1}, u16(1, 1), u16(1, 65534, 1)), []int64{131070, 131071}},
		{"no runs", one(runs, []byte{1}, u16(0, 3), u16(0)), nil},
		{"runs cut", one(runs, []byte{1}, u16(0, 3), u16(40000, 1, 2)), nil},
		{"array", one(u32(12346), u32(1), u16(0, 1), u32(16), u16(4, 5)), []int64{4, 5}},
		{"array backwards", one(u32(12346), u32(1), u16(0, 1), u32(16), u16(5, 4)), nil},
		{"array twice", one(u32(12346), u32(1), u16(0, 1), u32(16), u16(5, 5)), nil},
		{"array cut", one(u32(12346), u32(1), u16(0, 9), u32(16), u16(5)), nil},
		{"dense with a wrong count", one(u32(12346), u32(1), u16(0, 5000), u32(16), make([]byte, 8192)), nil},
		{"dense cut", one(u32(12346), u32(1), u16(0, 5000), u32(16), make([]byte, 8191)), nil},
		{"too many containers", one(u32(12346), u32(65537)), nil},
		{"containers cut", one(u32(12346), u32(65536)), nil},
		{"containers backwards", one(u32(12346), u32(2), u16(1, 0, 0, 0), u32(24), u32(26), u16(1), u16(1)), nil},
		{"unknown cookie", one(u32(12345), u32(1)), nil},
		{"empty", one(u32(12346), u32(0)), []int64{}},
		{"bytes behind", one(u32(12346), u32(0), u16(1)), nil},
		{"more bitmaps than there are", frame(binary.LittleEndian.AppendUint64(nil, 1<<63)), nil},
		{"no bitmaps", frame(binary.LittleEndian.AppendUint64(nil, 0)), []int64{}},
		{"keys backwards", frame(slices.Concat(binary.LittleEndian.AppendUint64(nil, 2), u32(1), u32(12346), u32(0), u32(1), u32(12346), u32(0))), nil},
		{"a negative key", frame(slices.Concat(binary.LittleEndian.AppendUint64(nil, 1), u32(1<<31), u32(12346), u32(0))), nil},
		{"an empty key before", frame(slices.Concat(binary.LittleEndian.AppendUint64(nil, 2), u32(0), u32(12346), u32(0), u32(1), u32(12346), u32(1), u16(0, 0), u32(16), u16(3))), []int64{1<<32 + 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := deletes.ParseVector(c.blob, 1<<40)
			if c.want == nil {
				require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
				return
			}
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, slices.Collect(p.All()))
			clean := deletes.Of(c.want...)
			require.True(t, clean.Equal(p))
			p.Or(deletes.Of(1000)) // it can be worked with
			require.EqualValues(t, len(c.want)+1, p.Len())
		})
	}
}

// TestVectorsWithBitsFlipped flips every bit: the checksum shows each in the
// blob, and without it nothing else happens than an error.
func TestVectorsWithBitsFlipped(t *testing.T) {
	p := deletes.Of(1, 9, 70000, 1<<32)
	p.AddRange(100, 5000)
	for i := int64(200000); i < 230000; i += 3 {
		p.Add(i)
	}
	blob, err := p.AppendVector(nil)
	require.NoError(t, err)
	for i := 0; i < len(blob)*8; i += 7 {
		b := bytes.Clone(blob)
		b[i/8] ^= 1 << (i % 8)
		_, err := deletes.ParseVector(b, 1<<40)
		require.True(t, fault.Is(err, fault.Corrupt), "bit %d: %v", i, err)
		if i/8 >= 8 && i/8 < len(b)-4 {
			got, err := deletes.ParseVector(frame(b[8:len(b)-4]), 1<<40)
			if err == nil {
				require.NotPanics(t, func() { got.Or(p); _ = unroll(got.Within(0, 100)) })
			}
		}
	}
	for n := range blob {
		_, err := deletes.ParseVector(blob[:n], 1<<40)
		require.True(t, fault.Is(err, fault.Corrupt), "%d bytes: %v", n, err)
	}
}

func TestPuffinFooters(t *testing.T) {
	good := deletes.Vector{Offset: 4, Size: 50, Records: 5, Rows: 10}
	payload := func(blobs string) []byte {
		return []byte(`{"x":[{"blobs":1}],"blobs":[` + blobs + `],"properties":{}}`)
	}
	blob := `{"type":"deletion-vector-v1","fields":[],"snapshot-id":-1,"sequence-number":-1,"offset":4,"length":50,"properties":{"cardinality":"5","referenced-data-file":"f"}}`
	file := func(flags uint32, payload []byte) []byte {
		b := append([]byte("PFA1"), make([]byte, 50)...)
		b = append(append(b, "PFA1"...), payload...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
		b = binary.LittleEndian.AppendUint32(b, flags)
		return append(b, "PFA1"...)
	}
	var packed bytes.Buffer
	z := lz4.NewWriter(&packed)
	_, err := z.Write(payload(blob))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for _, c := range []struct {
		name string
		file []byte
		kind fault.Kind
	}{
		{"good", file(0, payload(blob)), fault.None},
		{"compressed", file(1, packed.Bytes()), fault.None},
		{"among others", file(0, payload(`{},{"type":"x"},`+blob)), fault.None},
		{"says it is compressed", file(1, payload(blob)), fault.Corrupt},
		{"unknown flag", file(2, payload(blob)), fault.Unsupported},
		{"not listed", file(0, payload("")), fault.Corrupt},
		{"another type", file(0, payload(`{"type":"x","offset":4,"length":50}`)), fault.Corrupt},
		{"another length", file(0, payload(`{"type":"deletion-vector-v1","offset":4,"length":51}`)), fault.Corrupt},
		{"another number", file(0, payload(`{"type":"deletion-vector-v1","offset":4,"length":50,"properties":{"cardinality":"6"}}`)), fault.Corrupt},
		{"no number", file(0, payload(`{"type":"deletion-vector-v1","offset":4,"length":50,"properties":{"cardinality":"x"}}`)), fault.Corrupt},
		{"a codec", file(0, payload(`{"type":"deletion-vector-v1","offset":4,"length":50,"compression-codec":"zstd"}`)), fault.Corrupt},
		{"no JSON", file(0, []byte("{")), fault.Corrupt},
		{"no object", file(0, []byte("[]")), fault.Corrupt},
		{"blobs no list", file(0, []byte(`{"blobs":{}}`)), fault.Corrupt},
		{"cut", file(0, payload(blob))[:60], fault.Corrupt},
		{"empty", nil, fault.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := deletes.OpenPuffin(bytes.NewReader(c.file), int64(len(c.file)))
			name := ""
			if err == nil {
				name, err = p.Check(good)
			}
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
			if err == nil {
				require.Equal(t, "f", name)
			}
		})
	}
	whole := file(0, payload(blob))
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x41
		require.NotPanics(t, func() { _, _ = deletes.OpenPuffin(bytes.NewReader(b), int64(len(b))) })
	}
	require.True(t, json.Valid(payload(blob)))
}

func FuzzParseVector(f *testing.F) {
	for _, p := range []*deletes.Positions{deletes.Of(), deletes.Of(1, 2, 1<<33)} {
		blob, err := p.AppendVector(nil)
		require.NoError(f, err)
		f.Add(blob[8 : len(blob)-4])
	}
	f.Fuzz(func(t *testing.T, bitmaps []byte) {
		p, err := deletes.ParseVector(frame(bitmaps), 1<<40)
		if err != nil {
			return
		}
		blob, err := p.AppendVector(nil)
		require.NoError(t, err)
		back, err := deletes.ParseVector(blob, 1<<40)
		require.NoError(t, err)
		require.True(t, p.Equal(back))
	})
}
