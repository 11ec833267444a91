package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/internal/clock"
)

// exec runs one command line.
func exec(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	c := newCLI(strings.NewReader(""), &o, &e, clock.NewVirtual(time.Unix(0, 0)))
	code = c.run(t.Context(), args)
	return code, o.String(), e.String()
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"verzion"}, `unknown command "verzion"; did you mean version?`},
		{[]string{"version", "--colour"}, "unknown flag: --colour"},
		{[]string{"version", "extra"}, `unknown command "extra"`},
		{[]string{"--json=maybe", "version"}, "invalid argument"},
	} {
		code, out, errOut := exec(t, c.args...)
		require.Equal(t, exitUsage, code, c.args)
		require.Empty(t, out, c.args)
		require.Contains(t, errOut, c.says)
	}
}

func TestUsageErrorAsJSON(t *testing.T) {
	code, out, _ := exec(t, "--json", "tabels")
	require.Equal(t, exitUsage, code)
	var f failure
	require.NoError(t, json.Unmarshal([]byte(out), &f))
	require.Equal(t, exitUsage, f.ExitCode)
	require.Contains(t, f.Error, "tabels")
	require.Equal(t, []string{"see seaice --help"}, f.Hints)
}

func TestVersionFlag(t *testing.T) {
	code, out, errOut := exec(t, "--version")
	require.Equal(t, exitDone, code)
	require.Regexp(t, `^seaice version \S+\n$`, out)
	require.Empty(t, errOut)
}

func TestNoArgumentsIsHelp(t *testing.T) {
	code, out, errOut := exec(t)
	require.Equal(t, exitDone, code)
	require.Contains(t, out, "Exit codes: 0 done")
	require.Contains(t, out, "version")
	require.Empty(t, errOut)
}

func TestVersionAsTextAndJSON(t *testing.T) {
	code, out, _ := exec(t, "version")
	require.Equal(t, exitDone, code)
	require.True(t, strings.HasPrefix(out, "seaice "), out)

	code, out, _ = exec(t, "version", "--json")
	require.Equal(t, exitDone, code)
	var v versions
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&v))
	require.NotEmpty(t, v.Go)
	require.False(t, dec.More(), "more than one document")
}

func TestVersionsComeFromLinkerOrBuild(t *testing.T) {
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
		Deps: []*debug.Module{
			{Path: "github.com/klauspost/compress", Version: "v1"},
			{Path: "github.com/apache/iceberg-go", Version: "v2", Replace: &debug.Module{Path: "fork", Version: "v3"}},
			{Path: "github.com/other/module", Version: "v4"},
		},
	}
	mods := []moduleVersion{{"github.com/apache/iceberg-go", "v3"}, {"github.com/klauspost/compress", "v1"}}

	built := versionsOf("", "", info)
	require.Equal(t, "(devel)", built.Version)
	require.Equal(t, "abc", built.Revision)
	require.True(t, built.Modified)
	require.Equal(t, mods, built.Modules)

	linked := versionsOf("v0.1.0", "def", info)
	require.Equal(t, "v0.1.0", linked.Version)
	require.Equal(t, "def", linked.Revision)
	require.False(t, linked.Modified)

	require.Empty(t, versionsOf("", "", nil).Modules)
}

// withCommand runs a command line against a tree with one more command.
func withCommand(t *testing.T, run func(c *cli) error, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	c := newCLI(strings.NewReader(""), &o, &e, clock.NewVirtual(time.Unix(0, 0)))
	c.extra = []*cobra.Command{{Use: "try", RunE: func(*cobra.Command, []string) error { return run(c) }}}
	code = c.run(t.Context(), append([]string{"try"}, args...))
	return code, o.String(), e.String()
}

func TestErrorIsExplainedWithHints(t *testing.T) {
	fail := func(*cli) error { return fault.WithHint("plan again", fault.New(fault.Stale, "head of b/n/t moved")) }
	code, out, errOut := withCommand(t, fail)
	require.Equal(t, exitStale, code)
	require.Empty(t, out)
	require.Equal(t, "seaice: head of b/n/t moved\nhint: plan again\n", errOut)

	code, out, _ = withCommand(t, fail, "--json")
	require.Equal(t, exitStale, code)
	require.JSONEq(t, `{"error":"head of b/n/t moved","kind":"stale","hints":["plan again"],"exit-code":3}`, out)
}

func TestOneDocumentEvenAfterAnError(t *testing.T) {
	code, out, _ := withCommand(t, func(c *cli) error {
		return errors.Join(c.emit(map[string]int{"rows": 1}, nil), fault.New(fault.Corrupt, "later"))
	}, "--json")
	require.Equal(t, exitCorrupt, code)
	require.JSONEq(t, `{"rows":1}`, out)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}} {
		var e bytes.Buffer
		c := newCLI(strings.NewReader(""), fullDisk{}, &e, clock.NewVirtual(time.Unix(0, 0)))
		require.Equal(t, exitError, c.run(t.Context(), args), args)
		require.Contains(t, e.String(), "no space left")
	}
}

func TestFilersAreRepeatable(t *testing.T) {
	var seen []string
	code, _, _ := withCommand(t, func(c *cli) error { seen = c.filers; return nil }, "--filer", "a:1", "--filer", "b:2.3")
	require.Equal(t, exitDone, code)
	require.Equal(t, []string{"a:1", "b:2.3"}, seen)
}
