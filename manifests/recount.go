package manifests

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// Recount reads manifest m from in and returns it with its counts filled in; for
// an embedded one also length and spec. Everything that was known
// stays as it was; what contradicts the entries is Corrupt (F077, F084).
func Recount(ctx context.Context, in io.Reader, m *ManifestFile) (*ManifestFile, error) {
	r, err := NewReader(ctx, in, m, ReadOptions{Projection: ProjectCarry})
	if err != nil {
		return nil, err
	}
	var files, rows [3]int64
	minSeq := Opt[iceberg.SeqNum]{}
	for e, err := range r.Entries() {
		if err != nil {
			return nil, err
		}
		if e.Records > math.MaxInt64-rows[e.Status] {
			return nil, corrupt(m.Path, "its row counts overflow")
		}
		files[e.Status]++
		rows[e.Status] += e.Records
		if seq, ok := e.DataSeq.Get(); ok && e.Live() && (!minSeq.Known() || seq < minSeq.Value) {
			minSeq = Some(seq)
		}
	}
	out := m.Clone()
	if out.embedded {
		out.SpecID, out.Length, out.embedded = r.Header().SpecID, r.in.Taken(), false
	}
	for _, c := range []struct {
		what string
		have *Opt[int64]
		n    int64
	}{
		{"added files", &out.AddedFiles, files[Added]}, {"existing files", &out.ExistingFiles, files[Existing]},
		{"deleted files", &out.DeletedFiles, files[Deleted]}, {"added rows", &out.AddedRows, rows[Added]},
		{"existing rows", &out.ExistingRows, rows[Existing]}, {"deleted rows", &out.DeletedRows, rows[Deleted]},
	} {
		if c.have.Known() && c.have.Value != c.n {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("%s has %d %s, the manifest list says %d", m.Path, c.n, c.what, c.have.Value))
		}
		*c.have = Some(c.n)
	}
	if !out.MinSeq.Known() {
		out.MinSeq = minSeq
	}
	return out, nil
}
