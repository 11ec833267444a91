package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// childVariable names, in a child's environment, the work it is to do.
const childVariable = "SEAICE_BENCH_CHILD"

// Children are the works that run in a process of their own, by name. Memory
// is measured there, because a process's peak is the peak of all it ever did.
type Children map[string]func(ctx context.Context, args []string) error

// Usage is what a child used.
type Usage struct {
	// PeakBytes is the most memory that was resident at one time (VmHWM). It
	// includes the program itself.
	PeakBytes int64
	// CPUSeconds is the time of all cores, in user and system mode.
	CPUSeconds float64
}

// Main runs the child's work and ends the process, if this process is a child;
// else it returns. Programs and tests that use InChild call it first.
func (c Children) Main(ctx context.Context) {
	name := os.Getenv(childVariable)
	if name == "" {
		return
	}
	usage, err := c.work(ctx, name, os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c Children) work(ctx context.Context, name string, args []string) (Usage, error) {
	work, ok := c[name]
	if !ok {
		return Usage{}, fmt.Errorf("there is no work called %q", name)
	}
	if err := work(ctx, args); err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Usage{}, fmt.Errorf("measure memory, which needs Linux: %w", err)
	}
	peak, err := peakOf(status)
	if err != nil {
		return Usage{}, err
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return Usage{}, err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return Usage{PeakBytes: peak, CPUSeconds: seconds(used.Utime) + seconds(used.Stime)}, nil
}

// peakOf reads VmHWM, in kB, from the text of /proc/self/status.
func peakOf(status []byte) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmHWM in /proc/self/status")
}

// InChild runs the named work in a fresh process of this program and returns
// what it used.
func InChild(ctx context.Context, name string, args ...string) (Usage, error) {
	self, err := os.Executable()
	if err != nil {
		return Usage{}, err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+name, "GOMAXPROCS="+strconv.Itoa(runtime.GOMAXPROCS(0)))
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return Usage{}, fmt.Errorf("child %s: %w", name, err)
	}
	var u Usage
	if err := json.Unmarshal(out.Bytes(), &u); err != nil {
		return Usage{}, fmt.Errorf("answer of child %s: %w", name, err)
	}
	return u, nil
}

// PeakMemory returns a side whose figure is the peak memory, in MB, of a child
// that does the named work.
func PeakMemory(name string, args ...string) Side {
	return func(ctx context.Context) (float64, error) {
		u, err := InChild(ctx, name, args...)
		return float64(u.PeakBytes) / 1e6, err
	}
}
