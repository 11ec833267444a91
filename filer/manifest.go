package filer

import (
	"context"
	"fmt"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

const (
	// A file of many chunks holds its list of chunks in chunks of its own
	// ("chunk manifests"), which may themselves be listed in one. The filer
	// folds 10 000 at a time, so three levels name a trillion chunks.
	maxManifestDepth = 3
	// maxManifestBytes bounds one encoded list; a full one has about 1 MiB.
	maxManifestBytes = 32 << 20
	// maxChunks bounds the chunks of one file in memory.
	maxChunks = 4 << 20
)

// resolver replaces chunk manifests by the chunks they list.
type resolver struct {
	c    *Client
	path Path
	out  []*filer_pb.FileChunk
}

func (c *Client) resolve(ctx context.Context, e *Entry) ([]*filer_pb.FileChunk, error) {
	r := resolver{c: c, path: e.Path}
	if err := r.add(ctx, e.PB.GetChunks(), 0); err != nil {
		return nil, err
	}
	return r.out, nil
}

func (r *resolver) add(ctx context.Context, chunks []*filer_pb.FileChunk, depth int) error {
	filer_pb.AfterEntryDeserialization(chunks)
	for _, m := range chunks {
		if m == nil {
			return fault.New(fault.Corrupt, fmt.Sprintf("%s lists an empty chunk", r.path))
		}
		if !m.GetIsChunkManifest() {
			if len(r.out) >= maxChunks {
				return fault.New(fault.TooLarge, fmt.Sprintf("%s has more than %d chunks", r.path, maxChunks))
			}
			r.out = append(r.out, m)
			continue
		}
		if depth == maxManifestDepth {
			return fault.New(fault.Corrupt, fmt.Sprintf("chunk manifests of %s are nested deeper than %d (chunk %s)", r.path, maxManifestDepth, m.GetFileIdString()))
		}
		list, err := r.load(ctx, m)
		if err != nil {
			return err
		}
		if err := r.add(ctx, list, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) load(ctx context.Context, m *filer_pb.FileChunk) ([]*filer_pb.FileChunk, error) {
	doing := fmt.Sprintf("read chunk manifest %s of %s", m.GetFileIdString(), r.path)
	if err := checkChunk(r.path, m); err != nil {
		return nil, err
	}
	// The size of a manifest chunk is that of the file's range it stands for,
	// not of the list.
	data, err := r.c.wholeChunk(ctx, r.path, m, maxManifestBytes)
	if err != nil {
		return nil, fault.In(doing, err)
	}
	var list filer_pb.FileChunkManifest
	if err := proto.Unmarshal(data, &list); err != nil {
		return nil, fault.Wrap(fault.Corrupt, doing, err)
	}
	return list.GetChunks(), nil
}
