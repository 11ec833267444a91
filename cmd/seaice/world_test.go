package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

// world is a cluster in memory and the command line at it.
type world struct {
	t  *testing.T
	fl *filertest.Filer
	// in is what a person types; attended is that somebody does.
	in       io.Reader
	attended bool
	ctx      context.Context // of the next command
	before   func(*cli)
}

func newWorld(t *testing.T) *world {
	return &world{t: t, fl: filertest.New(filertest.Options{}), in: strings.NewReader(""), ctx: t.Context()}
}

const events = "lake/ns/events"

// scene is the table lake/ns/events.
func (w *world) scene(cfg model.Config) *model.Scene {
	cfg.Seed = 3
	return model.NewScene(w.t, w.fl, cfg)
}

func (w *world) pass(d time.Duration) { w.fl.Virtual().Advance(d) }

const day = 24 * time.Hour

// old makes a table with n snapshots that can expire and one that cannot.
func (w *world) old(n int) *model.Scene {
	s := w.scene(model.Config{})
	s.Append(s.R(int64(0), "x"))
	for i := 1; i < n; i++ {
		s.Overwrite(s.By("id", int64(i-1)), s.R(int64(i), "x"))
	}
	w.pass(30 * day)
	s.Overwrite(s.By("id", int64(n-1)), s.R(int64(n), "x"))
	return s
}

// output is what a command said.
type output struct {
	code     int
	out, err string
}

func (w *world) exec(args ...string) output {
	w.t.Helper()
	var out, errOut bytes.Buffer
	c := newCLI(w.in, &out, &errOut, w.fl.Virtual())
	c.opened, c.attended = w.fl, w.attended
	if w.before != nil {
		w.before(c)
	}
	code := c.run(w.ctx, args)
	return output{code, out.String(), errOut.String()}
}

// done runs a command that must end well, in silence but for its output.
func (w *world) done(args ...string) string {
	w.t.Helper()
	o := w.exec(args...)
	require.Equal(w.t, exitDone, o.code, "%v: %s%s", args, o.out, o.err)
	require.Empty(w.t, o.err)
	return o.out
}

// fails runs a command that must end with the code and say all the texts.
func (w *world) fails(code int, says []string, args ...string) output {
	w.t.Helper()
	o := w.exec(args...)
	require.Equal(w.t, code, o.code, "%v: %s%s", args, o.out, o.err)
	require.True(w.t, strings.HasPrefix(o.err, "seaice: ") || strings.Contains(o.err, "\nseaice: ") || strings.Contains(o.err, "] seaice: "), o.err)
	for _, s := range says {
		require.Contains(w.t, o.err, s, "%v", args)
	}
	return o
}

// same requires that the command writes nothing.
func (w *world) same(run func()) {
	w.t.Helper()
	before := w.fl.Dump()
	run()
	require.Empty(w.t, before.Changes(w.fl.Dump()))
}

// document reads the one JSON document that out must be.
func document(t *testing.T, out string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(out))
	var doc map[string]any
	require.NoError(t, dec.Decode(&doc), out)
	_, err := dec.Token()
	require.ErrorIs(t, err, io.EOF, "more than one document: %s", out)
	return doc
}

// fields are the names in a document, as "plans[].base.table".
func fields(at string, v any, into map[string]bool) map[string]bool {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			name := k
			if at != "" {
				name = at + "." + k
			}
			into[name] = true
			fields(name, x, into)
		}
	case []any:
		for _, x := range v {
			fields(at+"[]", x, into)
		}
	}
	return into
}

var random = regexp.MustCompile(`([a-z_]+-\d{8}T\d{6})-[0-9a-f]{8}\b`)

// golden compares text with testdata/name.txt. SEAICE_GOLDEN=rewrite writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	goldenFile(t, "testdata/"+name+".txt", random.ReplaceAllString(text, "$1-RANDOM"))
}

func goldenFile(t *testing.T, file, text string) {
	t.Helper()
	if os.Getenv("SEAICE_GOLDEN") == "rewrite" {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "SEAICE_GOLDEN=rewrite go test -run Golden writes %s anew", file)
}

func said(o output) string { return fmt.Sprintf("exit %d\n%s----\n%s", o.code, o.out, o.err) }
