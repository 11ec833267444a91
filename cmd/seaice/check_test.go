package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

func TestCheckEndsWithTheStateOfTheTable(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{})
	f := s.File(s.R(1, "one"), s.R(2, "two"))
	run := func(args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		c := newCLI(strings.NewReader(""), &out, &errOut, fl.Virtual())
		c.opened = fl
		code := c.run(t.Context(), append([]string{"check", "--table", "lake/ns/events", "--deep"}, args...))
		return code, out.String(), errOut.String()
	}
	code, out, _ := run()
	require.Equal(t, exitDone, code)
	require.Equal(t, "lake/ns/events: 0 errors, 0 warnings, 0 notes in 1 snapshot, 1 manifest, 1 file of "+sizeOf(f)+" bytes\n", out)

	fl.RemoveAll(f.At)
	code, out, errOut := run()
	require.Equal(t, exitCorrupt, code)
	require.Contains(t, out, "error file-missing\n  "+f.Path+": the file does not exist\n")
	require.True(t, strings.HasSuffix(out, "lake/ns/events: 1 error, 0 warnings, 0 notes in 1 snapshot, 1 manifest, 1 file of "+sizeOf(f)+" bytes\n"), out)
	require.Contains(t, errOut, "table lake/ns/events has 1 error")

	code, out, _ = run("--json")
	require.Equal(t, exitCorrupt, code)
	var rep check.Report
	require.NoError(t, json.Unmarshal([]byte(out), &rep))
	require.Equal(t, check.FileMissing, rep.Findings[0].Code)

	s.Append(s.R(3, "three"))
	s.Overwrite(s.By("id", 1, 2), s.R(4, "four"))
	code, out, _ = run("--all-snapshots=false")
	require.Equal(t, exitDone, code, out)
	code, _, _ = run()
	require.Equal(t, exitCorrupt, code)
}

func sizeOf(f *model.File) string {
	b, _ := json.Marshal(f.Size) // a number
	return string(b)
}
