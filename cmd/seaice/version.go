package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildVersion and buildRevision are set by the linker: git describe and the
// commit. A plain go build leaves them empty, and the build info fills in.
var buildVersion, buildRevision string

// notable are the modules whose version matters when a problem is reported.
var notable = []string{
	"github.com/seaweedfs/seaweedfs",
	"github.com/apache/iceberg-go",
	"github.com/apache/arrow-go/v18",
	"github.com/parquet-go/parquet-go",
	"github.com/RoaringBitmap/roaring/v2",
	"github.com/klauspost/compress",
	"github.com/pierrec/lz4/v4",
	"github.com/andybalholm/brotli",
}

// versions is what seaice version prints.
type versions struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// Modified: the source tree differed from the revision. Known only without
	// a linked version, which says so itself ("-dirty").
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	// Modules are the notable ones that are linked into this binary.
	Modules []moduleVersion `json:"modules"`
}

type moduleVersion struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// versionsOf combines what the linker was told with what the build recorded.
func versionsOf(version, revision string, info *debug.BuildInfo) versions {
	v := versions{Version: version, Revision: revision, Go: runtime.Version(), Modules: []moduleVersion{}}
	if info == nil {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && v.Revision == "":
			v.Revision = s.Value
		case s.Key == "vcs.modified" && version == "":
			v.Modified = s.Value == "true"
		}
	}
	linked := map[string]*debug.Module{}
	for _, m := range info.Deps {
		linked[m.Path] = m
	}
	for _, path := range notable {
		m, ok := linked[path]
		if !ok {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		v.Modules = append(v.Modules, moduleVersion{path, m.Version})
	}
	return v
}

func (v versions) text(w io.Writer) {
	fmt.Fprintf(w, "seaice %s\nrevision %s\n%s\n", orUnknown(v.Version), orUnknown(v.Revision), v.Go)
	for _, m := range v.Modules {
		fmt.Fprintf(w, "%s %s\n", m.Path, m.Version)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of what it is built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			v := versionsOf(buildVersion, buildRevision, info)
			return c.emit(v, v.text)
		},
	}
}
