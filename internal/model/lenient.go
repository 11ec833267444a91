package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/fault"
)

// entries reads a manifest with iceberg-go. Where iceberg-go refuses, because
// the header mislabels the content or entries have fields it does not know, it
// is handed a corrected header and a projection; style says what was wrong.
// A projection has no column sizes, split offsets and sort order.
func entries(files readIO, mf icego.ManifestFile) (iter.Seq2[icego.ManifestEntry, error], Style, error) {
	var style Style
	f, err := files.Open(mf.FilePath())
	if err != nil {
		return nil, style, fault.Wrap(fault.Corrupt, "open", err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, style, fault.Wrap(fault.Corrupt, "read", err)
	}
	deletes := mf.ManifestContent() == icego.ManifestContentDeletes
	relabelled, changed, err := relabel(data, deletes)
	if err != nil {
		return nil, style, err
	}
	style.DeletesAsData = changed
	r, err := icego.NewManifestReader(mf, bytes.NewReader(relabelled))
	if err == nil {
		_, err = r.ReadEntry()
		_ = r.Close()
	}
	open := func() (*icego.ManifestReader, error) { return icego.NewManifestReader(mf, bytes.NewReader(relabelled)) }
	if err != nil && !errors.Is(err, io.EOF) {
		style.UnknownField = true
		open = func() (*icego.ManifestReader, error) {
			return icego.NewManifestReaderWithProjection(mf, bytes.NewReader(relabelled), icego.ManifestEntryProjection{IncludePruningStats: true})
		}
	}
	return func(yield func(icego.ManifestEntry, error) bool) {
		r, err := open()
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		for {
			e, err := r.ReadEntry()
			if errors.Is(err, io.EOF) || !yield(e, err) || err != nil {
				return
			}
		}
	}, style, nil
}

// relabel corrects the content in a manifest's own header. It says whether the
// label was wrong.
func relabel(data []byte, deletes bool) ([]byte, bool, error) {
	meta, rest, err := avroMetadata(data)
	if err != nil {
		return nil, false, err
	}
	label := "data"
	if deletes {
		label = "deletes"
	}
	old, has := meta["content"]
	if !has || string(old) == label {
		return data, false, nil
	}
	meta["content"] = []byte(label)
	return append(avroHeader(meta, [16]byte(rest[:16])), rest[16:]...), true, nil
}

// avroMetadata is the metadata of a container and what follows it, the sync
// marker first.
func avroMetadata(data []byte) (map[string][]byte, []byte, error) {
	bad := fault.New(fault.Corrupt, "no avro container")
	if len(data) < len(avroMagic) || !bytes.Equal(data[:len(avroMagic)], avroMagic) {
		return nil, nil, bad
	}
	rest := data[len(avroMagic):]
	long := func() int64 {
		n, size := binary.Varint(rest)
		rest = rest[max(size, 0):]
		return n
	}
	take := func() []byte {
		n := long()
		if n < 0 || n > int64(len(rest)) {
			rest = nil
			return nil
		}
		v := rest[:n]
		rest = rest[n:]
		return v
	}
	meta := map[string][]byte{}
	for n := long(); n != 0; n = long() {
		if n < 0 { // a block that says its size in bytes
			n = -n
			long()
		}
		for ; n > 0; n-- {
			k := string(take())
			meta[k] = take()
			if rest == nil {
				return nil, nil, bad
			}
		}
	}
	if len(rest) < 16 {
		return nil, nil, bad
	}
	return meta, rest, nil
}
