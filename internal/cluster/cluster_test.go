package cluster

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/spf13/viper"
	"github.com/stretchr/testify/require"
)

func TestPortsLeaveRoomForGRPC(t *testing.T) {
	ports, err := freePorts(6)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, p := range ports {
		require.False(t, seen[p])
		seen[p] = true
		require.GreaterOrEqual(t, p, 10000)
		require.Less(t, p+grpcAbove, 32768)
	}
	l, err := net.Listen("tcp", address(ports[0]+grpcAbove))
	require.NoError(t, err)
	defer l.Close()
	require.False(t, free(ports[0]+grpcAbove))
}

// TestSecurityFile: what is written is what weed's own loaders read.
func TestSecurityFile(t *testing.T) {
	dir := t.TempDir()
	file, err := secure(dir, Options{TLS: true, JWT: true})
	require.NoError(t, err)
	v := viper.New()
	v.SetConfigFile(file)
	require.NoError(t, v.ReadInConfig())
	for _, c := range components {
		option, err := security.LoadClientTLSFromFile(file, "grpc."+c)
		require.NoError(t, err)
		require.NotNil(t, option)
		require.FileExists(t, v.GetString("grpc."+c+".cert"))
	}
	keys := map[string]bool{}
	for _, k := range []string{"jwt.signing.key", "jwt.signing.read.key", "jwt.filer_signing.key", "jwt.filer_signing.read.key"} {
		require.Len(t, v.GetString(k), 32, k)
		keys[v.GetString(k)] = true
	}
	require.Len(t, keys, 4)
	file, err = secure(t.TempDir(), Options{})
	require.NoError(t, err)
	require.FileExists(t, file, "an absent one would let weed pick up another")
}

func TestWeedNamedByTheEnvironment(t *testing.T) {
	p := filepath.Join(t.TempDir(), "weed")
	t.Setenv("SEAICE_WEED", p)
	_, err := Weed(t.Context())
	require.ErrorContains(t, err, "SEAICE_WEED")
	require.NoError(t, os.WriteFile(p, nil, 0o755))
	got, err := Weed(t.Context())
	require.NoError(t, err)
	require.Equal(t, p, got)
	root, err := Root()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("WEED_JWT_SIGNING_KEY", "x")
	t.Setenv("KEPT_BY_SEAICE", "x")
	env := environment()
	require.Contains(t, env, "KEPT_BY_SEAICE=x")
	require.NotContains(t, env, "AWS_ACCESS_KEY_ID=x")
	require.NotContains(t, env, "WEED_JWT_SIGNING_KEY=x")
}

// TestProcesses: one that ends is noticed, one that does not is killed.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "server")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\"\ntrap '' TERM\n[ \"$2\" = ends ] || while :; do sleep 1; done\n"), 0o755))
	p, err := start(script, dir, "short", nil, []string{"ends"})
	require.NoError(t, err)
	<-p.done
	require.False(t, p.running())
	log, err := os.ReadFile(p.log)
	require.NoError(t, err)
	require.Equal(t, "-logtostderr=true ends\n", string(log))
	require.ErrorIs(t, p.wait(t.Context(), "it", nil), errEnded)
	p.stop(stopGrace)

	p, err = start(script, dir, "long", nil, []string{"stays"})
	require.NoError(t, err)
	require.True(t, p.running())
	p.stop(stopGrace / 20)
	require.False(t, p.running())
	_, err = start(filepath.Join(dir, "none"), dir, "none", nil, nil)
	require.Error(t, err)
}
