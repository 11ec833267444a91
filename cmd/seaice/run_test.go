package main

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
)

// fieldNames are the names in a document, a line each.
func fieldNames(doc map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(fields("", doc, map[string]bool{}))), "\n") + "\n"
}

func TestPlanGolden(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	w.same(func() {
		golden(t, "plan-expire", w.done("plan", "expire_snapshots", "--table", events))
		golden(t, "plan-all", w.done("plan", "all", "--table", events, "--set", "min_manifests_to_rewrite=2"))
		golden(t, "plan-narrowed", said(w.exec("plan", "all", "--table", events, "--branch", "dev")))
		w.fails(exitUnsupported, []string{events, "where"}, "plan", "all", "--table", events, "--where", "id = 1")
		golden(t, "plan-fields", fieldNames(document(t, w.done("plan", "all", "--table", events, "--json"))))
	})
}

func TestPlanWritesOnlyTheFileNamed(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	file := t.TempDir() + "/plan.json"
	w.same(func() {
		w.done("plan", "expire_snapshots", "--table", events, "--out", file)
		w.fails(exitUsage, []string{"--out"}, "plan", "all", "--table", events, "--out", file)
	})
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "expire_snapshots", document(t, string(b))["operation"])
}

func TestErrorsOfPlanAndRunNameWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	missing := t.TempDir() + "/no.json"
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no table", []string{"--table", "lake/ns/none"}, exitError, []string{"lake/ns/none", "hint: seaice tables"}},
		{"table of two parts", []string{"--table", "lake/ns"}, exitUsage, []string{`"lake/ns"`}},
		{"table left out", nil, exitUsage, []string{`"table"`}},
		{"no such setting", []string{"--table", events, "--set", "max_snapshots=2"}, exitUsage, []string{events, "max_snapshots", "hint: "}},
		{"setting out of range", []string{"--table", events, "--set", "max_delete_percent=101"}, exitUsage, []string{"max_delete_percent", "101"}},
		{"flag out of range", []string{"--table", events, "--max-delete-percent", "101"}, exitUsage, []string{"max_delete_percent", "101"}},
		{"setting without value", []string{"--table", events, "--set", "dry_run"}, exitUsage, []string{`"dry_run"`, "name=value"}},
		{"setting given twice", []string{"--table", events, "--set", "where=a = 1", "--where", "a = 2"}, exitUsage, []string{"where is set twice"}},
		{"removal narrowed to a branch", []string{"--table", events, "--branch", "dev"}, exitUsage, []string{"expire_snapshots", "branch", "dev"}},
		{"removal narrowed by a predicate", []string{"--table", events, "--set", "where=id = 1"}, exitUsage, []string{"expire_snapshots", "where"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.same(func() {
				for _, cmd := range [][]string{{"plan"}, {"run", "--yes"}} {
					args := append(append(cmd, "expire_snapshots"), c.args...)
					w.fails(c.code, c.says, args...)
					doc := document(t, w.exec(append(args, "--json")...).out)
					require.EqualValues(t, c.code, doc["exit-code"])
				}
			})
		})
	}
	w.same(func() {
		w.fails(exitUsage, []string{"compactt"}, "plan", "compactt", "--table", events)
		w.fails(exitUsage, []string{"several"}, "plan", "expire_snapshots,rewrite_manifests", "--table", events)
		w.fails(exitUsage, []string{"remove_orphans is not available"}, "run", "remove_orphans", "--table", events, "--yes")
		w.fails(exitUnsupported, []string{events, `"dev"`}, "plan", "rewrite_manifests", "--table", events, "--branch", "dev")
		w.fails(exitUsage, []string{missing}, "run", "expire_snapshots", "--table", events, "--yes", "--plan", missing)
	})
	s.Set("maintenance.max-delete-percent", "no", "history.expire.max-snapshot-age-ms", "soon")
	w.fails(exitUnsupported, []string{events, "history.expire.max-snapshot-age-ms", "hint: "}, "plan", "expire_snapshots", "--table", events)
}

