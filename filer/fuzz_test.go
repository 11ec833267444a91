package filer

import (
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// FuzzChunkList: a list of chunks from outside either resolves to views in order
// within the file, or is refused with a kind.
func FuzzChunkList(f *testing.F) {
	for _, chunks := range [][]*filer_pb.FileChunk{nil, {chunk(1, 0, 10, 1), chunk(2, 5, 20, 2)}, {chunk(1, -5, 3, 1)}} {
		b, err := proto.Marshal(&filer_pb.FileChunkManifest{Chunks: chunks})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, int64(15))
	}
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		var list filer_pb.FileChunkManifest
		if proto.Unmarshal(b, &list) != nil || size < 0 {
			return
		}
		e := NewEntry("/d", &filer_pb.Entry{Name: "f", Chunks: list.Chunks})
		if e.Size < 0 || e.Identity() == "" {
			t.Fatalf("size %d, identity %q", e.Size, e.Identity())
		}
		views, err := viewsOf("/d/f", list.Chunks, size)
		if k := fault.Of(err); err != nil && k != fault.Corrupt && k != fault.Unsupported {
			t.Fatalf("kind %s of %v", k, err)
		}
		at := int64(0)
		for _, v := range views {
			if v.start < at || v.stop <= v.start || v.stop > size || v.skip < 0 || v.skip+v.stop-v.start > int64(v.chunk.GetSize()) {
				t.Fatalf("view %+v behind %d of %d", v, at, size)
			}
			at = v.stop
		}
	})
}
