package compact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
)

// unitProof is what the result keeps of each unit.
type unitProof struct {
	Unit        string `json:"unit"`
	Verify      string `json:"verify"`
	Sum         string `json:"sum"`
	RowsRead    int64  `json:"rows-read"`
	RowsDeleted int64  `json:"rows-deleted"`
	RowsWritten int64  `json:"rows-written"`
}

// proof is what shows that a commit changed no row.
type proof struct {
	// Sum is over the sums of the units, in order.
	Sum   string      `json:"sum"`
	Units []unitProof `json:"units"`
}

// after measures what the attempt did that is in the table. Replaced files stay
// until the snapshots that name them expire.
func (x *execution) after(_ context.Context, d ops.Done) (ops.Actual, error) {
	a := x.committed(d)
	if a == nil {
		return ops.Actual{}, fault.New(fault.Halt, "no attempt was made that could have been committed")
	}
	e := ops.Effects{Before: x.totals(a, a.list), After: x.totals(a, a.next), RowsExact: true}
	e.After.Bytes = e.Before.Bytes + a.sum.AddedBytes - a.sum.RemovedBytes
	e.After.Snapshots = int64(len(a.head.Metadata.Snapshots)) + 1
	e.Before.Snapshots = e.After.Snapshots - 1
	counters := map[string]int64{
		"units": int64(len(a.units)), "units-dropped": int64(len(x.dropped) + len(a.lost)),
		"data-files-removed": a.sum.RemovedDataFiles, "data-files-added": a.sum.AddedDataFiles,
		"delete-files-removed": a.sum.RemovedDeleteFiles, "delete-files-added": a.sum.AddedDeleteFiles,
		"data-bytes-removed": 0, "data-bytes-added": 0, "manifests-created": int64(len(a.made)), "manifests-replaced": a.replaced,
	}
	p := proof{Units: []unitProof{}}
	sum := sha256.New()
	for _, u := range a.units {
		c := u.Proof.Counts
		for name, n := range map[string]int64{
			"rows-read": c.RowsRead, "rows-deleted": c.RowsDeleted, "rows-written": c.RowsWritten, "bytes-read": c.BytesRead,
			"bytes-verbatim": c.Verbatim, "bytes-remapped": c.Remapped, "bytes-recompressed": c.Recompressed, "bytes-encoded": c.Encoded,
			"values-proved": c.Proved, "rows-translated": u.translated(),
		} {
			counters[name] += n
		}
		if u.resumed {
			counters["units-resumed"]++
		}
		e.BytesRead += c.BytesRead
		for i := range u.Outputs {
			e.BytesWritten += u.Outputs[i].Bytes
			counters["data-bytes-added"] += u.Outputs[i].Bytes
		}
		e.BytesWritten += u.Map.Bytes
		for i := range u.Unit.Inputs {
			e.FreedLaterBytes += u.Unit.Inputs[i].Bytes
			counters["data-bytes-removed"] += u.Unit.Inputs[i].Bytes
		}
		p.Units = append(p.Units, unitProof{
			Unit: u.Unit.ID, Verify: u.Proof.Verify, Sum: u.Proof.Sum, RowsRead: c.RowsRead, RowsDeleted: c.RowsDeleted, RowsWritten: c.RowsWritten,
		})
		_, _ = sum.Write([]byte(u.Proof.Sum + "\n"))
	}
	p.Sum = hex.EncodeToString(sum.Sum(nil))
	for _, d := range a.dead {
		e.FreedLaterBytes += contentBytes(d.Entry)
	}
	for _, m := range a.made {
		e.BytesWritten += m.Length
	}
	raw, err := json.Marshal(p)
	return ops.Actual{
		Effects: e, Counters: counters, Reasons: append(slices.Clone(x.dropped), a.lost...), Proof: raw,
	}, fault.Wrap(fault.Unsupported, "write the proof", err)
}

// committed is the attempt that is in the table, which need not be the last one.
func (x *execution) committed(d ops.Done) *attempt {
	if s, ok := d.Head.Snapshot(d.Commit.Snapshot); ok {
		if a := x.attempts[s.ManifestList]; a != nil {
			return a
		}
	}
	return x.last
}

// totals adds up a list. What a list does not say is taken from the parent's
// summary, and else from the plan.
func (x *execution) totals(a *attempt, list []*manifests.ManifestFile) ops.Totals {
	t := ops.Totals{Manifests: int64(len(list))}
	known := true
	for _, m := range list {
		files, ok := m.LiveFiles()
		rows, ok2 := m.LiveRows()
		known = known && ok && ok2
		if m.Content == manifests.DataManifest {
			t.DataFiles += files
			t.Rows += rows
		} else {
			t.DeleteFiles += files
		}
	}
	planned := x.p.header.Effects.Before
	if !known {
		t.DataFiles, t.DeleteFiles, t.Rows = planned.DataFiles, planned.DeleteFiles, planned.Rows
	}
	t.Bytes = planned.Bytes
	if p := a.sn.Parent(); p != nil && p.ID != x.p.header.Base.Snapshot {
		if n, err := strconv.ParseInt(p.Summary()["total-files-size"], 10, 64); err == nil && n >= 0 {
			t.Bytes = n
		}
	}
	return t
}
