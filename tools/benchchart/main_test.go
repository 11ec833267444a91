package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChartHasABarForEachRatio(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(strings.NewReader(`# text
    BENCH fast 100 10 MB/s ratio=10 n=3
    BENCH slow<1 5 10 MB/s per core ratio=0.5 n=3
    BENCH alone 5 - MB/s ratio=- n=3
`), &out))
	require.Equal(t, 3, strings.Count(out.String(), "<rect"), "the ground and two bars")
	require.Contains(t, out.String(), "slow&lt;1")
	require.Contains(t, out.String(), "0.5x  (5 against 10 MB/s per core)")
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
}

func TestChartOfNothingIsAnError(t *testing.T) {
	require.ErrorContains(t, run(strings.NewReader("no lines"), io.Discard), "no BENCH line")
	require.ErrorContains(t, run(strings.NewReader("BENCH a 1 2 u ratio=x n=1"), io.Discard), "not a positive number")
}
