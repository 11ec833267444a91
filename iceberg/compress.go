package iceberg

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/seaice/seaice/fault"
)

// MaxMetadataBytes bounds table metadata, as stored and uncompressed.
const MaxMetadataBytes = 256 << 20

// Compression is how a metadata file is stored.
type Compression string

// The compressions of metadata files that are read. All are written as None,
// because the catalog reads no other.
const (
	None Compression = "none"
	Gzip Compression = "gzip"
	Zstd Compression = "zstd"
)

// Decompress returns the JSON in a metadata file and how it was stored. The
// first bytes decide, never the name (F126). Output above MaxMetadataBytes is
// fault.TooLarge.
func Decompress(stored []byte) ([]byte, Compression, error) {
	switch {
	case bytes.HasPrefix(stored, []byte{0x1f, 0x8b}):
		r, err := gzip.NewReader(bytes.NewReader(stored)) // reads all members
		if err != nil {
			return nil, Gzip, fault.Wrap(fault.Corrupt, "open gzip metadata", err)
		}
		out, err := inflate(r, Gzip)
		return out, Gzip, err
	case bytes.HasPrefix(stored, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		r, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, Zstd, fault.Wrap(fault.Corrupt, "open zstd metadata", err)
		}
		defer r.Close()
		out, err := inflate(r, Zstd)
		return out, Zstd, err
	}
	if len(stored) > MaxMetadataBytes {
		return nil, None, fault.New(fault.TooLarge, fmt.Sprintf("metadata has more than %d bytes", MaxMetadataBytes))
	}
	return stored, None, nil
}

func inflate(r io.Reader, c Compression) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, MaxMetadataBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "decompress "+string(c)+" metadata", err)
	}
	if len(out) > MaxMetadataBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("metadata decompresses to more than %d bytes", MaxMetadataBytes))
	}
	return out, nil
}
