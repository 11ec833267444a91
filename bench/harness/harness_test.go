package harness

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// children are what the tests run in processes of their own.
var children = Children{
	"allocate": func(_ context.Context, args []string) error {
		if args[0] != "64MB" {
			return errors.New("wrong argument " + args[0])
		}
		b := make([]byte, 64<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		return nil
	},
	"fail": func(context.Context, []string) error { return errors.New("no") },
}

func TestMain(m *testing.M) {
	children.Main(context.Background())
	os.Exit(m.Run())
}

// steady returns the figures in turn, the first of which warms up.
func steady(log *[]string, name string, figures ...float64) Side {
	return func(context.Context) (float64, error) {
		*log = append(*log, name)
		f := figures[0]
		figures = figures[1:]
		return f, nil
	}
}

func TestSidesTakeTurnsAndMediansCount(t *testing.T) {
	var log []string
	b := Bench{Name: "x", Unit: "MB/s", Runs: 3, Prepare: func(context.Context) (*Contest, error) {
		return &Contest{
			Ours:  steady(&log, "ours", 9999, 300, 100, 200),
			Peer:  steady(&log, "peer", 9999, 10, 20, 400),
			Close: func() { log = append(log, "closed") },
		}, nil
	}}
	r, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ours peer peer ours ours peer peer ours closed", strings.Join(log, " "))
	require.Equal(t, "BENCH x 200 20.0 MB/s ratio=10.0 n=3", r.Line())
}

func TestRatioOfACostIsTurnedRound(t *testing.T) {
	r := Result{Bench: Bench{Name: "m", Unit: "MB", Better: Lower}, Ours: []float64{50, 40}, Peer: []float64{90}}
	require.Equal(t, "BENCH m 45.0 90.0 MB ratio=2.00 n=2", r.Line())
}

func TestNoPeer(t *testing.T) {
	r := Result{Bench: Bench{Name: "m", Unit: "files/s"}, Ours: []float64{1234567}}
	require.Equal(t, "BENCH m 1234567 - files/s ratio=- n=1", r.Line())
}

func TestFiguresKeepThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{1234.5: "1234", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.87123: "0.871", 0.00123: "0.00123"} {
		require.Equal(t, want, figure(v))
	}
}

func TestOneFailureDoesNotEndTheRest(t *testing.T) {
	var log []string
	bad := Bench{Name: "bad", Prepare: func(context.Context) (*Contest, error) { return nil, errors.New("no disk") }}
	idle := Bench{Name: "idle", Prepare: func(context.Context) (*Contest, error) { return &Contest{Ours: steady(&log, "o", 0)}, nil }}
	good := Bench{Name: "good", Unit: "u", Runs: 1, Prepare: func(context.Context) (*Contest, error) {
		return &Contest{Ours: steady(&log, "o", 1, 2)}, nil
	}}
	var out strings.Builder
	err := RunAll(t.Context(), &out, []Bench{bad, idle, good})
	require.ErrorContains(t, err, "bench bad: prepare: no disk")
	require.ErrorContains(t, err, "bench idle: ours, run 0: a figure of 0")
	require.Equal(t, "BENCH good 2.00 - u ratio=- n=1\n", out.String())
}

func TestSelect(t *testing.T) {
	all := []Bench{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	got, err := Select(all, "c,a")
	require.NoError(t, err)
	require.Equal(t, []string{"c", "a"}, []string{got[0].Name, got[1].Name})
	got, err = Select(all, "")
	require.NoError(t, err)
	require.Len(t, got, 3)
	_, err = Select(all, "a,d")
	require.ErrorContains(t, err, `no bench "d"`)
}

func TestChildIsMeasured(t *testing.T) {
	peak, err := PeakMemory("allocate", "64MB")(t.Context())
	require.NoError(t, err)
	require.Greater(t, peak, 64.0)
	require.Less(t, peak, 300.0)

	_, err = InChild(t.Context(), "fail")
	require.ErrorContains(t, err, "child fail")
	_, err = InChild(t.Context(), "unheard of")
	require.Error(t, err)
}

func TestRateMeasures(t *testing.T) {
	f, err := Rate(10, func(context.Context) error { return nil })(t.Context())
	require.NoError(t, err)
	require.Positive(t, f)
}
