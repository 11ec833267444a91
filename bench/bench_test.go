package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/manifests"
)

func TestNamesAndUnitsFitOnALine(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range benches() {
		require.NotEmpty(t, b.Name)
		require.NotEmpty(t, b.Unit, b.Name)
		require.False(t, strings.ContainsAny(b.Name+b.Unit, " ,\t\n"), b.Name)
		require.False(t, seen[b.Name], "%s twice", b.Name)
		seen[b.Name] = true
	}
}

// Both sides must have the same work: the same files, with the same fields.
func TestBothSidesReadTheSameManifest(t *testing.T) {
	const files = 300
	in, err := newManifestInput(files)
	require.NoError(t, err)
	r, err := icego.NewManifestReader(in.peer, bytes.NewReader(in.data))
	require.NoError(t, err)
	n := 0
	for e, err := range manifests.ReadManifest(t.Context(), bytes.NewReader(in.data), in.ours, manifests.ReadOptions{}) {
		require.NoError(t, err)
		p, err := r.ReadEntry()
		require.NoError(t, err)
		df := p.DataFile()
		require.Equal(t, df.FilePath(), e.Path)
		require.Equal(t, df.Count(), e.Records)
		require.Equal(t, p.SequenceNum(), int64(e.DataSeq.Or(-1)))
		require.Len(t, e.Lower, manifestColumns)
		for _, b := range e.Lower {
			require.Equal(t, df.LowerBoundValues()[int(b.Column)], b.Value)
		}
		n++
	}
	require.Equal(t, files, n)
	require.NoError(t, r.Close())
}

func TestStreamsCountTheFiles(t *testing.T) {
	in, err := newManifestInput(50)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.avro")
	require.NoError(t, os.WriteFile(path, in.data, 0o600))
	for _, name := range []string{streamOurs, streamPeer} {
		work := children[name]
		require.NoError(t, work(t.Context(), []string{path, "50"}), name)
		require.ErrorContains(t, work(t.Context(), []string{path, "51"}), "saw 50 of "+strconv.Itoa(51), name)
		require.Error(t, work(t.Context(), []string{path}), name)
		require.Error(t, work(t.Context(), []string{path + "x", "50"}), name)
	}
}
