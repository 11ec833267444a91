package model_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

// seeds is how many histories are tried; SEAICE_MODEL_SEEDS raises it.
func seeds(t *testing.T) (from, to uint64) {
	t.Helper()
	if text := os.Getenv("SEAICE_MODEL_SEEDS"); text != "" {
		a, b, ok := strings.Cut(text, "-")
		if !ok {
			a, b = "0", a
		}
		from, err := strconv.ParseUint(a, 10, 64)
		require.NoError(t, err)
		to, err := strconv.ParseUint(b, 10, 64)
		require.NoError(t, err)
		return from, to
	}
	return 0, 60
}

func TestRandomHistoriesReadAsTheModelSays(t *testing.T) {
	from, to := seeds(t)
	for seed := from; seed < to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			o := model.RandomOptions{Config: model.Config{
				ID: iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "random"}, Clock: fl.Virtual(),
			}}
			g, err := model.Random(t.Context(), fl, seed, o)
			if err == nil {
				err = model.Check(t.Context(), g.Table)
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(g.Log, "\n"))
			}
		})
	}
}
