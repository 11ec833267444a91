package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func run(t *testing.T, events ...string) (string, bool) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	require.NoError(t, r.read(strings.NewReader(strings.Join(events, "\n"))))
	ok := r.finish()
	return out.String(), ok
}

func TestPassingPackageIsOneLine(t *testing.T) {
	out, ok := run(t,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`)
	require.True(t, ok)
	require.Equal(t, "ok  \tp\t0.1s\nskipped for absent fixtures: 0\ntests: 1 passed, 0 failed, 0 skipped\n", out)
}

func TestFailingTestShowsItsOutput(t *testing.T) {
	out, ok := run(t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: wrong\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.False(t, ok)
	require.Contains(t, out, "a_test.go:3: wrong\nFAIL\tp\t0.1s\n")
	require.Contains(t, out, "failed: p TestA\n")
	require.True(t, strings.HasSuffix(out, "tests: 0 passed, 1 failed, 0 skipped\n"), out)
}

func TestPackageThatDoesNotBuildFails(t *testing.T) {
	out, ok := run(t,
		`{"Action":"build-output","ImportPath":"p [p.test]","Output":"a.go:1: syntax error\n"}`,
		`{"Action":"build-fail","ImportPath":"p [p.test]"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}`,
		`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`)
	require.False(t, ok)
	require.Contains(t, out, "a.go:1: syntax error\nFAIL\tp [build failed]\n")
	require.Contains(t, out, "tests: 0 passed, 1 failed, 0 skipped\n")
}

func TestDeadProcessShowsWhatRan(t *testing.T) {
	out, ok := run(t,
		`{"Action":"output","Package":"p","Test":"TestHang","Output":"panic: test timed out\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t600s\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.False(t, ok)
	require.Contains(t, out, "panic: test timed out\nFAIL\tp\t600s\n")
}

func TestSkipsAreCountedByReason(t *testing.T) {
	out, ok := run(t,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: no fixtures: set SEAICE_FIXTURES\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: no Spark here\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestC"}`,
		`{"Action":"skip","Package":"q"}`)
	require.True(t, ok)
	require.Equal(t, "skipped 1: no Spark here\nskipped 1: no fixtures: set SEAICE_FIXTURES\n"+
		"skipped for absent fixtures: 1\ntests: 1 passed, 0 failed, 2 skipped\n", out)
}

func TestNothingRunIsAFailure(t *testing.T) {
	out, ok := run(t, "go: warning: nothing matched")
	require.False(t, ok)
	require.Contains(t, out, "go: warning: nothing matched\nno test ran\n")
}
