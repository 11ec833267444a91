package rewritemanifests

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// TestGoldenPlans runs the stories in testdata: what there is, a line a kind of
// manifest, and below ---- what is planned and what is left alone. With
// SEAICE_GOLDEN=rewrite the expectations are written anew.
//
//	<n> x <size in KB> [<lower>..<upper>] [dead <share in %>]
func TestGoldenPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var out []string
		for story := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
			given, want, _ := strings.Cut(story+"\n", "----\n")
			got := tell(t, given)
			out = append(out, given+"----\n"+got)
			if os.Getenv("SEAICE_GOLDEN") != "rewrite" {
				require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), "%s\n%s", file, given)
			}
		}
		if os.Getenv("SEAICE_GOLDEN") == "rewrite" {
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(out, "\n")), 0o600))
		}
	}
}

func tell(t *testing.T, given string) string {
	t.Helper()
	p := &Plan{target: 8 << 20}
	least := 5
	field := iceberg.PartitionField{ID: 1000, Name: "region", Transform: icego.IdentityTransform{}, SourceIDs: []iceberg.FieldID{1}, Result: icego.PrimitiveTypes.String}
	pt := &iceberg.PartitionType{Fields: []iceberg.PartitionField{field}}
	var all []*manifests.ManifestFile
	for line := range strings.SplitSeq(strings.TrimSpace(given), "\n") {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case words[0] == "unpartitioned":
			pt.Fields = nil
		case words[0] == "least":
			least = number(t, words[1])
		default:
			for range number(t, words[0]) {
				m := &manifests.ManifestFile{
					Path: fmt.Sprintf("m%d", len(all)), Length: int64(number(t, words[2])) << 10,
					AddedFiles: manifests.Some(int64(0)), ExistingFiles: manifests.Some(int64(100)), DeletedFiles: manifests.Some(int64(0)),
				}
				for i, w := range words[3:] {
					if lower, upper, ok := strings.Cut(w, ".."); ok {
						s := manifests.FieldSummary{Lower: []byte(lower), Upper: []byte(upper)}
						if lower == "null" {
							s.ContainsNull, s.Lower = true, []byte(upper)
						}
						m.Partitions = []manifests.FieldSummary{s}
					}
					if w == "dead" {
						dead := int64(number(t, words[4+i]))
						m.ExistingFiles, m.DeletedFiles = manifests.Some(100-dead), manifests.Some(dead)
					}
				}
				all = append(all, m)
			}
		}
	}
	p.group(groupKey{0, manifests.DataManifest}, pt, all, least)
	var b strings.Builder
	for _, g := range p.groups {
		why := map[string]int{}
		for _, in := range g.Inputs {
			why[in.Why]++
		}
		fmt.Fprintf(&b, "rewrite %d of %d manifests into %d:", len(g.Inputs), len(all), g.Outputs)
		for _, w := range []string{whySmall, whyLarge, whyOverlaps} {
			if why[w] > 0 {
				fmt.Fprintf(&b, " %d %s", why[w], w)
			}
		}
		if g.Clustered {
			b.WriteString(", sorted by partition")
		}
		b.WriteString("\n")
	}
	for _, r := range p.header.Reasons {
		fmt.Fprintf(&b, "left alone, %s: %d %s: %s\n", r.Code, r.Count, r.Subject, r.Text)
	}
	return b.String()
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
