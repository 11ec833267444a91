package compact

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

// realTools are the engine.
func realTools() tools {
	return tools{merge: rewrite.Merge, load: loadDeletes, positions: writePositions, vectors: writeVectors}
}

// loadDeletes reads deletes with the engine.
func loadDeletes(ctx context.Context, q loading) ([]*deletes.Positions, error) {
	m := q.view.Metadata
	r := deletes.Request{
		Reader: q.reader, FormatVersion: m.FormatVersion, History: q.read.history, Names: q.read.names, HasNames: q.read.hasNames,
		Cache: q.cache,
	}
	if q.memory > 0 {
		r.Columns = column.Options{Budget: column.NewBudget(q.memory)}
		r.TableBytes = q.memory / 2
	}
	names := map[filer.Path]string{}
	for _, e := range q.files {
		f, err := dataFileOf(ctx, q, e)
		if err != nil {
			return nil, err
		}
		if other, twice := names[f.At]; twice {
			return nil, fault.New(fault.Unsupported, fmt.Sprintf("one data file is live as %s and as %s", other, f.Location))
		}
		names[f.At] = f.Location
		r.Data = append(r.Data, f)
	}
	for i, e := range q.deletes {
		if len(q.to[i]) == 0 {
			continue
		}
		d, err := deleteFileOf(ctx, q, e)
		if err != nil {
			return nil, err
		}
		d.Applies = q.to[i]
		r.Deletes = append(r.Deletes, d)
	}
	r.Candidates = strictly(ctx, q, r)
	res, err := deletes.Load(ctx, r)
	if err != nil {
		return nil, err
	}
	return res.Positions, nil
}

// strictly finds data files by the spellings in deletes, and refuses a position
// delete file that means one without spelling it as its manifest does. Names must
// match (Iceberg specification, "Position Delete Files"): readers that compare
// text show the rows, others do not, and a rewrite would settle it for all. A
// vector's file is named by its manifest, so what the Puffin file says may differ.
func strictly(ctx context.Context, q loading, r deletes.Request) func(string) ([]filer.Path, error) {
	strict := map[filer.Path]string{}
	for i := range r.Deletes {
		if d := &r.Deletes[i]; d.Kind == deletes.PositionDelete {
			for _, n := range d.Applies {
				strict[r.Data[n].At] = r.Data[n].Location
			}
		}
	}
	return func(spelling string) ([]filer.Path, error) {
		all, err := q.view.Locations.Candidates(spelling)
		if err != nil || len(strict) == 0 {
			return all, err
		}
		n := slices.IndexFunc(all, func(p filer.Path) bool { return strict[p] != "" })
		for i := range n {
			// The first that exists is what is meant.
			if _, err := q.reader.Stat(ctx, all[i]); !filer.NotFound(err) {
				return all, err
			}
		}
		if n < 0 {
			return all, nil
		}
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("a position delete names %s, its manifest calls the file %s", spelling, strict[all[n]]))
	}
}

func dataFileOf(ctx context.Context, q loading, e *manifests.Entry) (deletes.DataFile, error) {
	at, err := find(ctx, q.reader, q.view, e.Path)
	if err != nil {
		return deletes.DataFile{}, err
	}
	t, err := q.view.Metadata.PartitionType(e.SpecID)
	return deletes.DataFile{
		Location: e.Path, At: at, Records: e.Records, Type: t, Partition: e.Partition, Lower: boundMap(e.Lower), Upper: boundMap(e.Upper),
	}, err
}

func deleteFileOf(ctx context.Context, q loading, e *manifests.Entry) (deletes.DeleteFile, error) {
	at, err := find(ctx, q.reader, q.view, e.Path)
	d := deletes.DeleteFile{
		Kind: deletes.PositionDelete, Location: e.Path, At: at, Format: string(e.Format), Records: e.Records, EqualityIDs: e.EqualityIDs,
	}
	switch {
	case e.Content == manifests.EqualityDeletes:
		d.Kind = deletes.EqualityDelete
	case e.IsVector():
		d.Kind = deletes.DeletionVector
		offset, ok := e.ContentOffset.Get()
		size, ok2 := e.ContentSize.Get()
		if !ok || !ok2 {
			return d, fault.New(fault.Corrupt, "deletion vector in "+e.Path+" has no place in it")
		}
		d.Offset, d.Size = offset, size
	}
	return d, err
}

