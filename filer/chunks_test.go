package filer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
)

// chunk is chunk number n at [start, stop), modified at ts.
func chunk(n int, start, stop, ts int64) *filer_pb.FileChunk {
	return &filer_pb.FileChunk{FileId: fmt.Sprintf("1,%02x00000001", n), Offset: start, Size: uint64(stop - start), ModifiedTsNs: ts}
}

// show prints views as "1[0,5)+0": chunk, range, where in the chunk it begins.
func show(views []view) string {
	var out []string
	for _, v := range views {
		var n int
		_, _ = fmt.Sscanf(v.chunk.GetFileId(), "1,%02x", &n)
		out = append(out, fmt.Sprintf("%d[%d,%d)+%d", n, v.start, v.stop, v.skip))
	}
	return strings.Join(out, " ")
}

func TestViewsOfChunks(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks []*filer_pb.FileChunk
		size   int64
		want   string
	}{
		{"none", nil, 10, ""},
		{"one", []*filer_pb.FileChunk{chunk(1, 0, 10, 1)}, 10, "1[0,10)+0"},
		{"in a row", []*filer_pb.FileChunk{chunk(2, 5, 9, 1), chunk(1, 0, 5, 1)}, 9, "1[0,5)+0 2[5,9)+0"},
		{"hole before, between and behind", []*filer_pb.FileChunk{chunk(1, 2, 4, 1), chunk(2, 6, 8, 1)}, 10, "1[2,4)+0 2[6,8)+0"},
		{"newer over the middle", []*filer_pb.FileChunk{chunk(1, 0, 10, 1), chunk(2, 3, 5, 2)}, 10, "1[0,3)+0 2[3,5)+0 1[5,10)+5"},
		{"older under the middle", []*filer_pb.FileChunk{chunk(1, 0, 10, 2), chunk(2, 3, 5, 1)}, 10, "1[0,10)+0"},
		{"newer over the end", []*filer_pb.FileChunk{chunk(1, 0, 6, 1), chunk(2, 4, 10, 2)}, 10, "1[0,4)+0 2[4,10)+0"},
		{"newer over the beginning", []*filer_pb.FileChunk{chunk(1, 4, 10, 1), chunk(2, 0, 6, 2)}, 10, "2[0,6)+0 1[6,10)+2"},
		{"newer over all", []*filer_pb.FileChunk{chunk(1, 3, 5, 1), chunk(2, 4, 6, 3), chunk(3, 0, 10, 4)}, 10, "3[0,10)+0"},
		{"three deep", []*filer_pb.FileChunk{chunk(1, 0, 9, 1), chunk(2, 2, 7, 2), chunk(3, 4, 5, 3)}, 9, "1[0,2)+0 2[2,4)+0 3[4,5)+0 2[5,7)+3 1[7,9)+7"},
		{"same beginning", []*filer_pb.FileChunk{chunk(1, 0, 9, 1), chunk(2, 0, 4, 2)}, 9, "2[0,4)+0 1[4,9)+4"},
		{"same time: the first lasts", []*filer_pb.FileChunk{chunk(1, 0, 6, 1), chunk(2, 4, 9, 1)}, 9, "1[0,6)+0 2[6,9)+2"},
		{"size ends within a chunk", []*filer_pb.FileChunk{chunk(1, 0, 9, 1), chunk(2, 5, 12, 2)}, 7, "1[0,5)+0 2[5,7)+0"},
		{"chunk behind the size", []*filer_pb.FileChunk{chunk(1, 0, 4, 1), chunk(2, 8, 12, 2)}, 6, "1[0,4)+0"},
		{"empty chunk", []*filer_pb.FileChunk{chunk(1, 0, 4, 1), chunk(2, 2, 2, 2)}, 4, "1[0,4)+0"},
		{"at the end of the numbers", []*filer_pb.FileChunk{chunk(1, math.MaxInt64-3, math.MaxInt64, 1)}, math.MaxInt64, fmt.Sprintf("1[%d,%d)+0", int64(math.MaxInt64-3), int64(math.MaxInt64))},
	} {
		t.Run(c.name, func(t *testing.T) {
			views, err := viewsOf("/f", c.chunks, c.size)
			require.NoError(t, err)
			require.Equal(t, c.want, show(views))
		})
	}
}

func TestHostileChunksAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		chunk *filer_pb.FileChunk
		kind  fault.Kind
	}{
		{"negative offset", chunk(1, -1, 5, 1), fault.Corrupt},
		{"size beyond the numbers", &filer_pb.FileChunk{FileId: "1,0100000001", Size: math.MaxUint64}, fault.Corrupt},
		{"end beyond the numbers", &filer_pb.FileChunk{FileId: "1,0100000001", Offset: math.MaxInt64 - 1, Size: 2}, fault.Corrupt},
		{"no file id", &filer_pb.FileChunk{Size: 1}, fault.Corrupt},
		{"file id without volume", &filer_pb.FileChunk{FileId: ",0100000001", Size: 1}, fault.Corrupt},
		{"file id that is a path", &filer_pb.FileChunk{FileId: "1,01/../../admin", Size: 1}, fault.Corrupt},
		{"file id with a query", &filer_pb.FileChunk{FileId: "1,0100000001?a=b", Size: 1}, fault.Corrupt},
		{"file id of another host", &filer_pb.FileChunk{FileId: "x@h:80/1,0100000001", Size: 1}, fault.Corrupt},
		{"encrypted by a client's key", &filer_pb.FileChunk{FileId: "1,0100000001", Size: 1, SseType: filer_pb.SSEType_SSE_C}, fault.Unsupported},
		{"encrypted by a managed key", &filer_pb.FileChunk{FileId: "1,0100000001", Size: 1, SseType: filer_pb.SSEType_SSE_KMS}, fault.Unsupported},
		{"encrypted by a type of later days", &filer_pb.FileChunk{FileId: "1,0100000001", Size: 1, SseType: 77}, fault.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := viewsOf("/f", []*filer_pb.FileChunk{c.chunk}, 10)
			require.Equal(t, c.kind, fault.Of(err), "%v", err)
		})
	}
	_, err := viewsOf("/f", []*filer_pb.FileChunk{{FileId: "1,0100000001", Size: 1, SseType: filer_pb.SSEType_SSE_KMS}}, 10)
	require.ErrorContains(t, err, "SSE_KMS")
}

// TestViewsAgreeWithPainting compares with the plain definition: paint the
// chunks from the oldest to the newest.
func TestViewsAgreeWithPainting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 40
		n := rapid.IntRange(0, 12).Draw(t, "chunks")
		stamps := rapid.Permutation([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).Draw(t, "stamps")
		var chunks []*filer_pb.FileChunk
		for i := range n {
			start := rapid.Int64Range(0, size-1).Draw(t, "start")
			chunks = append(chunks, chunk(i+1, start, start+rapid.Int64Range(0, size-start).Draw(t, "length"), stamps[i]))
		}
		var painted [size]string
		for ts := int64(1); ts <= 12; ts++ {
			for _, c := range chunks {
				if c.ModifiedTsNs == ts {
					for at := c.Offset; at < end(c); at++ {
						painted[at] = fmt.Sprint(c.FileId, at-c.Offset)
					}
				}
			}
		}
		views, err := viewsOf("/f", chunks, size)
		require.NoError(t, err)
		var got [size]string
		last := int64(0)
		for _, v := range views {
			require.Less(t, v.start, v.stop)
			require.GreaterOrEqual(t, v.start, last)
			last = v.stop
			for at := v.start; at < v.stop; at++ {
				got[at] = fmt.Sprint(v.chunk.FileId, v.skip+at-v.start)
			}
		}
		require.Equal(t, painted, got)

		from := rapid.Int64Range(0, size).Draw(t, "from")
		to := rapid.Int64Range(from, size).Draw(t, "to")
		for _, v := range views {
			hit := v.start < to && v.stop > from
			in := false
			for _, w := range within(views, from, to) {
				in = in || w == v
			}
			require.Equal(t, hit && from < to, in && from < to, "within [%d,%d): [%d,%d)", from, to, v.start, v.stop)
		}
	})
}

func TestManyChunksResolveInOrderOfTheirNumber(t *testing.T) {
	const n = 200_000
	chunks := make([]*filer_pb.FileChunk, n)
	for i := range chunks {
		chunks[i] = &filer_pb.FileChunk{FileId: "1,0100000001", Offset: int64(i) * 10, Size: 10, ModifiedTsNs: int64(i)}
	}
	rand.Shuffle(n, func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
	views, err := viewsOf("/f", chunks, n*10)
	require.NoError(t, err)
	require.Len(t, views, n)
}
