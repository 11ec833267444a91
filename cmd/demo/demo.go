package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	icetable "github.com/apache/iceberg-go/table"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/trash"
)

const (
	bucket    = "lake"
	namespace = "demo"
	workerID  = "seaice-demo"
)

func demo(ctx context.Context, commits int, keep bool) (s summary, err error) {
	s.Worker = workerID
	dir, err := os.MkdirTemp("", "seaice-demo-")
	if err != nil {
		return s, err
	}
	defer func() {
		if keep {
			say("data and logs are in %s", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	bin, err := build(ctx, dir)
	if err != nil {
		return s, err
	}
	say("starting SeaweedFS and its admin on loopback (%s) ...", dir)
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Admin: true, S3: true, Bucket: bucket})
	if err != nil {
		return s, err
	}
	defer c.Stop()
	say("admin %s, REST catalog %s", c.Admin, c.REST)

	cat, err := open(ctx, c)
	if err != nil {
		return s, err
	}
	if err := cat.CreateNamespace(ctx, icetable.Identifier{namespace}, nil); err != nil {
		return s, err
	}
	names := map[string]bool{}
	for _, w := range writers() {
		say("writing table %s/%s/%s, format %d, in %d commits ...", bucket, namespace, w.name, w.version, commits/w.share)
		if err := w.write(ctx, cat, commits); err != nil {
			return s, fmt.Errorf("write table %s: %w", w.name, err)
		}
		names[bucket+"/"+namespace+"/"+w.name] = true
	}
	before, err := look(ctx, cat)
	if err != nil {
		return s, fmt.Errorf("read the tables before: %w", err)
	}
	s.SnapshotsBefore, s.ManifestsBefore = before.snapshots, before.manifests
	s.FilesBefore, s.DeleteFilesBefore, s.BytesBefore = before.files, before.deletes, before.bytes

	w, err := startWorker(bin, dir, c)
	if err != nil {
		return s, err
	}
	defer w.stop()
	a := admin{base: c.Admin}
	if err := a.enable(ctx); err != nil {
		return s, fmt.Errorf("enable the job type: %w", err)
	}
	say("job type enabled; waiting for the admin to schedule the worker ...")
	jobs, err := a.follow(ctx, names)
	s.JobState = worst(jobs)
	if err != nil {
		return s, fmt.Errorf("follow the jobs (see %s): %w", filepath.Join(dir, "seaice.log"), err)
	}
	for _, job := range jobs {
		say("job of %s %s: %s", job.Table, job.State, job.Message)
		for _, x := range job.Activities {
			say("  %s", x)
		}
	}
	after, err := look(ctx, cat)
	if err != nil {
		return s, fmt.Errorf("read the tables after: %w", err)
	}
	s.SnapshotsAfter, s.ManifestsAfter = after.snapshots, after.manifests
	s.FilesAfter, s.DeleteFilesAfter, s.BytesAfter = after.files, after.deletes, after.bytes
	s.RowsEqual = before.rows == after.rows && before.digest == after.digest
	if s.FilesTrashed, err = trashed(ctx, c); err != nil {
		return s, err
	}
	compare(before, after, s)
	return s, nil
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func compare(b, a state, s summary) {
	say("")
	say("%-22s %10s    %10s", "", "before", "after")
	say("%-22s %10d -> %10d", "snapshots", b.snapshots, a.snapshots)
	say("%-22s %10d -> %10d", "manifests at head", b.manifests, a.manifests)
	say("%-22s %10d -> %10d", "data files at head", b.files, a.files)
	say("%-22s %10d -> %10d", "deletes at head", b.deletes, a.deletes)
	say("%-22s %10d -> %10d", "bytes at head", b.bytes, a.bytes)
	say("%-22s %10d -> %10d", "rows at head", b.rows, a.rows)
	say("%-22s %10s -> %10s", "time to plan a query", b.planning.Round(time.Millisecond), a.planning.Round(time.Millisecond))
	say("%-22s %24d", "files in the trash", s.FilesTrashed)
	say("%-22s %24t", "rows equal", s.RowsEqual)
	say("")
}

// build makes the seaice binary that a user would run.
func build(ctx context.Context, dir string) (string, error) {
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "seaice")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/seaice")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build seaice: %w\n%s", err, out)
	}
	return bin, nil
}

// process is a child that is stopped by its pid.
type process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
}

func startWorker(bin, dir string, c *cluster.Cluster) (*process, error) {
	log, err := os.Create(filepath.Join(dir, "seaice.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bin, "worker", "--admin", strings.TrimPrefix(c.Admin, "http://"), "--id", workerID, "--security", c.Security)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ends its log says
	}()
	return p, nil
}

// stop asks the worker to end, and kills it if it does not.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	}
	_ = p.log.Close() // written by the child
}

// trashed counts the files in the bucket's trash.
func trashed(ctx context.Context, c *cluster.Cluster) (int, error) {
	fl, err := filer.Dial(ctx, filer.Config{Addresses: []string{c.Filer}, Security: c.Security})
	if err != nil {
		return 0, err
	}
	defer fl.Close()
	t, err := trash.New(fl, clock.System(), trash.Options{})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, err := range t.List(ctx, bucket) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