func TestRunGolden(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	golden(t, "run-expire", w.done("run", "expire_snapshots", "--table", events, "--yes"))
	s.Do(s.Refresh(t.Context()))
	require.Len(t, s.Snapshots(), 5)
	s.Verify()
	w.same(func() {
		golden(t, "run-nothing", w.done("run", "all", "--table", events, "--yes"))
	})
}

func TestRunFieldsGolden(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	golden(t, "run-fields", fieldNames(document(t, w.done("run", "all", "--table", events, "--yes", "--json"))))
}

func TestDryRunAsksNobodyAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	w.same(func() {
		require.Contains(t, w.done("run", "expire_snapshots", "--table", events, "--dry-run"), "dry-run")
		require.Contains(t, w.done("run", "expire_snapshots", "--table", events, "--set", "dry_run=true"), "dry-run")
	})
}

func TestNobodyToAskIsUsage(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	w.same(func() {
		w.fails(exitUsage, []string{"nobody to ask", "--yes"}, "run", "all", "--table", events)
		require.Equal(t, 0, w.fl.Fired())
		w.attended = true
		o := w.fails(exitUsage, nil, "run", "all", "--table", events, "--json")
		document(t, o.out)
	})
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, terminal(null), "the null device is no terminal")
	require.False(t, terminal(strings.NewReader("")))
}

func TestRunAsksForEachOperation(t *testing.T) {
	for _, c := range []struct {
		name, answers     string
		code              int
		rewritten, erased bool
		asked             int
	}{
		{"yes to all", "y\ny\nYES\n", exitDone, true, true, 3},
		{"yes and no", "y\ny\nn\n", exitError, true, false, 3},
		{"no ends it", "no\ny\n", exitError, false, false, 1},
		{"end of input is no", "", exitError, false, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			s := w.scene(model.Config{})
			for i := range 8 {
				s.Append(s.R(int64(i), "x"))
			}
			w.pass(30 * day)
			w.attended, w.in = true, strings.NewReader(c.answers)
			o := w.exec("run", "all", "--table", events, "--set", "max_snapshots_to_keep=1")
			require.Equal(t, c.code, o.code, o.err)
			require.Equal(t, c.asked, strings.Count(o.err, "[y/N]"), o.err)
			for _, op := range []string{"compact", "rewrite_manifests", "expire_snapshots"}[:c.asked] {
				require.Contains(t, o.err, op+" on "+events)
			}
			s.Do(s.Refresh(t.Context()))
			s.Verify()
			require.Equal(t, c.rewritten, len(s.Head("main").Manifests) < 8)
			require.Equal(t, c.erased, len(s.Snapshots()) < 8)
		})
	}
}

func TestInterruptedQuestionChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	r, never, err := os.Pipe()
	require.NoError(t, err)
	defer never.Close()
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx, w.attended, w.in = ctx, true, r
	w.before = func(c *cli) { c.errOut = onWrite{c.errOut, "[y/N]", cancel} }
	w.same(func() {
		w.fails(exitError, []string{"wait for an answer"}, "run", "expire_snapshots", "--table", events)
	})
}

// onWrite calls do once text is written.
type onWrite struct {
	io.Writer
	text string
	do   func()
}

func (w onWrite) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if strings.Contains(string(b), w.text) {
		w.do()
	}
	return n, err
}

