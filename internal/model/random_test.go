package model_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
)

// history makes the random history of a seed and checks it. The error tells
// the seed and every step.
func history(ctx context.Context, seed uint64, o model.RandomOptions) error {
	fl := filertest.New(filertest.Options{})
	o.Config = model.Config{ID: iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "random"}, Clock: fl.Virtual()}
	g, err := model.Random(ctx, fl, seed, o)
	if err == nil {
		err = model.Check(ctx, g.Table)
	}
	if err == nil {
		return nil
	}
	var log []string
	if g != nil {
		log = g.Log
	}
	return fmt.Errorf("seed %d: %w\n%s", seed, err, strings.Join(log, "\n"))
}

// seeds are the histories to try: 50, or SEAICE_MODEL_SEEDS ("200" or "50-200").
func seeds(t *testing.T) (from, to uint64) {
	t.Helper()
	text := os.Getenv("SEAICE_MODEL_SEEDS")
	if text == "" {
		return 0, uint64(measure.Rounds(50))
	}
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		a, b = "0", a
	}
	from, err := strconv.ParseUint(a, 10, 64)
	require.NoError(t, err)
	to, err = strconv.ParseUint(b, 10, 64)
	require.NoError(t, err)
	return from, to
}

func TestRandomHistoriesReadAsTheModelSays(t *testing.T) {
	from, to := seeds(t)
	for seed := from; seed < to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			require.NoError(t, history(t.Context(), seed, model.RandomOptions{}))
		})
	}
}

// The same with nested columns that change and files of many layouts.
func TestVariedHistoriesReadAsTheModelSays(t *testing.T) {
	from, to := seeds(t)
	for seed := from; seed < to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			require.NoError(t, history(t.Context(), seed, model.RandomOptions{Varied: true, Rows: 20}))
		})
	}
}

// TestProofRandomHistories tries new and longer histories for SEAICE_PROOF.
func TestProofRandomHistories(t *testing.T) {
	text := os.Getenv("SEAICE_PROOF")
	if text == "" {
		t.Skip("a long proof; SEAICE_PROOF says how long")
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err)
	clk := clock.System()
	start := clk.Now()
	seed, n := uint64(start.UnixNano()), 0
	for clk.Now().Sub(start) < length {
		require.NoError(t, history(t.Context(), seed+uint64(n), model.RandomOptions{Steps: 30, Rows: 20}))
		n++
	}
	t.Logf("%d histories of 30 steps from seed %d in %s", n, seed, clk.Now().Sub(start).Round(time.Second))
}
