package compact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/measure"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/rewrite"
	"github.com/seaice/seaice/worker"
)

// trial is one random table and one random way to compact it. Everything
// follows from its seed.
type trial struct {
	seed  uint64
	rng   *rand.Rand
	fl    *filertest.Filer
	g     *model.Generator
	set   map[string]string
	copy  rewrite.Copying
	tools tools
	// old are the files that were there before anything ran.
	old map[filer.Path]bool
	// limited: a cap or an unsupported unit may leave work for another run.
	limited bool
}

func choose[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// chance is true once in n times.
func chance(rng *rand.Rand, n int) bool { return rng.IntN(n) == 0 }

func newTrial(ctx context.Context, seed uint64, with tools) (*trial, error) {
	tr := &trial{seed: seed, rng: rand.New(rand.NewPCG(seed, 0xc03bac7)), fl: filertest.New(filertest.Options{}), set: map[string]string{}}
	o := model.RandomOptions{
		Steps: 5 + tr.rng.IntN(14), Rows: choose(tr.rng, 6, 15, 40), Varied: !chance(tr.rng, 3), PlainStyle: chance(tr.rng, 3),
		Config: model.Config{ID: tableID, Clock: tr.fl.Virtual()},
	}
	if chance(tr.rng, 4) {
		o.Versions = []int{3} // lineage from the first row on
	}
	g, err := model.Random(ctx, tr.fl, seed, o)
	if err != nil {
		return nil, fmt.Errorf("make the table: %w", err)
	}
	tr.g = g
	if err := g.SetProperties(ctx, tr.properties()); err != nil {
		return nil, err
	}
	tr.settings()
	tr.copy = choose(tr.rng, rewrite.CopyWhereAllowed, rewrite.CopyWhereAllowed, rewrite.CopyNever, rewrite.CopyForced)
	if mode, set := copyingMode(); set {
		tr.copy = mode
	}
	tr.tools = copyingAs(with, tr.copy)
	tr.old = map[filer.Path]bool{}
	for _, p := range tr.fl.Files(g.Root) {
		tr.old[p] = true
	}
	return tr, nil
}

// properties are the table's own wishes of how its files are written.
func (tr *trial) properties() map[string]string {
	all := map[string][]string{
		"write.target-file-size-bytes":                 {"", "", "1500", "6000"},
		"write.parquet.compression-codec":              {"", "", "zstd", "snappy", "gzip", "uncompressed", "lz4_raw"},
		"write.parquet.row-group-limit":                {"", "", "1", "7"},
		"write.parquet.page-row-limit":                 {"", "1", "4"},
		"write.parquet.dict-size-bytes":                {"", "", "1", "40"},
		"write.parquet.page-version":                   {"", "v1", "v2"},
		"write.metadata.metrics.default":               {"", "", "none", "counts", "full", "truncate(1)", "truncate(3)"},
		"write.metadata.metrics.column.id":             {"", "", "none", "full"},
		"write.object-storage.enabled":                 {"", "", "", "true"},
		"write.parquet.bloom-filter-enabled.column.id": {"", "", "true"},
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := choose(tr.rng, all[name]...); v != "" {
			out[name] = v
		}
	}
	return out
}

// settings are tight, so that nearly every file is a candidate.
func (tr *trial) settings() {
	r := tr.rng
	tr.set["min_input_files"] = "2"
	tr.set["verify"] = choose(r, "content", "content", "counts", "rows")
	tr.set["delete_file_threshold"] = choose(r, "1", "5")
	tr.set["delete_ratio_threshold"] = choose(r, "0.001", "0.3")
	tr.set["rewrite_all"] = strconv.FormatBool(chance(r, 3))
	tr.set["rewrite_old_specs"] = strconv.FormatBool(chance(r, 3))
	tr.set["recompress"] = strconv.FormatBool(chance(r, 4))
	tr.set["apply_deletes"] = strconv.FormatBool(!chance(r, 6))
	tr.set["max_rows_per_file"] = choose(r, "0", "0", "1", "7")
	if chance(r, 6) {
		tr.set["max_files"], tr.limited = choose(r, "2", "3"), true
	}
	if chance(r, 8) {
		tr.set["max_partitions"], tr.limited = "1", true
	}
}

func (tr *trial) request() worker.Request {
	return worker.Request{Table: tableID, Only: []ops.Kind{config.Compact}, Layers: config.Layers{Flags: tr.set}}
}

func (tr *trial) run(ctx context.Context, planned func(ops.Plan) error) (ops.Result, error) {
	q := tr.request()
	q.Planned = planned
	res, err := runnerWith(tr.fl, operation(tr.tools)).Run(ctx, q)
	if len(res) == 0 {
		return ops.Result{}, fmt.Errorf("no result: %w", err)
	}
	return res[0], err
}

// explain adds to an error what is needed to see it again.
func (tr *trial) explain(err error) error {
	if err == nil {
		return nil
	}
	log := []string{fmt.Sprintf("settings %v, copying %d", tr.set, tr.copy)}
	if tr.g != nil {
		log = append(log, tr.g.Log...)
	}
	return fmt.Errorf("seed %d: %w\n%s", tr.seed, err, strings.Join(log, "\n"))
}

// sound holds the table against the model and against check.
func (tr *trial) sound(ctx context.Context) error {
	tb := tr.g.Table
	if err := model.Check(ctx, tb); err != nil {
		return err
	}
	needed := tb.Live()
	var all []error
	for p := range needed {
		if !tr.fl.Exists(p) {
			all = append(all, fmt.Errorf("%s is needed and gone", p))
		}
	}
	rep, err := check.Named(ctx, tr.fl, tableID, check.Options{Deep: true})
	if err != nil {
		return err
	}
	for _, f := range rep.Findings {
		if f.Severity == check.Error || slices.Contains([]check.Code{check.SummaryTotals, check.SummaryChanges}, f.Code) && ours(tb, f.Subject) {
			all = append(all, fmt.Errorf("check: %+v", f))
		}
	}
	return errors.Join(all...)
}

// ours says whether a finding is about a snapshot that the model did not write.
func ours(tb *model.Table, subject string) bool {
	for _, s := range tb.Snapshots() {
		if s.Foreign && strings.Contains(subject, strconv.FormatInt(int64(s.ID), 10)) {
			return true
		}
	}
	return false
}

// tidy requires that no run left a file that nothing needs.
func (tr *trial) tidy() error {
	needed := tr.g.Live()
	for _, p := range tr.fl.Files(tr.g.Root) {
		if !needed[p] && !tr.old[p] {
			return fmt.Errorf("%s was left", p)
		}
	}
	return nil
}

// alone compacts with nobody else there.
func (tr *trial) alone(ctx context.Context) (ops.Result, error) {
	res, err := tr.run(ctx, nil)
	if err != nil || res.Status == ops.Failed {
		return res, fmt.Errorf("compact: %w (%s)", err, res.Error)
	}
	if res.Status == ops.Finished {
		if len(res.Warnings) > 0 {
			return res, fmt.Errorf("warnings %q", res.Warnings)
		}
		if err := tr.predicted(res); err != nil {
			return res, err
		}
	}
	if err := tr.sound(ctx); err != nil {
		return res, err
	}
	if err := errors.Join(tr.tidy(), tr.applied(res)); err != nil {
		return res, err
	}
	return res, tr.settles(ctx, res)
}

// predicted compares what the plan said with what came of it.
func (tr *trial) predicted(res ops.Result) error {
	p, a := res.Predicted, *res.Actual
	if p.Before.DataFiles != a.Before.DataFiles || p.Before.DeleteFiles != a.Before.DeleteFiles {
		return fmt.Errorf("predicted from %+v, was %+v", p.Before, a.Before)
	}
	if res.Counters["units-dropped"] > 0 {
		return nil
	}
	if p.RowsExact && p.After.Rows != a.After.Rows || p.After.Rows < a.After.Rows {
		return fmt.Errorf("predicted %d rows (exact: %t), became %d", p.After.Rows, p.RowsExact, a.After.Rows)
	}
	return nil
}

// applied requires that no deleted row is left in a file if every file was to be
// rewritten.
func (tr *trial) applied(res ops.Result) error {
	head := tr.g.Head("")
	if tr.set["rewrite_all"] != "true" || tr.set["apply_deletes"] != "true" || tr.limited || len(res.Reasons) > 0 || head == nil {
		return nil
	}
	records := int64(0)
	for _, e := range head.DataFiles() {
		records += e.File.Records
	}
	if records != int64(len(head.Rows)) {
		return fmt.Errorf("the files have %d rows and the table %d", records, len(head.Rows))
	}
	return nil
}

// unsupported reports that a unit cannot be rewritten: it is tried by every run, which
// its journal shows.
func unsupported(res ops.Result) bool {
	return slices.ContainsFunc(res.Reasons, func(r ops.Reason) bool { return r.Code == "unsupported" })
}

// settles requires that planning again finds nothing; where a run was limited,
// after a few more.
func (tr *trial) settles(ctx context.Context, first ops.Result) error {
	most := 40 // and one for each file, as a limited run may take no more
	if head := tr.g.Head(""); head != nil {
		most += len(head.DataFiles())
	}
	for range most {
		before := tr.fl.Dump()
		res, err := tr.run(ctx, nil)
		if err != nil || res.Status == ops.Failed {
			return fmt.Errorf("compact again: %w (%s)", err, res.Error)
		}
		if res.Status == ops.NothingToDo {
			if changes := before.Changes(tr.fl.Dump()); len(changes) > 0 && !unsupported(res) {
				return fmt.Errorf("a run with nothing to do (%s %v) changed %v", res.Message, res.Reasons, changes)
			}
			return tr.sound(ctx)
		}
		if !tr.limited {
			return fmt.Errorf("the second run is no fixed point: %s, after %s\n%+v", res.Message, first.Message, res.Counters)
		}
	}
	return fmt.Errorf("%d runs did not settle the table", most)
}

// among compacts while the generator commits, and then alone.
func (tr *trial) among(ctx context.Context, act func(step func() error) error) error {
	acting := false // a step's own calls have gaps too
	step := func() error {
		if acting {
			return nil
		}
		acting = true
		defer func() { acting = false }()
		return tr.g.Step(ctx)
	}
	if err := act(step); err != nil {
		return err
	}
	if err := tr.sound(ctx); err != nil {
		return err
	}
	if err := tr.tidy(); err != nil {
		return err
	}
	// What overtaken units left is done by the next runs.
	tr.limited = true
	return tr.settles(ctx, ops.Result{})
}

// overtaken says that a run may fail so when others commit.
func overtaken(err error) bool {
	return err == nil || fault.Is(err, fault.Stale)
}

// loads says that the table is one that is not refused as a whole: v3 knows no
// snapshots without a manifest list.
func (tr *trial) loads() bool {
	return tr.g.Version() < 3 || !slices.ContainsFunc(tr.g.Snapshots(), func(s *model.Snapshot) bool { return s.List == "" })
}

func compactAlone(ctx context.Context, seed uint64, with tools) (rows int64, err error) {
	tr, err := newTrial(ctx, seed, with)
	if err != nil {
		return 0, fmt.Errorf("seed %d: %w", seed, err)
	}
	if !tr.loads() {
		return 0, nil
	}
	res, err := tr.alone(ctx)
	return res.Counters["rows-written"], tr.explain(err)
}

// compactAmongPeers has others commit between the plan and its execution, and
// once more at a random call of the run.
func compactAmongPeers(ctx context.Context, seed uint64, with tools) (rows int64, err error) {
	calls := 0
	{ // the same run undisturbed says how many calls there are
		tr, err := newTrial(ctx, seed, with)
		if err != nil {
			return 0, fmt.Errorf("seed %d: %w", seed, err)
		}
		if !tr.loads() {
			return 0, nil
		}
		before := tr.fl.Count()
		if _, err := tr.run(ctx, nil); err != nil {
			return 0, tr.explain(err)
		}
		calls = tr.fl.Count() - before
	}
	tr, err := newTrial(ctx, seed, with)
	if err != nil {
		return 0, fmt.Errorf("seed %d: %w", seed, err)
	}
	err = tr.among(ctx, func(step func() error) error {
		var failed error
		at := tr.fl.Count() + 1 + tr.rng.IntN(max(1, calls))
		if !chance(tr.rng, 4) {
			tr.fl.Before(at, func(filertest.Call) { failed = errors.Join(failed, step()) })
		}
		planned := 0
		if chance(tr.rng, 2) {
			planned = 1 + tr.rng.IntN(3)
		}
		res, err := tr.run(ctx, func(ops.Plan) error {
			for range planned {
				if err := step(); err != nil {
					failed = errors.Join(failed, err)
				}
			}
			return nil
		})
		rows = res.Counters["rows-written"]
		if failed != nil {
			return fmt.Errorf("the other writer: %w", failed)
		}
		if !overtaken(err) {
			return fmt.Errorf("compact among others: %w", err)
		}
		return nil
	})
	return rows, tr.explain(err)
}

// someSeeds are n from 0 on, or those of SEAICE_COMPACT_SEEDS ("200" or
// "50-200").
func someSeeds(t *testing.T, n int) (from, to uint64) {
	t.Helper()
	text := os.Getenv("SEAICE_COMPACT_SEEDS")
	if text == "" {
		return 0, uint64(measure.Rounds(n))
	}
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		a, b = "0", a
	}
	from, err := strconv.ParseUint(a, 10, 64)
	require.NoError(t, err)
	to, err = strconv.ParseUint(b, 10, 64)
	require.NoError(t, err)
	return from, to
}

