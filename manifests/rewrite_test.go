package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/manifests/avro"
)

// shelf keeps the files a Splitter makes.
type shelf struct {
	files  []*bytes.Buffer
	closed int
	fail   error
}

type shelfFile struct {
	*bytes.Buffer
	s *shelf
}

func (f shelfFile) Close() error { f.s.closed++; return f.s.fail }

func (s *shelf) create(n int) (io.WriteCloser, string, error) {
	s.files = append(s.files, &bytes.Buffer{})
	return shelfFile{s.files[n], s}, fmt.Sprintf("s3://b/t/metadata/out-%d.avro", n), nil
}

func (s *shelf) bytes() map[string][]byte {
	out := map[string][]byte{}
	for n, f := range s.files {
		out[fmt.Sprintf("s3://b/t/metadata/out-%d.avro", n)] = f.Bytes()
	}
	return out
}

func manyEntries(t testing.TB, entries int) (icegoManifest, *manifests.ManifestFile, *manifests.Partitioning) {
	spec, parts := testSpec(t, 1, testSchema(), partField{"day", 8, icego.DayTransform{}})
	m := writeIcego(t, 2, spec, testSchema(), icego.ManifestContentData, "s3://b/t/metadata/m.avro", 900, func(w *icego.ManifestWriter) {
		for n := range entries {
			f := withStats(icegoFile(t, spec, icego.EntryContentData, fmt.Sprintf("s3://b/t/data/%d-%d.parquet", n, n*7919), map[int]any{1000: icego.Date(n / 100)}, n), n, 10)
			old, seq := int64(77+n), int64(n)
			require.NoError(t, w.Existing(icego.NewManifestEntry(icego.EntryStatusEXISTING, &old, &seq, &seq, f.Build())))
		}
	})
	return m, m.listed(t, 2, 900, 40000, 0), parts
}

func TestSplitterRollsAtTheStoredSize(t *testing.T) {
	m, listed, parts := manyEntries(t, 5000)
	for _, codec := range []avro.Codec{avro.Deflate, avro.Uncompressed} {
		t.Run(string(codec), func(t *testing.T) {
			var s shelf
			const target = 100_000
			sp, err := manifests.NewSplitter(manifests.SplitterOptions{
				Writer:      manifests.WriterOptions{Version: 2, Partitioning: parts, SnapshotID: 901, Codec: codec},
				TargetBytes: target, Create: s.create,
			})
			require.NoError(t, err)
			r, err := manifests.NewReader(t.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{Projection: manifests.ProjectCarry})
			require.NoError(t, err)
			_, err = manifests.Filter(r, sp, nil)
			require.NoError(t, err)
			files, err := sp.Close()
			require.NoError(t, err)
			require.Greater(t, len(files), 2)
			require.Equal(t, len(files), s.closed)
			next := 0
			for i, f := range files {
				b := s.bytes()[f.Path]
				require.EqualValues(t, len(b), f.Length)
				if i < len(files)-1 {
					require.InDelta(t, target, f.Length, avro.BlockSize/2, "manifest %d of %d", i, len(files))
				}
				list, _ := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 901, Seq: 40001}, f)
				for _, e := range readAll(t, b, list[0], nil) {
					require.Equal(t, fmt.Sprintf("s3://b/t/data/%d-%d.parquet", next, next*7919), e.Path)
					next++
				}
				require.Equal(t, f.ExistingFiles.Value, int64(len(readAll(t, b, list[0], nil))))
			}
			require.Equal(t, 5000, next)
		})
	}
}

