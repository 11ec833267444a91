package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// weedPackage is built in the module tools/weed, which pins its version.
const weedPackage = "github.com/seaweedfs/seaweedfs/weed"

// Weed returns the path of the pinned weed binary: bin/weed below the root of
// this module, built there if it is missing (minutes, once). The variable
// SEAICE_WEED names another one. Processes that build at the same time wait for
// each other.
func Weed(ctx context.Context) (string, error) {
	if p := os.Getenv("SEAICE_WEED"); p != "" {
		if _, err := os.Stat(p); err != nil {
			return "", fmt.Errorf("SEAICE_WEED: %w", err)
		}
		return p, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin", "weed")
	if executable(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(bin+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if executable(bin) {
		return bin, nil
	}
	// Renamed into place, so that nobody runs half a binary.
	part := bin + ".part"
	cmd := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, "tools", "weed"), "build", "-o", part, weedPackage)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build weed: %w\n%s", err, out)
	}
	return bin, os.Rename(part, bin)
}

func executable(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// Root is the directory of this module, found upwards from the working
// directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools", "weed", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no module with tools/weed above the working directory")
		}
	}
}
