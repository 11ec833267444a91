// Demo shows maintenance of a real table on a real SeaweedFS, from nothing to
// result: it starts a cluster and its admin on loopback, writes two tables of
// many small files and deletes through the Iceberg REST catalog, lets the admin
// schedule a seaice worker on them, and compares them before and after with
// iceberg-go.
//
// The last line is one JSON object. Everything that was started is stopped and
// removed, whatever happens.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// summary is the last line.
type summary struct {
	RowsEqual         bool    `json:"rows_equal"`
	FilesBefore       int     `json:"files_before"`
	FilesAfter        int     `json:"files_after"`
	DeleteFilesBefore int     `json:"delete_files_before"`
	DeleteFilesAfter  int     `json:"delete_files_after"`
	BytesBefore       int64   `json:"bytes_before"`
	BytesAfter        int64   `json:"bytes_after"`
	SnapshotsBefore   int     `json:"snapshots_before"`
	SnapshotsAfter    int     `json:"snapshots_after"`
	ManifestsBefore   int     `json:"manifests_before"`
	ManifestsAfter    int     `json:"manifests_after"`
	FilesTrashed      int     `json:"files_trashed"`
	JobState          string  `json:"job_state"`
	Worker            string  `json:"worker"`
	Seconds           float64 `json:"seconds"`
}

func main() {
	commits := flag.Int("commits", 210, "commits to write the larger table with")
	keep := flag.Bool("keep", false, "leave the directory with data and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	start := time.Now()
	s, err := demo(ctx, *commits, *keep)
	s.Seconds = time.Since(start).Round(100 * time.Millisecond).Seconds()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	line, _ := json.Marshal(s)
	fmt.Println(string(line))
	if err != nil || !s.RowsEqual || s.JobState != "succeeded" {
		os.Exit(1)
	}
}
