package compact

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/rewrite"
)

// SEAICE_COPYING is how every unit of every test of this package is merged: "on"
// copies pages where that is allowed and nothing is gained by encoding them anew,
// "off" encodes everything, "forced" copies wherever it is allowed. Without it random
// tables have one of the three each, and all others "on". Tests that compare two of
// them choose themselves, whatever it says. It is read in tests and not before, or
// go test would take the results of one mode for those of another.
func copyingMode() (mode rewrite.Copying, set bool) {
	switch text := os.Getenv("SEAICE_COPYING"); text {
	case "":
		return rewrite.CopyWhereAllowed, false
	case "on":
		return rewrite.CopyWhereAllowed, true
	case "off":
		return rewrite.CopyNever, true
	case "forced":
		return rewrite.CopyForced, true
	default:
		panic(fmt.Sprintf("SEAICE_COPYING is %q, not on, off or forced", text))
	}
}

// inMode merges as SEAICE_COPYING says.
func inMode(tl tools) tools {
	if mode, set := copyingMode(); set {
		return copyingAs(tl, mode)
	}
	return tl
}

func copyingAs(tl tools, c rewrite.Copying) tools {
	merge := tl.merge
	tl.merge = func(ctx context.Context, q rewrite.Request) (rewrite.Result, error) {
		q.Copying = c
		return merge(ctx, q)
	}
	return tl
}

// The tests of this package merge in the mode that they are told to.
func TestModeOfCopyingReachesTheEngine(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	tb := scene(t, fl, model.Config{Version: 2, Spec: "region"})
	small(tb, 1, 3, 40, "eu")
	res := done(t, fl, nil)
	moved := res.Counters["bytes-verbatim"] + res.Counters["bytes-remapped"] + res.Counters["bytes-recompressed"]
	if mode, _ := copyingMode(); mode == rewrite.CopyNever {
		require.Zero(t, moved, "%v", res.Counters)
		require.Positive(t, res.Counters["bytes-encoded"])
	} else {
		require.Positive(t, moved, "%v", res.Counters)
	}
}
