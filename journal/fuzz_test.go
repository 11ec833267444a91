package journal

import (
	"testing"

	"github.com/seaice/seaice/fault"
)

// FuzzDecode: whatever is stored in an entry of the journal is either read or
// named as damaged or newer.
func FuzzDecode(f *testing.F) {
	h := head{
		Format: format, Run: "r", Token: "0123456789ab", UUID: "0f4c8a52-6c0e-4c6f-9d2e-3f1d3c0b7a11", Op: "compact", Phase: Open, Lease: 1e9,
	}
	b, err := h.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	g := segment{Format: format, Run: "r", N: 1, Names: nil, Unit: &Unit{ID: "u"}}
	if b, err = g.encode(); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"format":1,"removals":[{"path":"/buckets/b/x","to":"//"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := headPath(h.UUID, h.Run)
		got, err := decodeHead(p, b)
		damaged(t, err)
		if err == nil && (got.Run != h.Run || got.UUID != h.UUID) {
			t.Fatalf("accepted the head of %s", got.Run)
		}
		seg, err := decodeSegment(segmentPath(h.UUID, h.Run, 1), b, &h, 1)
		damaged(t, err)
		if err == nil {
			_ = seg.belongs(&h)
		}
	})
}

func damaged(t *testing.T, err error) {
	t.Helper()
	if k := fault.Of(err); k != fault.None && k != fault.Corrupt && k != fault.Unsupported {
		t.Fatalf("%s: %v", k, err)
	}
}