// TestSplitterKeepsUnknownFieldsApart: manifests whose entries carry different
// unknown fields do not lose them in a merge.
func TestSplitterKeepsUnknownFieldsApart(t *testing.T) {
	with := func(extra string, rest ...any) ([]byte, *manifests.ManifestFile) {
		values := append([]any{1, 0, 0, 0, 0, "s3://b/t/" + extra, "PARQUET", 5, 6}, rest...)
		return craft(t, entrySchemaText(plainFile+extra), nil, enc(values...)), manifest(manifests.DataManifest)
	}
	parts := testPartitioning(t, testSchema(), icego.NewPartitionSpecID(0))
	var s shelf
	sp, err := manifests.NewSplitter(manifests.SplitterOptions{
		Writer: manifests.WriterOptions{Version: 2, Partitioning: parts, SnapshotID: 43}, TargetBytes: 1 << 20, Create: s.create,
	})
	require.NoError(t, err)
	carry := func(extra string, rest ...any) {
		b, m := with(extra, rest...)
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(b), m, manifests.ReadOptions{})
		require.NoError(t, err)
		_, err = manifests.Filter(r, sp, nil)
		require.NoError(t, err)
	}
	carry("")
	carry(`,{"name":"x","type":["null","string"],"field-id":9001}`, 1, "one")
	carry("")
	carry(`,{"name":"x","type":"string","field-id":9001}`, "two")
	carry(`,{"name":"x","type":"long","field-id":9001}`, 77)
	files, err := sp.Close()
	require.NoError(t, err)
	require.Len(t, files, 3)
	require.EqualValues(t, 3, files[1].ExistingFiles.Value)
	r, err := avro.NewReader(bytes.NewReader(s.files[1].Bytes()), "n", avro.Limits{})
	require.NoError(t, err)
	data, _, err := r.Next()
	require.NoError(t, err)
	require.True(t, bytes.Contains(data, enc(1, "one")))
	require.True(t, bytes.Contains(data, enc(1, "two")))
}

func TestSplitterFailures(t *testing.T) {
	m, listed, parts := manyEntries(t, 10)
	o := manifests.SplitterOptions{Writer: manifests.WriterOptions{Version: 2, Partitioning: parts, SnapshotID: 901}, TargetBytes: 1}
	_, err := manifests.NewSplitter(o)
	require.Equal(t, fault.Halt, fault.Of(err))
	run := func(s *shelf, create func(int) (io.WriteCloser, string, error)) error {
		o.Create = create
		sp, err := manifests.NewSplitter(o)
		require.NoError(t, err)
		r, err := manifests.NewReader(t.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{})
		require.NoError(t, err)
		_, err = manifests.Filter(r, sp, nil)
		return err
	}
	boom := fault.New(fault.Transient, "boom")
	s := shelf{fail: boom}
	require.ErrorIs(t, run(&s, s.create), boom)
	require.Equal(t, fault.Transient, fault.Of(run(&s, func(int) (io.WriteCloser, string, error) { return nil, "", boom })))
	none, err := manifests.NewSplitter(o)
	require.NoError(t, err)
	files, err := none.Close()
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestF088StatisticsByteForByte and F045: what is carried from a manifest with
// the same types is the same bytes, invalid bounds included.
func TestF088StatisticsByteForByteF045InvalidBounds(t *testing.T) {
	_, parts := testSpec(t, 0, testSchema())
	lower := []byte("15 ascii bytes \xe2\x80")
	e := &manifests.Entry{File: manifests.File{
		Path: "f", Format: manifests.Parquet, Records: 1, Bytes: 1, NaNCounts: manifests.Counts{{Column: 9, N: 1}, {Column: 2, N: 0}},
		Lower: manifests.Bounds{{Column: 7, Value: lower}}, Upper: manifests.Bounds{{Column: 7, Value: []byte{}}, {Column: 1, Value: bytes.Repeat([]byte{0xff}, 20)}},
	}}
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "m", Version: 2, Partitioning: parts, SnapshotID: 7})
	require.NoError(t, err)
	require.NoError(t, w.Add(e))
	m, err := w.Close()
	require.NoError(t, err)
	list, _ := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 7, Seq: 1}, m)
	for _, version := range []int{2, 3} {
		b, _ := rewriteWith(t, out.Bytes(), list[0], manifests.WriterOptions{Path: "n", Version: version, Partitioning: parts, SnapshotID: 8}, (*manifests.Writer).Carry)
		got := readAll(t, b, list[0], nil)[0]
		require.Equal(t, e.Lower, got.Lower)
		require.Equal(t, e.Upper, got.Upper)
		require.Equal(t, e.NaNCounts, got.NaNCounts)
	}
}