// TestCompactRandomTables: any table, compacted in any way, reads as before in
// every snapshot, is clean, leaves no file behind and is a fixed point.
func TestCompactRandomTables(t *testing.T) {
	t.Parallel()
	from, to := someSeeds(t, 100)
	written := int64(0)
	for seed := from; seed < to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rows, err := compactAlone(t.Context(), seed, trialTools())
			require.NoError(t, err)
			written += rows
		})
	}
	require.True(t, written > 0 || to-from < 20, "nothing was ever written")
}

// TestCompactRandomTablesAmongWriters: others commit between plan and commit,
// and in the gaps between the calls of the run.
func TestCompactRandomTablesAmongWriters(t *testing.T) {
	t.Parallel()
	from, to := someSeeds(t, 60)
	for seed := from; seed < to; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			_, err := compactAmongPeers(t.Context(), seed, trialTools())
			require.NoError(t, err)
		})
	}
}

// TestProofCompactRandomTables tries new tables for SEAICE_PROOF.
func TestProofCompactRandomTables(t *testing.T) {
	text := os.Getenv("SEAICE_PROOF")
	if text == "" {
		t.Skip("a long proof; SEAICE_PROOF says how long")
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err)
	clk := clock.System()
	start := clk.Now()
	seed, n, written := uint64(start.UnixNano()), 0, int64(0)
	for clk.Now().Sub(start) < length {
		rows, err := compactAlone(t.Context(), seed+uint64(n), trialTools())
		require.NoError(t, err)
		written += rows
		rows, err = compactAmongPeers(t.Context(), seed+uint64(n), trialTools())
		require.NoError(t, err)
		written += rows
		n++
	}
	t.Logf("%d tables compacted alone and among writers from seed %d in %s, %d rows written", n, seed, clk.Now().Sub(start).Round(time.Second), written)
}
