package rewrite_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
	"github.com/seaice/seaice/rewrite/resolve"
)

// handPage is a page written byte by byte, for files that no library would
// write.
type handPage struct {
	// rep and def are the levels, nil for none.
	rep, def []byte
	// values are as the encoding has them.
	values []byte
	enc    format.Encoding
	// rows is what the offset index and the v2 header say, -1 for nothing.
	rows int64
	v2   bool
	// nulls are those stated by a v2 header, nil for the right number.
	nulls *int32
	// statistics are those of the header.
	statistics *format.Statistics
	index      *encode.PageIndex
}

// handChunk is a column chunk of such pages.
type handChunk struct {
	dictionary []byte // PLAIN values
	entries    int32
	pages      []handPage
}

// handLevels are levels as runs of one.
func handLevels(levels []byte) (out []byte) {
	for _, l := range levels {
		out = append(out, 2, l)
	}
	return out
}

func handInts(v ...int32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, uint32(x))
	}
	return out
}

func handLongs(v ...int64) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint64(out, uint64(x))
	}
	return out
}

func (p *handPage) page(n int) encode.Page {
	h := format.PageHeader{Type: format.DataPage, Encoding: p.enc, DefEncoding: format.RLE, RepEncoding: format.RLE, Values: int32(n), Statistics: p.statistics}
	var body []byte
	levels := func(l []byte) int32 {
		if l == nil {
			return 0
		}
		b := handLevels(l)
		if !p.v2 {
			body = binary.LittleEndian.AppendUint32(body, uint32(len(b)))
		}
		body = append(body, b...)
		return int32(len(b))
	}
	rep, def := levels(p.rep), levels(p.def)
	if p.v2 {
		h.Type, h.RepBytes, h.DefBytes, h.Rows = format.DataPageV2, rep, def, int32(p.rows)
	}
	body = append(body, p.values...)
	h.CompressedSize, h.UncompressedSize = int32(len(body)), int32(len(body))
	sum := crc32.ChecksumIEEE(body)
	h.CRC = &sum
	x := encode.UnknownIndex()
	if p.index != nil {
		x = *p.index
	}
	x.Rows = p.rows
	return encode.Page{Header: h, Body: body, Index: x}
}

// handFile writes one row group of such chunks, uncompressed.
func handFile(t require.TestingT, schema *icego.Schema, rows int64, createdBy string, chunks ...handChunk) []byte {
	target, err := resolve.NewTarget(schema, resolve.Options{})
	require.NoError(t, err)
	var out bytes.Buffer
	f, err := output.NewFile(&out, target.Schema, output.Options{CreatedBy: createdBy})
	require.NoError(t, err)
	g, err := f.BeginGroup()
	require.NoError(t, err)
	for i, hc := range chunks {
		leaf := target.Schema.Leaves[i]
		c, err := g.Column(i, format.Uncompressed)
		require.NoError(t, err)
		if hc.entries > 0 {
			h := format.PageHeader{Type: format.DictionaryPage, Values: hc.entries, CompressedSize: int32(len(hc.dictionary)), UncompressedSize: int32(len(hc.dictionary))}
			require.NoError(t, c.Dictionary(encode.Page{Header: h, Body: hc.dictionary}))
		}
		for _, p := range hc.pages {
			n := max(len(p.rep), len(p.def))
			if leaf.MaxDef == 0 {
				n = int(p.rows)
			}
			page := p.page(n)
			if p.v2 && leaf.MaxDef > 0 {
				page.Header.Nulls = int32(n - bytes.Count(p.def, []byte{byte(leaf.MaxDef)}))
				if p.nulls != nil {
					page.Header.Nulls = *p.nulls
				}
			}
			require.NoError(t, c.Page(page))
		}
		require.NoError(t, c.Close())
	}
	require.NoError(t, g.Close(rows))
	_, err = f.Close()
	require.NoError(t, err)
	return out.Bytes()
}