// broken fails after n bytes.
type broken struct{ n int }

var errBroken = errors.New("disk full")

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriterStaysFailed(t *testing.T) {
	m, listed, parts := manyEntries(t, 2000)
	w, err := manifests.NewWriter(&broken{n: 30_000}, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 901})
	require.NoError(t, err)
	r, err := manifests.NewReader(t.Context(), bytes.NewReader(m.bytes), listed, manifests.ReadOptions{})
	require.NoError(t, err)
	_, err = manifests.Filter(r, w, nil)
	require.ErrorIs(t, err, errBroken)
	_, err = w.Close()
	require.ErrorIs(t, err, errBroken)
}

// TestWriterRefusals: an entry that does not belong leaves no trace.
func TestWriterRefusals(t *testing.T) {
	_, parts := testSpec(t, 1, testSchema(), partField{"p", 3, icego.IdentityTransform{}})
	tuple, err := parts.Type.TupleAt(func(int) any { return int32(1) })
	require.NoError(t, err)
	good := func() *manifests.Entry {
		return &manifests.Entry{
			Status: manifests.Existing, SnapshotID: manifests.Some(iceberg.SnapshotID(7)), DataSeq: manifests.Some(iceberg.SeqNum(1)),
			File: manifests.File{Path: "f", Format: manifests.Parquet, SpecID: 1, Partition: tuple, Records: 1, Bytes: 1},
		}
	}
	var out bytes.Buffer
	w, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "n", Version: 2, Partitioning: parts, SnapshotID: 8})
	require.NoError(t, err)
	for name, spoil := range map[string]func(e *manifests.Entry){
		"content":  func(e *manifests.Entry) { e.Content = manifests.PositionDeletes },
		"invalid":  func(e *manifests.Entry) { e.Content = 9 },
		"spec":     func(e *manifests.Entry) { e.SpecID = 0 },
		"path":     func(e *manifests.Entry) { e.Path = "" },
		"format":   func(e *manifests.Entry) { e.Format = "" },
		"records":  func(e *manifests.Entry) { e.Records = -1 },
		"tuple":    func(e *manifests.Entry) { e.Partition = iceberg.Tuple{} },
		"vector":   func(e *manifests.Entry) { e.ContentOffset = manifests.Some(int64(1)) },
		"seq":      func(e *manifests.Entry) { e.DataSeq = manifests.Opt[iceberg.SeqNum]{} },
		"snapshot": func(e *manifests.Entry) { e.SnapshotID = manifests.Opt[iceberg.SnapshotID]{} },
		"status":   func(e *manifests.Entry) { e.Status = manifests.Deleted },
	} {
		e := good()
		spoil(e)
		require.Error(t, w.Carry(e), name)
	}
	require.NoError(t, w.Carry(good()))
	m, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, 1, m.ExistingFiles.Value)
	list, _ := writeList(t, manifests.ListOptions{Version: 2, SnapshotID: 8, Seq: 2}, m)
	require.Len(t, readAll(t, out.Bytes(), list[0], nil), 1)
	for _, o := range []manifests.WriterOptions{
		{Version: 0, Partitioning: parts}, {Version: 4, Partitioning: parts}, {Version: 2}, {Version: 1, Content: manifests.DeleteManifest, Partitioning: parts},
		{Version: 2, Content: 7, Partitioning: parts},
	} {
		_, err := manifests.NewWriter(io.Discard, o)
		require.Error(t, err)
	}
}
