package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
)

var tableID = iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "events"}

func deepCheck(t *testing.T, fl *filertest.Filer, id iceberg.TableID) *check.Report {
	t.Helper()
	rep, err := check.Named(t.Context(), fl, id, check.Options{Deep: true})
	require.NoError(t, err)
	return rep
}

// worse are the findings that are no notes, but for the one that the literals of
// iceberg-go, which the model uses, earn rightly.
func worse(rep *check.Report) []string {
	var out []string
	for _, f := range rep.Findings {
		if f.Severity != check.Note && !strings.HasSuffix(f.Text, "empty text, for which the list has null") {
			out = append(out, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Subject, f.Text))
		}
	}
	return out
}

// seeds is how many random tables are checked; SEAICE_CHECK_SEEDS raises it.
func seeds(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("SEAICE_CHECK_SEEDS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	return uint64(measure.Rounds(40))
}

func TestCleanRandomTables(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			g, err := model.Random(t.Context(), fl, seed, model.RandomOptions{Config: model.Config{ID: tableID, Clock: fl.Virtual()}})
			require.NoError(t, err)
			rep := deepCheck(t, fl, tableID)
			require.Empty(t, worse(rep), "seed %d\n%s", seed, strings.Join(g.Log, "\n"))
			require.True(t, rep.Clean())
			require.Positive(t, rep.Stats.Snapshots)
		})
	}
}

// TestCleanStyles checks tables with every kind of delete in the manner of every
// known writer, iceberg-go included.
func TestCleanStyles(t *testing.T) {
	styles := map[string]model.Style{
		"plain": model.Plain, "iceberg-go": model.IcebergGo, "ours": model.Ours, "java": model.JavaLike, "duckdb": model.DuckDBLike,
		"legacy": model.LegacyJava, "null-counts": {NullCounts: true}, "null-summaries": {NullSummaries: true}, "labels": {DeletesAsData: true},
		"unknown-field": {UnknownField: true}, "zstd": {Codec: "zstandard"},
	}
	for name, style := range styles {
		for version := 1; version <= 3; version++ {
			t.Run(fmt.Sprintf("%s-v%d", name, version), func(t *testing.T) {
				fl := filertest.New(filertest.Options{})
				scene(t, fl, version, style)
				rep := deepCheck(t, fl, tableID)
				require.Empty(t, worse(rep))
				require.Equal(t, int64(0), rep.Omitted)
			})
		}
	}
}

// scene is a table with several snapshots, a second spec, and every delete its
// version has.
func scene(t *testing.T, fl *filertest.Filer, version int, style model.Style) *model.Scene {
	t.Helper()
	s := model.NewScene(t, fl, model.Config{
		ID: tableID, Version: version, Style: style, Spec: "part",
		Schema: model.Columns(t, "id long!, part string, x double, name string"),
	})
	f := s.File(s.R(1, "a", 1.5, "one"), s.R(2, "a", 2.5, "two"), s.R(3, "a", nil, nil))
	s.Append(s.R(4, "b", -1.0, "four"), s.R(5, nil, 0.0, "five"))
	if version > 1 {
		s.DeleteAt(f, 1)
		s.EqualityDelete([]string{"id"}, s.R(4, "b", nil, nil))
	}
	s.Respec("bucket[4](id)")
	s.Append(s.R(6, "c", 7.0, "six"), s.R(7, "d", 8.0, "seven"))
	s.Overwrite(s.By("id", 6), s.R(8, "c", 9.0, "eight"))
	s.Tag("kept")
	return s
}

func dump(rep *check.Report) string {
	b, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}
