package compact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/ops"
)

func TestReportStatesWhatWasMeasured(t *testing.T) {
	p := &Plan{units: make([]Unit, 3)}
	for _, c := range []struct {
		n       map[string]int64
		reasons []ops.Reason
		want    string
	}{
		{
			map[string]int64{"units": 3, "data-files-removed": 24, "data-files-added": 3, "data-bytes-removed": 43008, "data-bytes-added": 1},
			nil, "24 -> 3 files, 42.0 KB -> 1 byte, in 3 units",
		},
		{
			map[string]int64{
				"units": 2, "units-dropped": 1, "data-files-removed": 9, "data-files-added": 1, "data-bytes-removed": 2 << 20,
				"data-bytes-added": 1 << 20, "rows-deleted": 7, "delete-files-removed": 2, "delete-files-added": 1,
			},
			[]ops.Reason{{Subject: "unit a", Text: "x was removed since planning"}},
			"9 -> 1 file, 2.0 MB -> 1.0 MB, 7 deleted rows applied, 2 deletes removed, 1 delete of others carried over, in 2 of 3 units; " +
				"1 left out: unit a: x was removed since planning",
		},
	} {
		require.Equal(t, c.want, p.Report(ops.Effects{}, c.n, c.reasons))
	}
}
