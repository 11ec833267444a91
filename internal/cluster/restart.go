package cluster

import (
	"context"
	"errors"
	"strconv"
)

var errNotSplit = errors.New("the filer is no process of its own; start the cluster with Split")

// KillFiler ends the filer, and the gateways in its process, at once and
// without warning, as a crash does.
func (c *Cluster) KillFiler() error {
	p := c.procs["filer"]
	if p == nil {
		return errNotSplit
	}
	p.kill()
	delete(c.procs, "filer")
	return nil
}

// StartFiler starts the filer of a split cluster with what it has stored, and
// waits until it serves.
func (c *Cluster) StartFiler(ctx context.Context) error {
	if !c.opts.Split {
		return errNotSplit
	}
	args := []string{
		"filer", "-ip=" + host, "-ip.bind=" + host, "-port=" + strconv.Itoa(c.ports.filer), "-master=" + c.Master,
		"-defaultStoreDir=" + c.path("filer"), "-localSocket=f.sock",
	}
	if c.opts.EncryptVolumes {
		args = append(args, "-encryptVolumeData")
	}
	if c.opts.S3 {
		args = append(args, "-s3", "-s3.port="+strconv.Itoa(c.ports.s3), "-s3.port.iceberg="+strconv.Itoa(c.ports.rest),
			"-s3.port.lance=0", "-s3.localSocket=s3.sock")
	}
	if err := c.run("filer", args...); err != nil {
		return err
	}
	return c.serving(ctx, "filer")
}

// Restart stops the servers, but not the admin, and starts them with what they
// have stored.
func (c *Cluster) Restart(ctx context.Context) error {
	for _, name := range []string{"filer", "server", "volume", "master"} {
		c.stop(name)
	}
	return c.startServers(ctx)
}

// StartAdmin starts the admin and waits until it answers.
func (c *Cluster) StartAdmin(ctx context.Context) error {
	err := c.run("admin", "admin", "-ip="+host, "-port="+strconv.Itoa(c.ports.admin), "-port.legacy=0",
		"-master="+c.Master, "-iceberg.port="+strconv.Itoa(c.ports.rest), "-dataDir="+c.path("admin"))
	if err != nil {
		return err
	}
	return c.procs["admin"].wait(ctx, "the admin", func(ctx context.Context) error { return answers(ctx, c.Admin+"/api/plugin/status") })
}

// StopAdmin ends the admin.
func (c *Cluster) StopAdmin() { c.stop("admin") }

// RestartAdmin ends the admin and starts it with what it has stored.
func (c *Cluster) RestartAdmin(ctx context.Context) error {
	c.stop("admin")
	return c.StartAdmin(ctx)
}

// StopVolume ends the volume server of a split cluster.
func (c *Cluster) StopVolume() error {
	if c.procs["volume"] == nil {
		return errNotSplit
	}
	c.stop("volume")
	return nil
}

// StartVolume starts the volume server of a split cluster with what it has
// stored and waits until chunks can be stored again.
func (c *Cluster) StartVolume(ctx context.Context) error {
	if !c.opts.Split {
		return errNotSplit
	}
	if err := c.runVolume(); err != nil {
		return err
	}
	return c.procs["volume"].wait(ctx, "the volume server", c.filerAnswers)
}

func (c *Cluster) runVolume() error {
	return c.run("volume", "volume", "-port="+strconv.Itoa(c.ports.volume), "-ip="+host, "-ip.bind="+host,
		"-dir="+c.path("data"), "-max=0", "-master="+c.Master)
}

// StartWorker starts weed's own worker for Iceberg maintenance.
func (c *Cluster) StartWorker() error {
	return c.run("worker", "worker", "-admin="+address(c.ports.admin), "-jobType=iceberg", "-id=builtin", "-workingDir="+c.path("worker"))
}

// StopWorker ends weed's own worker.
func (c *Cluster) StopWorker() { c.stop("worker") }
