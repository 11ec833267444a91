package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/internal/measure"
)

// memoryBound is what a compaction may need beyond an idle process.
const memoryBound = 256 << 20

// TestCompactionInBoundedMemory compacts tables with the program as it is shipped
// and looks at its peak resident memory, less that of one that only looks.
func TestCompactionInBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("compacts large tables on a cluster")
	}
	if _, err := cluster.Weed(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			require.NoError(t, err)
		}
		t.Skipf("no weed: %v", err)
	}
	if measure.Plain(t) {
		return
	}
	t.Cleanup(func() { require.NoError(t, data.remove()) })
	l, err := openLake(t.Context())
	require.NoError(t, err)
	t.Cleanup(l.close)
	root, err := cluster.Root()
	require.NoError(t, err)
	bin := filepath.Join(t.TempDir(), "seaice")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/seaice")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	idle, said, err := peakOf(t.Context(), bin, "tables", "--filer", l.Filer, "--security", l.Security)
	require.NoError(t, err, said)
	for name, c := range map[string]struct {
		shape shape
		table func(ctx context.Context, l *lake, s *stored) (*recipe, error)
		// refused is allowed with this text, which has the number.
		refused string
	}{
		"large files":          {distinct(8, 4*dataRows), appended, ""},
		"small files":          {small(smallFiles, smallRows), appended, ""},
		"more small files":     {small(2*smallFiles, smallRows), appended, ""},
		"2000 columns":         {wide(8, 500, 2000), appended, ""},
		"10 million keys":      {distinct(8, 10_000), withManyKeys, "MB"},
		"positions everywhere": {distinct(8, dataRows), withPositionDeletes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := l.fill(t.Context(), c.shape, c.table)
			require.NoError(t, err)
			id, err := l.cook(t.Context(), a.recipe)
			require.NoError(t, err)
			peak, said, err := peakOf(t.Context(), bin, "run", "compact", "--filer", l.Filer, "--security", l.Security, "--table", id.String(), "--yes")
			t.Logf("idle %d MiB, peak %d MiB: %s", idle>>20, peak>>20, lastLine(said))
			require.Less(t, peak-idle, int64(memoryBound))
			if err != nil && c.refused != "" {
				require.Contains(t, said, "too large")
				require.Contains(t, said, c.refused)
				return
			}
			require.NoError(t, err, said)
			require.NoError(t, l.merged(t.Context(), id, a.recipe))
			require.NoError(t, l.drop(t.Context(), id))
		})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// peakOf runs the program and returns the most memory that it had resident, as
// seen every few milliseconds, and what it said.
func peakOf(ctx context.Context, bin string, args ...string) (int64, string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var peak int64
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil {
			if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
				kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				peak = max(peak, kb<<10)
			}
		}
		select {
		case err := <-done:
			return peak, out.String(), err
		case <-tick.C:
		}
	}
}

// withManyKeys deletes by ten million keys, of which the table has one in a
// hundred of its rows.
func withManyKeys(ctx context.Context, l *lake, s *stored) (*recipe, error) {
	const keys, perFile = 10_000_000, 2_500_000
	as, err := icetable.SchemaToArrowSchema(icego.NewSchema(0, s.schema.Field(0)), nil, true, false)
	if err != nil {
		return nil, err
	}
	var files []icego.DataFile
	gone := s.rows / 100
	for n := range keys / perFile {
		b := array.NewRecordBuilder(memory.DefaultAllocator, as)
		for i := range int64(perFile) {
			key := 1_000_000_000 + int64(n)*perFile + i*7%perFile
			if n == 0 && i < gone {
				key = 1 + i*100
			}
			b.Field(0).(*array.Int64Builder).Append(key)
		}
		rec := b.NewRecordBatch()
		at := s.dir.Join(fmt.Sprintf("eq-%d.parquet", n))
		size, err := l.put(ctx, at, rec)
		rec.Release()
		b.Release()
		if err != nil {
			return nil, err
		}
		d, err := icego.NewDataFileBuilder(*icego.UnpartitionedSpec, icego.EntryContentEqDeletes, location(at), icego.ParquetFile, nil, nil, nil, perFile, size)
		if err != nil {
			return nil, err
		}
		files = append(files, d.EqualityFieldIDs([]int{1}).Build())
	}
	return new(recipe).add(s).remove(files, gone), nil
}
