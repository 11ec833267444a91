package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a server may take to stop before it is killed. Nothing
// that tests need is lost by killing: the stores write through to the kernel.
const stopGrace = 2 * time.Second

// process is one running server.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error
}

// start runs weed with args in dir; its output goes to name.log there. The
// process dies with this one, even if this one is killed.
func start(weed, dir, name string, env, args []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(weed, append([]string{"-logtostderr=true"}, args...)...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.Env = append(environment(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// The death signal comes when the thread ends that started the process.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		_ = out.Close()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// environment is this process's without what changes how weed runs.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "WEED_") || strings.HasPrefix(v, "S3_")
	})
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end and kills it if it does not within grace.
func (p *process) stop(grace time.Duration) {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
	}
}

var errEnded = errors.New("the process has ended")

// wait polls ready until it is true, the process ends or ctx does.
func (p *process) wait(ctx context.Context, what string, ready func(context.Context) error) error {
	last := errors.New("never asked")
	for {
		if !p.running() {
			return fmt.Errorf("wait for %s: %w; see %s", what, errEnded, p.log)
		}
		tctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ready(tctx)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-p.done:
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last answer: %w; see %s", what, context.Cause(ctx), last, p.log)
		}
	}
}