func find(ctx context.Context, r filer.Reader, v *iceberg.View, spelling string) (filer.Path, error) {
	e, err := v.Locations.Find(ctx, r, spelling)
	if err != nil {
		return "", fault.In("find "+spelling, err)
	}
	return e.Path, nil
}

// Table properties of delete files; those of data files hold where they are not
// set.
const (
	propDeleteCodec = "write.delete.parquet.compression-codec"
	propDeleteLevel = "write.delete.parquet.compression-level"
	propCodec       = "write.parquet.compression-codec"
	propLevel       = "write.parquet.compression-level"
)

// deleteCodecs are the codecs by name. What a table names and nobody knows is
// zstd, as where it names none.
var deleteCodecs = map[string]format.Codec{
	"uncompressed": format.Uncompressed, "none": format.Uncompressed, "snappy": format.Snappy, "gzip": format.Gzip,
	"brotli": format.Brotli, "zstd": format.Zstd, "lz4": format.LZ4Raw, "lz4_raw": format.LZ4Raw,
}

func positionOptions(props map[string]string) deletes.PositionOptions {
	o := deletes.PositionOptions{CreatedBy: rewrite.CreatedBy(), Codec: format.Zstd}
	name, level := props[propDeleteCodec], props[propDeleteLevel]
	if name == "" {
		name, level = props[propCodec], props[propLevel]
	}
	if c, ok := deleteCodecs[strings.ToLower(strings.TrimSpace(name))]; ok {
		o.Codec = c
	}
	most := map[format.Codec]int{format.Zstd: 22, format.Gzip: 9}[o.Codec]
	if n, err := strconv.Atoi(strings.TrimSpace(level)); err == nil && n > 0 && n <= most {
		o.Level = n
	}
	return o
}

func writePositions(ctx context.Context, to rewrite.Sink, q marking) (manifests.File, error) {
	wrote, err := deletes.WritePositions(to, positionOptions(q.properties), []deletes.Deleted{{DataFile: q.file.Path, Positions: q.rows}})
	if err != nil {
		return manifests.File{}, err
	}
	at, err := to.Done(ctx)
	if err != nil {
		return manifests.File{}, err
	}
	if at.Bytes != wrote.Bytes {
		return manifests.File{}, fault.New(fault.Halt, fmt.Sprintf("%s has %d bytes as stored, %d were written", at.Location, at.Bytes, wrote.Bytes))
	}
	return manifests.File{
		Content: manifests.PositionDeletes, Path: at.Location, Format: manifests.Parquet, SpecID: q.file.SpecID, Partition: q.file.Partition,
		Records: wrote.Records, Bytes: wrote.Bytes, SplitOffsets: wrote.SplitOffsets, ReferencedDataFile: manifests.Some(q.file.Path),
		ColumnSizes: countsOf(wrote.ColumnSizes), ValueCounts: countsOf(wrote.Values), NullCounts: countsOf(wrote.Nulls),
		Lower: boundsOf(wrote.Lower), Upper: boundsOf(wrote.Upper),
	}, nil
}

func writeVectors(ctx context.Context, to rewrite.Sink, all []marking) ([]manifests.File, error) {
	rows := make([]deletes.Deleted, len(all))
	for i, q := range all {
		rows[i] = deletes.Deleted{DataFile: q.file.Path, Positions: q.rows}
	}
	wrote, size, err := deletes.WriteVectors(to, rewrite.CreatedBy(), rows)
	if err != nil {
		return nil, err
	}
	at, err := to.Done(ctx)
	if err != nil {
		return nil, err
	}
	if at.Bytes != size {
		return nil, fault.New(fault.Halt, fmt.Sprintf("%s has %d bytes as stored, %d were written", at.Location, at.Bytes, size))
	}
	out := make([]manifests.File, len(wrote))
	for i, w := range wrote {
		out[i] = manifests.File{
			Content: manifests.PositionDeletes, Path: at.Location, Format: manifests.Puffin, SpecID: all[i].file.SpecID, Partition: all[i].file.Partition,
			Records: w.Records, Bytes: size, ReferencedDataFile: manifests.Some(w.DataFile),
			ContentOffset: manifests.Some(w.Offset), ContentSize: manifests.Some(w.Size),
		}
	}
	return out, nil
}
