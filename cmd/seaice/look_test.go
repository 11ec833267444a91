package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/journal"
)

func TestTablesGolden(t *testing.T) {
	w := newWorld(t)
	w.old(8)
	other := iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "stopped"}
	s := model.NewScene(t, w.fl, model.Config{ID: other, Seed: 4})
	s.Append(s.R(int64(1), "x"))
	s.Set("maintenance.enabled", "false")
	broken := model.NewScene(t, w.fl, model.Config{ID: iceberg.TableID{Bucket: "pond", Namespace: "a", Name: "broken"}, Seed: 5})
	broken.Append(broken.R(int64(1), "x"))
	for p := range broken.Live() {
		if strings.Contains(p.Name(), "snap-") {
			w.fl.RemoveAll(p)
		}
	}
	w.same(func() {
		golden(t, "tables", w.done("tables"))
		golden(t, "tables-plan", w.done("tables", "--plan"))
		golden(t, "tables-fields", fieldNames(document(t, w.done("tables", "--plan", "--json"))))
		rows := document(t, w.done("tables", "--json", "--bucket", "lake", "--name", "st*"))["tables"].([]any)
		require.Len(t, rows, 1)
		require.Equal(t, other.String(), rows[0].(map[string]any)["table"])
		require.Equal(t, []any{}, document(t, w.done("tables", "--json", "--bucket", "no"))["tables"])
	})
}

func TestTablesThatCannotBeReadEndWithAnError(t *testing.T) {
	w := newWorld(t)
	w.old(2)
	w.fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Path.Within(filer.BucketPath("lake")) && strings.Contains(string(c.Path), "/metadata/") {
			return &filertest.Fault{Kind: fault.Transient}
		}
		return nil
	})
	o := w.exec("tables")
	require.Equal(t, exitError, o.code, said(o))
	require.Contains(t, o.out, events)
	require.Contains(t, o.err, events)
}

func TestExplainGolden(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	s.Tag("release")
	s.Set("history.expire.min-snapshots-to-keep", "3", "gc.enabled", "false")
	w.same(func() {
		golden(t, "explain", w.done("explain", "--table", events, "--set", "max_snapshots_to_keep=2"))
		golden(t, "explain-fields", fieldNames(document(t, w.done("explain", "--table", events, "--json"))))
		w.fails(exitError, []string{"lake/ns/none", "hint"}, "explain", "--table", "lake/ns/none")
	})
}

func TestExplainShowsWhatItCanOfABrokenTable(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	w.fl.RemoveAll(list(t, s))
	o := w.exec("explain", "--table", events)
	require.NotEqual(t, exitDone, o.code)
	require.Contains(t, o.out, "max_snapshots_to_keep = 5")
	require.Contains(t, o.out, "problem: ")
	require.Contains(t, o.err, events)
	doc := document(t, w.exec("explain", "--table", events, "--json").out)
	require.NotEmpty(t, doc["problems"])
}

// list is where the current snapshot's manifest list lies.
func list(t *testing.T, s *model.Scene) filer.Path {
	t.Helper()
	text := s.Head("main").List
	for p := range s.Live() {
		if strings.HasSuffix(text, "/"+p.Name()) {
			return p
		}
	}
	t.Fatalf("no file for %s", text)
	return ""
}

func TestConfigShowAndValidate(t *testing.T) {
	w := newWorld(t)
	require.Contains(t, w.done("config", "show"), "| `max_delete_percent`")
	require.NotEmpty(t, document(t, w.done("config", "show", "--json"))["settings"])
	rules := t.TempDir() + "/rules"
	write(t, rules, "lake/ns/* max_delete_percent=30\n")
	out := w.done("config", "validate", "--rules", rules, "--table", events, "--set", "min_input_files=7")
	require.Contains(t, out, "max_delete_percent = 30 %, from rule line 1")
	require.Contains(t, out, "min_input_files = 7 files, from form")
	require.NotEmpty(t, document(t, w.done("config", "validate", "--json"))["settings"])
	for _, c := range []struct {
		says string
		args []string
	}{
		{"min_input_files", []string{"--set", "min_input_files=no"}},
		{"min_input_files", []string{"--set", "min_input_file=2"}}, // which it is close to
		{"is no setting", []string{"--set", "bogus=1"}},
		{"min_input_files is set twice", []string{"--set", "min_input_files=2", "--set", "min_input_files=3"}},
		{"name=value", []string{"--set", "x"}},
		{"/none", []string{"--rules", rules + "/none"}},
		{"bucket/namespace/table", []string{"--table", "x"}},
		{"--rules", []string{"--rules", rules, "--set", "rules=* * *"}},
	} {
		o := w.fails(exitUsage, []string{c.says}, append([]string{"config", "validate"}, c.args...)...)
		require.Empty(t, o.out)
		doc := document(t, w.exec(append([]string{"config", "validate", "--json"}, c.args...)...).out)
		require.EqualValues(t, exitUsage, doc["exit-code"])
	}
	write(t, rules, "lake/ns/* max_delete_percent=300\n")
	w.fails(exitUsage, []string{"line 1", "max_delete_percent", "300"}, "config", "validate", "--rules", rules, "--table", events)
	w.fails(exitUsage, []string{`"shwo"`, "show", "seaice config --help"}, "config", "shwo")
}

