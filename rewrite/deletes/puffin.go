package deletes

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/pierrec/lz4/v4"

	"github.com/seaice/seaice/fault"
)

// MaxPuffinFooter bounds the footer of a Puffin file, as stored and decompressed.
const MaxPuffinFooter = 32 << 20

const (
	puffinMagic = "PFA1"
	// puffinTail is the size of the footer's payload, the flags, the magic number.
	puffinTail       = 12
	footerCompressed = 1 // in the flags: the payload is one LZ4 frame

	vectorType = "deletion-vector-v1"
	// rowPosition is the reserved field id of _pos, which Java lists as the
	// field of a vector.
	rowPosition = 2147483645

	propDataFile    = "referenced-data-file"
	propCardinality = "cardinality"
)

// puffinFooter is the payload of a Puffin file's footer (Puffin spec,
// FileMetadata), as it is written.
type puffinFooter struct {
	Blobs      []puffinBlob      `json:"blobs"`
	Properties map[string]string `json:"properties,omitempty"`
}

type puffinBlob struct {
	Type       string            `json:"type"`
	Fields     []int32           `json:"fields"`
	SnapshotID int64             `json:"snapshot-id"`
	Sequence   int64             `json:"sequence-number"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Properties map[string]string `json:"properties,omitempty"`
}

// storedBlob is what is read of a blob.
type storedBlob struct {
	Type       string            `json:"type"`
	Offset     int64             `json:"offset"`
	Length     int64             `json:"length"`
	Codec      string            `json:"compression-codec"`
	Properties map[string]string `json:"properties"`
}

// Puffin is what the footer of a Puffin file says of its deletion vectors.
type Puffin struct {
	vectors map[int64]storedVector // by offset
}

type storedVector struct {
	length      int64
	codec       string
	cardinality string
	dataFile    string
}

// OpenPuffin reads the footer of the Puffin file that in holds size bytes of.
func OpenPuffin(in io.ReaderAt, size int64) (p *Puffin, err error) {
	defer guard(&err)
	if size < int64(2*len(puffinMagic)+puffinTail) {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("a file of %d bytes is no Puffin file", size))
	}
	tail := make([]byte, puffinTail)
	if err := readAt(in, tail, size-puffinTail); err != nil {
		return nil, err
	}
	if string(tail[8:]) != puffinMagic {
		return nil, fault.New(fault.Corrupt, "the file does not end as a Puffin file")
	}
	n, flags := int64(int32(binary.LittleEndian.Uint32(tail))), binary.LittleEndian.Uint32(tail[4:])
	if n < 0 || n > size-int64(2*len(puffinMagic)+puffinTail) {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("the footer of the Puffin file has %d bytes of %d", n, size))
	}
	if n > MaxPuffinFooter {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("the footer of the Puffin file has %d bytes, of %d", n, MaxPuffinFooter))
	}
	if flags&^footerCompressed != 0 {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("the Puffin file has the flags %#x", flags))
	}
	payload := make([]byte, int64(len(puffinMagic))+n)
	if err := readAt(in, payload, size-puffinTail-int64(len(payload))); err != nil {
		return nil, err
	}
	if string(payload[:len(puffinMagic)]) != puffinMagic {
		return nil, fault.New(fault.Corrupt, "the footer of the Puffin file does not begin as one")
	}
	return parseFooter(payload[len(puffinMagic):], flags)
}

func parseFooter(payload []byte, flags uint32) (*Puffin, error) {
	if flags&footerCompressed != 0 {
		plain, err := io.ReadAll(io.LimitReader(lz4.NewReader(bytes.NewReader(payload)), MaxPuffinFooter+1))
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, "decompress the footer of the Puffin file", err)
		}
		if len(plain) > MaxPuffinFooter {
			return nil, fault.New(fault.TooLarge, fmt.Sprintf("the footer of the Puffin file has more than %d bytes", MaxPuffinFooter))
		}
		payload = plain
	}
	p := &Puffin{vectors: map[int64]storedVector{}}
	if err := p.decode(json.NewDecoder(bytes.NewReader(payload))); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "read the footer of the Puffin file", err)
	}
	return p, nil
}

// decode takes one blob after another and keeps the vectors only: a footer of a
// few megabytes may list more blobs than there is memory for.
func (p *Puffin) decode(dec *json.Decoder) error {
	if err := delimiter(dec, '{'); err != nil {
		return err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		if key != "blobs" {
			var skipped json.RawMessage
			if err := dec.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if err := delimiter(dec, '['); err != nil {
			return err
		}
		for dec.More() {
			var b storedBlob
			if err := dec.Decode(&b); err != nil {
				return err
			}
			if b.Type == vectorType {
				p.vectors[b.Offset] = storedVector{length: b.Length, codec: b.Codec, cardinality: b.Properties[propCardinality], dataFile: b.Properties[propDataFile]}
			}
		}
		if err := delimiter(dec, ']'); err != nil {
			return err
		}
	}
	return delimiter(dec, '}')
}

func delimiter(dec *json.Decoder, want json.Delim) error {
	token, err := dec.Token()
	if err == nil && token != want {
		err = fmt.Errorf("%v where %v was expected", token, want)
	}
	return err
}

// Check looks whether the footer says of the blob at a vector's place that it is
// one, and how many positions it has, and returns the data file it says it is
// of, as the writer spelled it; "" if it does not say. A manifest that points at
// another file's vector shows here and nowhere else.
func (p *Puffin) Check(v Vector) (dataFile string, err error) {
	b, ok := p.vectors[v.Offset]
	switch {
	case !ok || b.length != v.Size:
		return "", fault.New(fault.Corrupt, fmt.Sprintf("the Puffin file has no deletion vector of %d bytes at %d", v.Size, v.Offset))
	case b.codec != "":
		return "", fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector at %d is compressed with %q", v.Offset, b.codec))
	}
	if b.cardinality != "" {
		if n, err := strconv.ParseInt(b.cardinality, 10, 64); err != nil || n != v.Records {
			return "", fault.New(fault.Corrupt, fmt.Sprintf("the deletion vector at %d has %q positions by its properties, its manifest says %d", v.Offset, b.cardinality, v.Records))
		}
	}
	return b.dataFile, nil
}

// Deleted are the positions deleted in one data file.
type Deleted struct {
	// DataFile is its location as the table spells it.
	DataFile  string
	Positions *Positions
}

// WrittenVector is where a vector is in the file that WriteVectors wrote.
type WrittenVector struct {
	DataFile string
	// Offset, Size and Records are content_offset, content_size_in_bytes and
	// record_count of its manifest entry.
	Offset, Size, Records int64
}

// WriteVectors writes a Puffin file with a deletion vector for each data file, in
// the order given, and returns their places and the size of the file. Two for
// one data file, and one without positions, are fault.Halt. One vector at a time
// is held in memory.
func WriteVectors(w io.Writer, createdBy string, all []Deleted) ([]WrittenVector, int64, error) {
	out := &counter{w: w}
	footer := puffinFooter{Blobs: []puffinBlob{}, Properties: map[string]string{"created-by": createdBy}}
	var written []WrittenVector
	seen := map[string]bool{}
	if err := out.write([]byte(puffinMagic)); err != nil {
		return nil, 0, err
	}
	var blob []byte
	for _, d := range all {
		records := d.Positions.Len()
		if records == 0 || seen[d.DataFile] {
			return nil, 0, fault.New(fault.Halt, fmt.Sprintf("write a second vector or an empty one for %s", d.DataFile))
		}
		if !utf8.ValidString(d.DataFile) {
			return nil, 0, fault.New(fault.Unsupported, fmt.Sprintf("write a deletion vector of %q, which is not UTF-8", d.DataFile))
		}
		seen[d.DataFile] = true
		var err error
		if blob, err = d.Positions.AppendVector(blob[:0]); err != nil {
			return nil, 0, fault.In("write the deletion vector of "+d.DataFile, err)
		}
		v := WrittenVector{DataFile: d.DataFile, Offset: out.n, Size: int64(len(blob)), Records: records}
		if err := out.write(blob); err != nil {
			return nil, 0, err
		}
		written = append(written, v)
		footer.Blobs = append(footer.Blobs, puffinBlob{
			Type: vectorType, Fields: []int32{rowPosition}, SnapshotID: -1, Sequence: -1, Offset: v.Offset, Length: v.Size,
			Properties: map[string]string{propDataFile: d.DataFile, propCardinality: strconv.FormatInt(records, 10)},
		})
	}
	tail, err := encodeFooter(footer)
	if err != nil {
		return nil, 0, err
	}
	err = out.write(tail)
	return written, out.n, err
}

func encodeFooter(f puffinFooter) ([]byte, error) {
	var payload bytes.Buffer
	enc := json.NewEncoder(&payload)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return nil, fault.Wrap(fault.Halt, "write the footer of a Puffin file", err)
	}
	payload.Truncate(payload.Len() - 1) // the encoder's line end
	if payload.Len() > MaxPuffinFooter {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("the footer of the Puffin file takes %d bytes, of %d", payload.Len(), MaxPuffinFooter))
	}
	b := append([]byte(puffinMagic), payload.Bytes()...)
	b = binary.LittleEndian.AppendUint32(b, uint32(payload.Len()))
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, puffinMagic...), nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) write(b []byte) error {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return fault.In("write a Puffin file", err)
}
