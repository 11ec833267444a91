package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/bench/harness"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

const (
	manifestFiles = 20_000
	// manifestManyFiles is for memory: a reader that streams does not need more
	// for it than for a few.
	manifestManyFiles = 200_000
)

// manifestReadFull decodes every field of every entry of one manifest in
// memory. Peer: iceberg-go's streaming reader.
func manifestReadFull() harness.Bench {
	return manifestRead("manifest_read_full", manifests.ProjectAll, func(in *manifestInput) (*icego.ManifestReader, error) {
		return icego.NewManifestReader(in.peer, bytes.NewReader(in.data))
	})
}

// manifestReadProjected decodes what choosing files needs, without statistics.
// Peer: iceberg-go's projected reader.
func manifestReadProjected() harness.Bench {
	return manifestRead("manifest_read_projected", manifests.ProjectPath|manifests.ProjectPartition,
		func(in *manifestInput) (*icego.ManifestReader, error) {
			return icego.NewManifestReaderWithProjection(in.peer, bytes.NewReader(in.data), icego.ManifestEntryProjection{})
		})
}

func manifestRead(name string, want manifests.Projection, open func(*manifestInput) (*icego.ManifestReader, error)) harness.Bench {
	return harness.Bench{Name: name, Unit: "files/s", Prepare: func(context.Context) (*harness.Contest, error) {
		in, err := newManifestInput(manifestFiles)
		if err != nil {
			return nil, err
		}
		return &harness.Contest{
			Ours: harness.Rate(manifestFiles, func(ctx context.Context) error {
				return readOurs(ctx, bytes.NewReader(in.data), in.ours, want, manifestFiles)
			}),
			Peer: harness.Rate(manifestFiles, func(context.Context) error {
				r, err := open(in)
				if err != nil {
					return err
				}
				return readPeer(r, manifestFiles)
			}),
		}, nil
	}}
}

// readOurs reads a manifest to its end and checks that it saw every file.
func readOurs(ctx context.Context, in io.Reader, m *manifests.ManifestFile, want manifests.Projection, files int) error {
	seen := 0
	for e, err := range manifests.ReadManifest(ctx, in, m, manifests.ReadOptions{Projection: want}) {
		if err != nil {
			return err
		}
		if e.Path != "" {
			seen++
		}
	}
	return all(seen, files)
}

// readPeer is readOurs for the peer.
func readPeer(r *icego.ManifestReader, files int) error {
	seen := 0
	for {
		e, err := r.ReadEntry()
		if errors.Is(err, io.EOF) {
			return errors.Join(all(seen, files), r.Close())
		}
		if err != nil {
			return err
		}
		if e.DataFile().FilePath() != "" {
			seen++
		}
	}
}

func all(seen, files int) error {
	if seen != files {
		return fmt.Errorf("saw %d of %d files", seen, files)
	}
	return nil
}

// The works of peakMemoryManifestStream; args are the manifest's file and the
// number of data files in it.
const (
	streamOurs = "manifest_stream_ours"
	streamPeer = "manifest_stream_peer"
)

// peakMemoryManifestStream reads every field of a manifest of many files from
// local disk, in a process of its own. Peer: iceberg-go's function that returns
// a manifest's entries, which is what its own operations call.
func peakMemoryManifestStream() harness.Bench {
	return harness.Bench{Name: "peak_memory_manifest_stream", Unit: "MB", Better: harness.Lower, Runs: 3,
		Prepare: func(context.Context) (*harness.Contest, error) {
			in, err := newManifestInput(manifestManyFiles)
			if err != nil {
				return nil, err
			}
			f, err := os.CreateTemp("", "seaice-bench-*.avro")
			if err != nil {
				return nil, err
			}
			_, err = f.Write(in.data)
			remove := func() { _ = os.Remove(f.Name()) }
			if err := errors.Join(err, f.Close()); err != nil {
				remove()
				return nil, err
			}
			files := strconv.Itoa(manifestManyFiles)
			return &harness.Contest{
				Ours:  harness.PeakMemory(streamOurs, f.Name(), files),
				Peer:  harness.PeakMemory(streamPeer, f.Name(), files),
				Close: remove,
			}, nil
		}}
}

func streamManifest(args []string, read func(f *os.File, size int64, files int) error) error {
	if len(args) != 2 {
		return fmt.Errorf("want a file and the number of files in it, got %q", args)
	}
	files, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return read(f, info.Size(), files)
}

func streamManifestOurs(ctx context.Context, args []string) error {
	return streamManifest(args, func(f *os.File, size int64, files int) error {
		m := &manifests.ManifestFile{
			Path: f.Name(), Length: size, Content: manifests.DataManifest,
			Seq: manifests.Some[iceberg.SeqNum](manifestSeq), SnapshotID: manifests.Some[iceberg.SnapshotID](manifestSnapshot),
		}
		return readOurs(ctx, f, m, manifests.ProjectAll, files)
	})
}

func streamManifestPeer(_ context.Context, args []string) error {
	return streamManifest(args, func(f *os.File, size int64, files int) error {
		m := icego.NewManifestFile(2, f.Name(), size, 0, manifestSnapshot).SequenceNum(manifestSeq, manifestSeq).Build()
		entries, err := icego.ReadManifest(m, f, false)
		if err != nil {
			return err
		}
		return all(len(entries), files)
	})
}