func TestWorkerRefusesWrongFlagsAtOnce(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		says []string
		args []string
	}{
		{[]string{`"admin"`}, nil},
		{[]string{`"nonsense"`, "host:port"}, []string{"--admin", "nonsense"}},
		{[]string{"--log", `"xml"`}, []string{"--admin", "127.0.0.1:1", "--log", "xml"}},
		{[]string{"pools", `"heavy"`}, []string{"--admin", "127.0.0.1:1", "--pools", "heavy"}},
		{[]string{"pools", "huge"}, []string{"--admin", "127.0.0.1:1", "--pools", "huge=1"}},
		{[]string{"/none.toml"}, []string{"--admin", "127.0.0.1:1", "--security", t.TempDir() + "/none.toml"}},
	} {
		w.fails(exitUsage, c.says, append([]string{"worker"}, c.args...)...)
	}
	w.fails(exitError, []string{"256.0.0.1"}, "worker", "--admin", "127.0.0.1:1", "--metrics", "256.0.0.1:1")
}

func TestWorkerThatIsToldToStopEndsWell(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	w.before = func(c *cli) { c.errOut = onWrite{c.errOut, "worker starts", cancel} }
	o := w.exec("worker", "--admin", "127.0.0.1:1", "--metrics", "127.0.0.1:0", "--id", "w1", "--log", "json")
	require.Equal(t, exitDone, o.code, said(o))
	require.Empty(t, o.out)
	require.Contains(t, o.err, `"id":"w1"`)
	require.NotContains(t, o.err, "seaice: ")
}

func TestWithoutAFilerIsUsage(t *testing.T) {
	for _, args := range [][]string{
		{"tables"}, {"plan", "all", "--table", events}, {"run", "all", "--yes", "--table", events}, {"explain", "--table", events},
		{"trash", "list", "--bucket", "b"}, {"journal", "list"}, {"journal", "resolve"},
	} {
		code, out, errOut := exec(t, args...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, out)
		require.Contains(t, errOut, "hint: name a filer: --filer host:port")
		code, _, errOut = exec(t, append(args, "--filer", "no port")...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, errOut, "no port")
	}
}

// openRun leaves a run open, as a process that was killed does.
func (w *world) openRun(s *model.Scene, name string) {
	w.t.Helper()
	_, err := journal.New(w.fl, w.fl.Virtual()).Open(w.t.Context(), journal.Options{
		Table: s.ID, UUID: s.UUID(), Op: "expire_snapshots", Run: name, PlanDigest: "d", Base: "s3://lake/x", Lease: time.Hour,
	})
	require.NoError(w.t, err)
}

func TestJournalGolden(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	w.done("run", "expire_snapshots", "--table", events, "--yes")
	w.openRun(s, "left-open-1")
	w.same(func() {
		golden(t, "journal-list", w.done("journal", "list"))
		golden(t, "journal-list-all", w.done("journal", "list", "--all"))
		golden(t, "journal-list-fields", fieldNames(document(t, w.done("journal", "list", "--json"))))
	})
	// The owner may still be alive: nothing is done, and it says until when.
	w.same(func() {
		golden(t, "journal-resolve-early", w.done("journal", "resolve", "left-open-1"))
		require.Contains(t, w.done("journal", "resolve"), "lease lasts until")
	})
	require.Contains(t, w.done("explain", "--table", events), "left-open-1 open since")
	w.pass(2 * time.Hour)
	golden(t, "journal-resolve", w.done("journal", "resolve"))
	require.Equal(t, "no run is left to finish\n", w.done("journal", "resolve"))
	require.Equal(t, []any{}, document(t, w.done("journal", "resolve", "--json"))["resolved"])
	require.Equal(t, []any{}, document(t, w.done("journal", "list", "--json"))["journals"])
}

func TestJournalErrors(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	w.same(func() {
		w.fails(exitError, []string{"no-such-run", "hint: "}, "journal", "resolve", "no-such-run")
		w.fails(exitUsage, []string{"orphan_older_than_hours", "-1"}, "journal", "resolve", "--orphan-older-than-hours", "-1")
		w.fails(exitUsage, []string{"orphan_older_than_hours", "1", "--unsafe-age"}, "journal", "resolve", "--orphan-older-than-hours", "1")
		w.done("journal", "resolve", "--orphan-older-than-hours", "1", "--unsafe-age")
		w.fails(exitUsage, []string{`"lst"`}, "journal", "lst")
	})
	// A damaged journal is shown, and does not keep those of other tables from
	// their end.
	w.openRun(s, "damaged-1")
	other := model.NewScene(t, w.fl, model.Config{ID: iceberg.TableID{Bucket: "lake", Namespace: "ns", Name: "other"}, Seed: 4})
	other.Append(other.R(int64(1), "x"))
	w.openRun(other, "left-open-1")
	for _, p := range w.fl.Files(journal.Home) {
		if strings.Contains(string(p), "damaged-1") {
			w.fl.PutFile(p, []byte("{"))
			w.fl.SetAttributes(p, nil)
		}
	}
	w.pass(2 * time.Hour)
	require.Contains(t, w.done("journal", "list"), "damaged: ")
	o := w.exec("journal", "resolve")
	require.NotEqual(t, exitDone, o.code, said(o))
	require.Contains(t, o.err, "damaged-1")
	require.Contains(t, o.out, "left-open-1: closed")
	document(t, w.exec("journal", "resolve", "--json").out)
}

func TestUnreadableTableLeavesARunUnknown(t *testing.T) {
	w := newWorld(t)
	s := w.old(8)
	w.openRun(s, "left-open-1")
	w.pass(2 * time.Hour)
	w.fl.RemoveAll(list(t, s))
	o := w.fails(exitUnknown, []string{"left-open-1", events, "hint: "}, "journal", "resolve", "left-open-1")
	require.Contains(t, o.out, "unknown: ")
}
