package expire_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
)

// TestPlanGolden plans on the tables that testdata describes and compares the
// plans with those in the files: SEAICE_GOLDEN=rewrite go test -run Golden writes
// them anew.
//
// A file has a description, a line of four dashes and the plan. A line of the
// description is one of
//
//	version N
//	setting name=value
//	property name=value
//	manifest NAME live=a,b deleted=c by=SNAPSHOT
//	snapshot ID age=30d [parent=ID] [manifests=NAME,…] [op=replace]
//	branch NAME ID [min=N] [max-age=1d] [max-ref-age=1d]
//	tag NAME ID [max-ref-age=1d]
//	statistics ID
//
// Ages are Go durations or days; {ms:age} in a value is a time in milliseconds.
// Sequence numbers follow the order of the snapshots.
func TestPlanGolden(t *testing.T) {
	dir, err := os.ReadDir("testdata")
	require.NoError(t, err)
	require.NotEmpty(t, dir)
	for _, f := range dir {
		t.Run(strings.TrimSuffix(f.Name(), ".txt"), func(t *testing.T) {
			name := "testdata/" + f.Name()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			head, want, ok := strings.Cut(string(text), "----\n")
			require.True(t, ok, "%s has no line of four dashes", name)
			got := describe(t, head)
			if os.Getenv("SEAICE_GOLDEN") == "rewrite" {
				require.NoError(t, os.WriteFile(name, []byte(head+"----\n"+got), 0o600))
				return
			}
			require.Equal(t, want, got)
		})
	}
}

// drawing is a table being described.
type drawing struct {
	t         *testing.T
	fl        *filertest.Filer
	now       time.Time
	version   int
	settings  map[string]string
	props     map[string]any
	manifests map[string]*manifests.ManifestFile
	snapshots []any
	refs      map[string]any
	stats     []any
	seq       int64
	scene     *model.Scene
}

func describe(t *testing.T, text string) string {
	t.Helper()
	d := &drawing{
		t: t, fl: filertest.New(filertest.Options{}), settings: map[string]string{}, props: map[string]any{},
		manifests: map[string]*manifests.ManifestFile{}, refs: map[string]any{},
	}
	pass(d.fl, 100)
	// The files are an hour old when the plan is made.
	d.now, d.version = d.fl.Virtual().Now().Add(time.Hour), 2
	var lines [][]string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if words[0] == "version" {
			d.version = d.number(words[1])
			continue
		}
		lines = append(lines, words)
	}
	d.scene = newTable(t, d.fl, model.Config{Version: d.version, Tick: -1})
	for _, words := range lines {
		d.line(words)
	}
	d.scene.Do(d.scene.Edit(t.Context(), func(doc map[string]any) {
		doc["snapshots"], doc["refs"], doc["properties"], doc["statistics"] = d.snapshots, d.refs, d.props, d.stats
		if d.version > 1 {
			doc["last-sequence-number"] = d.seq
		}
		doc["current-snapshot-id"] = int64(-1)
		if main, ok := d.refs["main"]; ok {
			doc["current-snapshot-id"] = main.(map[string]any)["snapshot-id"]
		}
	}))
	d.fl.Virtual().Advance(time.Hour)
	return d.plan()
}

func (d *drawing) line(words []string) {
	d.t.Helper()
	args := map[string]string{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			args[k] = v
		}
	}
	switch words[0] {
	case "setting":
		for k, v := range args {
			d.settings[k] = v
		}
	case "property":
		k, v, _ := strings.Cut(words[1], "=")
		d.props[k] = d.expand(v)
	case "manifest":
		v, err := iceberg.Load(d.t.Context(), d.fl, id)
		require.NoError(d.t, err)
		at := d.scene.Root.Join("metadata", words[1]+".avro")
		by := 1
		if n, ok := args["by"]; ok {
			by = d.number(n)
		}
		d.manifests[words[1]] = manifestOf(d.t, d.fl, v.Metadata, at, iceberg.SnapshotID(by), d.files(args["live"]), d.files(args["deleted"]))
	case "snapshot":
		d.snapshot(words[1], args)
	case "branch", "tag":
		ref := map[string]any{"type": words[0], "snapshot-id": int64(d.number(words[2]))}
		if v, ok := args["min"]; ok {
			ref["min-snapshots-to-keep"] = int64(d.number(v))
		}
		for arg, key := range map[string]string{"max-age": "max-snapshot-age-ms", "max-ref-age": "max-ref-age-ms"} {
			if v, ok := args[arg]; ok {
				ref[key] = d.age(v).Milliseconds()
			}
		}
		d.refs[words[1]] = ref
	case "statistics":
		at := d.fl.PutFile(d.scene.Root.Join("metadata", words[1]+".stats"), []byte("puffin")).Path
		d.stats = append(d.stats, map[string]any{
			"snapshot-id": int64(d.number(words[1])), "statistics-path": "s3://" + at.Rel(filer.BucketsRoot), "file-size-in-bytes": int64(6),
			"file-footer-size-in-bytes": int64(1), "blob-metadata": []any{},
		})
	default:
		d.t.Fatalf("no such line: %s", strings.Join(words, " "))
	}
}

