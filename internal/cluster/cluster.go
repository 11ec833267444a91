// Package cluster runs a real SeaweedFS on the local machine: for tests, for
// benchmarks and for the demonstration. Servers listen on 127.0.0.1 only, on
// free ports, and end with the process that started them.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/seaice/seaice/filer"
)

// Options say what the cluster is made of.
type Options struct {
	// Dir holds the data, the logs and security.toml. It must exist.
	Dir string
	// Bucket, if not empty, is made as a table bucket. It needs the admin,
	// which is then started too.
	Bucket string
	// Buckets are more table buckets.
	Buckets []string
	// Admin starts weed admin.
	Admin bool
	// S3 starts the S3 gateway and with it the Iceberg REST catalog. A cluster
	// with an admin always has it.
	S3 bool
	// Split runs master and volume server, filer, and S3 as processes of their
	// own, so that the filer can be killed and started alone.
	Split bool
	// TLS gives every component a certificate and requires one of every client.
	TLS bool
	// JWT signs access to volumes and filers.
	JWT bool
	// EncryptVolumes encrypts volume data.
	EncryptVolumes bool
	// Worker starts weed's own worker for Iceberg maintenance.
	Worker bool
	// Env are additional variables of the servers: "AWS_ACCESS_KEY_ID=admin".
	Env []string
}

// Cluster is a running SeaweedFS. Addresses are "host:port"; those that are not
// part of the cluster are empty.
type Cluster struct {
	// Master and Volume are the HTTP addresses.
	Master, Volume string
	// Filer is the filer's address as weed spells it; FilerGRPC its gRPC
	// address; FilerHTTP the base URL of its HTTP interface.
	Filer, FilerGRPC, FilerHTTP string
	// S3 and REST are the base URLs of the S3 gateway and of the Iceberg REST
	// catalog.
	S3, REST string
	// Admin is the base URL of the admin, AdminGRPC the address that workers
	// connect to.
	Admin, AdminGRPC string
	// Security is the path of the cluster's security.toml.
	Security string
	// Logs is the directory with the servers' logs.
	Logs string

	opts  Options
	weed  string
	ports ports
	procs map[string]*process
}

type ports struct{ master, volume, filer, s3, rest, admin int }

// TLS reports whether the components' connections are encrypted.
func (c *Cluster) TLS() bool { return c.opts.TLS }

// startTimeout bounds the start of a cluster on a slow machine.
const startTimeout = 3 * time.Minute

// Start starts a cluster and waits until it serves. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Dir == "" {
		return nil, errors.New("a cluster needs a directory")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if o.Bucket != "" {
		o.Buckets = append([]string{o.Bucket}, o.Buckets...)
	}
	o.Admin = o.Admin || len(o.Buckets) > 0 || o.Worker
	o.S3 = o.S3 || o.Admin
	weed, err := Weed(ctx)
	if err != nil {
		return nil, err
	}
	security, err := secure(o.Dir, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Another process can take a port between the look and the start.
	for try := 0; ; try++ {
		c := &Cluster{opts: o, weed: weed, Security: security, Logs: o.Dir, procs: map[string]*process{}}
		err := c.start(ctx)
		if err == nil {
			return c, nil
		}
		c.Stop()
		if !errors.Is(err, errEnded) || try == 3 {
			return nil, err
		}
	}
}