func TestStoredPlanIsExecuted(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	file := t.TempDir() + "/plan.json"
	w.done("plan", "expire_snapshots", "--table", events, "--out", file)
	run := []string{"run", "expire_snapshots", "--table", events, "--yes", "--plan", file}
	w.fails(exitUsage, []string{"--branch"}, append(run, "--branch", "main")...)
	w.fails(exitUsage, []string{file, events, "lake/ns/other"}, "run", "expire_snapshots", "--table", "lake/ns/other", "--yes", "--plan", file)
	w.fails(exitUsage, []string{file, "expire_snapshots", "rewrite_manifests", "hint: "}, "run", "rewrite_manifests", "--table", events, "--yes", "--plan", file)
	w.fails(exitUsage, []string{"--plan"}, "run", "all", "--table", events, "--yes", "--plan", file)
	for _, set := range []string{"max_snapshots_to_keep=7", "min_input_files=7"} {
		w.fails(exitUsage, []string{"--plan", strings.Split(set, "=")[0]}, "run", "expire_snapshots", "--table", events, "--yes", "--plan", file, "--set", set)
	}
	w.done(run...)
	s.Do(s.Refresh(t.Context()))
	require.Len(t, s.Snapshots(), 5)

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	w.fails(exitUsage, []string{file}, run...)
}

func TestStalePlanEndsWithItsExitCode(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	file := t.TempDir() + "/plan.json"
	w.done("plan", "expire_snapshots", "--table", events, "--out", file)
	w.fl.RemoveAll(filer.BucketPath("lake"))
	other := newWorld(t)
	other.fl = w.fl
	s := model.NewScene(t, w.fl, model.Config{Seed: 99})
	s.Append(s.R(int64(1), "x"))
	o := w.fails(exitStale, []string{events}, "run", "expire_snapshots", "--table", events, "--yes", "--plan", file, "--json")
	doc := document(t, o.out)
	res := doc["results"].([]any)[0].(map[string]any)
	require.Equal(t, "failed", res["status"])
	require.Equal(t, "stale", res["kind"])
	s.Do(s.Refresh(t.Context()))
	require.Len(t, s.Snapshots(), 1)
}

// A run that is interrupted before any of its calls leaves a whole table, says
// how it ended, and the next run finishes what it left.
func TestInterruptedRunLeavesTheTableWhole(t *testing.T) {
	run := []string{"run", "expire_snapshots", "--table", events, "--yes"}
	codes := map[int]int{}
	for n := 1; ; n += 7 {
		w := newWorld(t)
		s := w.old(8)
		ctx, cancel := context.WithCancel(t.Context())
		w.ctx = ctx
		w.fl.Before(w.fl.Count()+n, func(filertest.Call) { cancel() })
		o := w.exec(run...)
		over := ctx.Err() == nil
		cancel()
		codes[o.code]++
		w.ctx = t.Context()
		s.Do(s.Refresh(t.Context()))
		s.Verify()
		for p := range s.Live() {
			require.True(t, w.fl.Exists(p), "call %d: %s is needed and gone", n, p)
		}
		switch committed := len(s.Snapshots()) == 5; o.code {
		case exitDone:
			require.True(t, committed, "call %d: %s", n, said(o))
		case exitError:
			require.False(t, committed, "call %d: %s", n, said(o))
		case exitUnknown:
			require.Contains(t, o.err, events, "call %d", n)
		default:
			t.Fatalf("call %d: %s", n, said(o))
		}
		w.pass(day)
		w.done(run...)
		s.Do(s.Refresh(t.Context()))
		s.Verify()
		require.Len(t, s.Snapshots(), 5, "call %d", n)
		for st, err := range journal.New(w.fl, w.fl.Virtual()).List(t.Context()) {
			require.NoError(t, err)
			require.NotEqual(t, journal.Open, st.Phase(), "call %d: run %s", n, st.Run())
		}
		if over {
			break
		}
	}
	require.Positive(t, codes[exitDone])
	require.Positive(t, codes[exitError])
	t.Log("exit codes", codes)
}

func TestProgressIsOneLineThatGoesAway(t *testing.T) {
	var b strings.Builder
	p := bar{w: &b}
	p.clear()
	p.Note("planning")
	p.Step("files", 1, 2)
	p.clear()
	p.clear()
	require.Equal(t, "\r\x1b[Kplanning\r\x1b[K1 of 2 files\r\x1b[K", b.String())
	var nobody bar
	nobody.Note("x")
	nobody.clear()
}
