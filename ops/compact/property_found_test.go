package compact

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
)

// What random tables found, told as stories.

// Manifests from before and after the widening of a partition column hold values
// of two types for one partition.
func TestPartitionsOfAWidenedColumnStayOne(t *testing.T) {
	for _, widen := range []struct{ from, to string }{{"int", "long"}, {"float", "double"}, {"decimal(5,1)", "decimal(20,1)"}} {
		t.Run(widen.from, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			s := scene(t, fl, model.Config{Schema: model.Columns(t, "id long!, p "+widen.from), Spec: "p"})
			before := s.File(s.R(1, 7), s.R(2, 7), s.R(3, 7))
			s.DeleteAt(before, 1)
			s.Widen("p", widen.to)
			after := s.File(s.R(4, 7), s.R(5, 7))
			s.DeleteAt(after, 0)
			res, err := runTools(t.Context(), fl, realTools(), nil)
			require.NoError(t, err)
			require.Equal(t, ops.Finished, res.Status, "%+v", res.Reasons)
			sound(t, fl, s.Table)
			require.Len(t, dataFiles(s.Table), 1)
			require.Empty(t, deleteFiles(s.Table))
		})
	}
}

// A v1 snapshot that names its manifests itself does not say of which spec they
// are.
func TestF084EmbeddedManifestsOfALaterSpecAreCompacted(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := scene(t, fl, model.Config{Version: 1, EmbeddedManifests: true})
	s.Respec("bucket[4](id)")
	small(s, 1, 3, 1, "eu")
	s.Respec("region")
	small(s, 10, 3, 2, "eu")
	res, err := runTools(t.Context(), fl, realTools(), nil)
	require.NoError(t, err)
	require.Equal(t, ops.Finished, res.Status, "%+v", res.Reasons)
	sound(t, fl, s.Table)
}