func (c *Cluster) start(ctx context.Context) error {
	p, err := freePorts(6)
	if err != nil {
		return err
	}
	c.ports = ports{p[0], p[1], p[2], p[3], p[4], p[5]}
	c.Master, c.Volume, c.Filer = address(p[0]), address(p[1]), address(p[2])
	c.FilerGRPC, c.FilerHTTP = address(p[2]+grpcAbove), "http://"+c.Filer
	if c.opts.S3 {
		c.S3, c.REST = "http://"+address(p[3]), "http://"+address(p[4])
	}
	if c.opts.Admin {
		c.Admin, c.AdminGRPC = "http://"+address(p[5]), address(p[5]+grpcAbove)
	}
	for _, d := range []string{"data", "meta", "filer", "admin", "worker"} {
		if err := os.MkdirAll(filepath.Join(c.opts.Dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if !c.opts.Admin {
		return nil
	}
	if err := c.StartAdmin(ctx); err != nil {
		return err
	}
	for _, b := range c.opts.Buckets {
		if err := c.MakeBucket(ctx, b); err != nil {
			return err
		}
	}
	if c.opts.Worker {
		return c.StartWorker()
	}
	return nil
}

func (c *Cluster) startServers(ctx context.Context) error {
	if c.opts.Split {
		if err := c.run("master", "master", "-port="+strconv.Itoa(c.ports.master), "-ip="+host, "-ip.bind="+host,
			"-mdir="+c.path("meta"), "-telemetry=false", "-volumeSizeLimitMB=256"); err != nil {
			return err
		}
		if err := c.runVolume(); err != nil {
			return err
		}
		return c.StartFiler(ctx)
	}
	args := []string{
		"server", "-dir=" + c.path("data"), "-ip=" + host, "-ip.bind=" + host, "-master.telemetry=false",
		"-master.volumeSizeLimitMB=256", "-volume.max=0", "-master.port=" + strconv.Itoa(c.ports.master),
		"-volume.port=" + strconv.Itoa(c.ports.volume), "-filer", "-filer.port=" + strconv.Itoa(c.ports.filer),
		"-filer.localSocket=f.sock",
	}
	if c.opts.EncryptVolumes {
		args = append(args, "-filer.encryptVolumeData")
	}
	if c.opts.S3 {
		args = append(args, "-s3", "-s3.port="+strconv.Itoa(c.ports.s3), "-s3.port.iceberg="+strconv.Itoa(c.ports.rest),
			"-s3.port.lance=0", "-s3.localSocket=s3.sock")
	}
	if err := c.run("server", args...); err != nil {
		return err
	}
	return c.serving(ctx, "server")
}

func (c *Cluster) path(name string) string { return filepath.Join(c.opts.Dir, name) }

func (c *Cluster) run(name string, args ...string) error {
	p, err := start(c.weed, c.opts.Dir, name, c.opts.Env, args)
	if err == nil {
		c.procs[name] = p
	}
	return err
}

// serving waits until the filer answers and chunks can be stored, and until the
// gateways answer.
func (c *Cluster) serving(ctx context.Context, name string) error {
	p := c.procs[name]
	if err := p.wait(ctx, "the filer", c.filerAnswers); err != nil {
		return err
	}
	if !c.opts.S3 {
		return nil
	}
	for what, url := range map[string]string{"the S3 gateway": c.S3, "the Iceberg REST catalog": c.REST + "/v1/config"} {
		if err := p.wait(ctx, what, func(ctx context.Context) error { return answers(ctx, url) }); err != nil {
			return err
		}
	}
	return nil
}

// filerAnswers stores and removes a file with a chunk.
func (c *Cluster) filerAnswers(ctx context.Context) error {
	f, err := filer.Dial(ctx, filer.Config{Addresses: []string{c.Filer}, Security: c.Security, RetryFor: time.Second, ChunkBytes: 1 << 10})
	if err != nil {
		return err
	}
	defer f.Close()
	p := filer.Path("/tmp/ready")
	u, err := f.Create(ctx, p, filer.CreateOptions{Replace: true})
	if err != nil {
		return err
	}
	defer u.Abort(ctx)
	if _, err := u.Write([]byte("ready?")); err != nil {
		return err
	}
	if _, err := u.Commit(ctx); err != nil {
		return err
	}
	return f.Delete(ctx, p, filer.Guard{})
}

// answers reports whether anything answers at url, with any status.
func answers(ctx context.Context, url string) error {
	_, _, err := request(ctx, http.MethodGet, url, nil)
	return err
}

func request(ctx context.Context, method, url string, body any) (status int, text []byte, err error) {
	var r io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, text, err
}

// MakeBucket makes a table bucket. The admin finds the filer some ten seconds
// after its start and answers with an error until then.
func (c *Cluster) MakeBucket(ctx context.Context, name string) error {
	return c.procs["admin"].wait(ctx, "table bucket "+name, func(ctx context.Context) error {
		status, text, err := request(ctx, http.MethodPost, c.Admin+"/api/s3tables/buckets", map[string]string{"name": name, "owner": "000000000000"})
		if err != nil {
			return err
		}
		if status != http.StatusCreated && status != http.StatusConflict {
			return fmt.Errorf("status %d: %s", status, text)
		}
		return nil
	})
}

// Stop ends every server: it asks, and kills what has not ended soon. The data
// stay in the directory.
func (c *Cluster) Stop() {
	for _, name := range []string{"worker", "admin", "filer", "server", "volume", "master"} {
		c.stop(name)
	}
	c.removeSockets()
}

// removeSockets removes what killed servers leave in /tmp: weed names the
// sockets there by their ports.
func (c *Cluster) removeSockets() {
	for _, p := range []int{c.ports.master, c.ports.volume, c.ports.filer, c.ports.s3, c.ports.admin} {
		for _, port := range []int{p, p + grpcAbove} {
			left, _ := filepath.Glob(fmt.Sprintf("/tmp/seaweedfs-*-%d.sock", port))
			for _, s := range left {
				_ = os.Remove(s)
			}
		}
	}
}

func (c *Cluster) stop(name string) {
	if p := c.procs[name]; p != nil {
		p.stop(stopGrace)
		delete(c.procs, name)
	}
}