func (d *drawing) snapshot(name string, args map[string]string) {
	d.t.Helper()
	d.seq++
	var all []*manifests.ManifestFile
	for _, m := range d.list(args["manifests"]) {
		require.Contains(d.t, d.manifests, m)
		all = append(all, d.manifests[m])
	}
	at := d.scene.Root.Join("metadata", "list-"+name+".avro")
	d.fl.PutFile(at, encodeList(d.t, d.version, all))
	operation := "append"
	if op, ok := args["op"]; ok {
		operation = op
	}
	s := map[string]any{
		"snapshot-id": int64(d.number(name)), "timestamp-ms": d.now.Add(-d.age(args["age"])).UnixMilli(),
		"manifest-list": "s3://" + at.Rel(filer.BucketsRoot), "summary": map[string]any{"operation": operation},
	}
	if d.version > 1 {
		s["sequence-number"] = d.seq
	}
	if p, ok := args["parent"]; ok {
		s["parent-snapshot-id"] = int64(d.number(p))
	}
	d.snapshots = append(d.snapshots, s)
}

// files are data files of the table, made as they are named.
func (d *drawing) files(names string) []string {
	var out []string
	for _, n := range d.list(names) {
		at := d.scene.Root.Join("data", n+".parquet")
		if !d.fl.Exists(at) {
			d.fl.PutFile(at, []byte("x"))
		}
		out = append(out, "s3://"+at.Rel(filer.BucketsRoot))
	}
	return out
}

func (d *drawing) list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (d *drawing) number(text string) int {
	d.t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(d.t, err)
	return n
}

func (d *drawing) age(text string) time.Duration {
	d.t.Helper()
	if days, ok := strings.CutSuffix(text, "d"); ok {
		return time.Duration(d.number(days)) * day
	}
	age, err := time.ParseDuration(text)
	require.NoError(d.t, err)
	return age
}

// expand replaces {ms:age} by the time that long ago.
func (d *drawing) expand(text string) string {
	for {
		before, rest, ok := strings.Cut(text, "{ms:")
		if !ok {
			return text
		}
		age, after, _ := strings.Cut(rest, "}")
		text = before + fmt.Sprint(d.now.Add(-d.age(age)).UnixMilli()) + after
	}
}

func (d *drawing) plan() string {
	d.t.Helper()
	p, err := tryPlan(d.t.Context(), runner(d.fl), d.settings)
	if err != nil {
		return fmt.Sprintf("error: %s\n", err)
	}
	var b strings.Builder
	e := p.Head().Effects
	fmt.Fprintf(&b, "snapshots %d -> %d\n", e.Before.Snapshots, e.After.Snapshots)
	for _, id := range p.Snapshots() {
		fmt.Fprintf(&b, "expire %d\n", id)
	}
	for _, name := range p.Refs() {
		fmt.Fprintf(&b, "expire ref %s\n", name)
	}
	if e.RemovedFiles > 0 {
		fmt.Fprintf(&b, "remove %d files\n", e.RemovedFiles)
	}
	d.removed(&b)
	for _, r := range p.Head().Reasons {
		text := strings.ReplaceAll(r.Text, d.scene.Root.Rel(filer.BucketsRoot), "TABLE")
		subject := strings.ReplaceAll(r.Subject, d.scene.Root.Rel(filer.BucketsRoot), "TABLE")
		fmt.Fprintf(&b, "%s: %d %s, %s", r.Code, r.Count, subject, text)
		if r.Setting != "" {
			fmt.Fprintf(&b, " (%s)", r.Setting)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// removed executes the plan on a copy of the table and names what goes.
func (d *drawing) removed(b *strings.Builder) {
	d.t.Helper()
	fl := d.fl.Fork()
	before := fl.Files(d.scene.Root)
	res, err := run(d.t.Context(), fl, d.settings)
	require.NoError(d.t, err)
	for _, p := range before {
		if !fl.Exists(p) {
			fmt.Fprintf(b, "remove %s\n", p.Rel(d.scene.Root))
		}
	}
	if res.Actual != nil {
		require.Equal(d.t, res.Predicted.RemovedFiles, res.Actual.RemovedFiles, "O9")
	}
	require.Empty(d.t, res.Warnings)
}
