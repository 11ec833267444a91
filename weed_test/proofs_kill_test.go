package weed_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/check"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/worker"
)

// The child of TestWorkerKilledMidRun is told by these variables.
const (
	envFiler = "SEAICE_PROOF_FILER"
	envTable = "SEAICE_PROOF_TABLE"
	envDieAt = "SEAICE_PROOF_DIE_AT"
)

// killPoints is how many of the calls that write are tried, besides those
// around the swaps.
const killPoints = 6

// everyOperation is what the killed worker runs, with the shortest lease.
func everyOperation(id iceberg.TableID) worker.Request {
	return worker.Request{
		Table: id, Only: []ops.Kind{config.Compact, config.RewriteManifests, config.ExpireSnapshots},
		Layers: config.Layers{Flags: map[string]string{"journal_lease_minutes": "1"}},
	}
}

// TestWorkerKilledMidRun: the process is killed before one of its writes. The
// table reads as before, and whoever comes after the lease ends what was left.
func TestWorkerKilledMidRun(t *testing.T) {
	if os.Getenv(envFiler) != "" {
		dieMidRun(t)
		return
	}
	l := proofLake(t)
	// A run that nobody kills says which calls there are.
	whole := l.table(t, enough, expirable)
	whole.settled()
	out, err := whole.child(0)
	require.NoError(t, err, out)
	calls, swaps := parseCalls(t, out)
	require.Len(t, swaps, 3, "one swap for each operation")
	points := map[int]bool{}
	for _, s := range swaps {
		points[s], points[s+1] = true, true
	}
	for i := range killPoints {
		points[1+i*(calls-1)/(killPoints-1)] = true
	}
	var tables []*proofTable
	for range points {
		tables = append(tables, l.table(t, enough, expirable))
	}
	whole.settled()
	for i, at := range sortedKeys(points) {
		t.Run(fmt.Sprintf("before write %d of %d", at, calls), func(t *testing.T) {
			p := tables[i]
			rows := p.rows(icetable.MainBranch)
			out, err := p.child(at)
			if err == nil {
				// How often a lease is prolonged hangs on how long a run takes.
				writes, _ := parseCalls(t, out)
				require.Less(t, writes, at, out)
				t.Logf("it ended after %d writes", writes)
				return
			}
			require.Contains(t, err.Error(), "killed", out)
			require.Equal(t, rows, p.rows(icetable.MainBranch), "after the kill")
			p.sound()

			later := &later{Filer: l.fl, by: 2 * time.Minute}
			runner := runnerOn(later, later)
			results, err := runner.Run(t.Context(), everyOperation(p.id()))
			require.NoError(t, err)
			require.Len(t, results, 3)
			require.Equal(t, rows, p.rows(icetable.MainBranch), "after the run that found it")
			data, _ := p.files()
			require.Equal(t, 1, data)
			require.Len(t, p.manifests(), 1)
			require.Len(t, p.load().Metadata().Snapshots(), 1)
			for _, st := range p.openRuns(runner) {
				require.Equal(t, journal.Settled, st.Phase(), "only its leftovers wait until they are old enough")
				require.Equal(t, journal.Refused, st.Outcome())
			}
			// Past orphan_older_than_hours.
			later.by = 100 * time.Hour
			_, err = runner.Run(t.Context(), everyOperation(p.id()))
			require.NoError(t, err)
			require.Empty(t, p.openRuns(runner))
			require.Equal(t, rows, p.rows(icetable.MainBranch), "after the leftovers are gone")
			// What an expiry freed and could not remove any more is remove_orphans'.
			staged := p.staged(runner)
			require.NotEmpty(t, staged)
			for _, location := range p.unreferenced() {
				require.False(t, staged[location], "%s of a run that changed nothing is left behind", location)
			}
		})
	}
}

// sound requires that check finds no error in the table.
func (p *proofTable) sound() {
	p.t.Helper()
	v, err := iceberg.Load(p.t.Context(), p.l.fl, p.id())
	require.NoError(p.t, err)
	rep, err := check.Table(p.t.Context(), p.l.fl, v, check.Options{})
	require.NoError(p.t, err)
	require.True(p.t, rep.Clean(), "%+v", rep.Findings)
}

// openRuns are the journals of the table that are not closed.
func (p *proofTable) openRuns(r *worker.Runner) (open []*journal.State) {
	p.t.Helper()
	for st, err := range r.Journals().OpenRuns(p.t.Context(), p.load().Metadata().TableUUID().String()) {
		require.NoError(p.t, err)
		open = append(open, st)
	}
	return open
}

// staged are the files that any run wrote for the table, and whether the run came
// to nothing: those of others may since have been freed by an expiry.
func (p *proofTable) staged(r *worker.Runner) map[string]bool {
	p.t.Helper()
	out := map[string]bool{}
	for st, err := range r.Journals().Runs(p.t.Context(), p.load().Metadata().TableUUID().String()) {
		require.NoError(p.t, err)
		for path, err := range st.Staged(p.t.Context()) {
			require.NoError(p.t, err)
			if !path.Within(filer.BucketsRoot) {
				continue // movement maps are no files of the table
			}
			out["s3://"+path.Rel(filer.BucketsRoot)] = st.Outcome() == journal.Refused
		}
	}
	return out
}

func sortedKeys(m map[int]bool) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// child runs the operations on the table in another process, which kills
// itself before the given write; 0 is never.
func (p *proofTable) child(dieAt int) (string, error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorkerKilledMidRun$", "-test.v")
	cmd.Env = append(os.Environ(), envFiler+"="+p.l.Filer, envTable+"="+p.id().String(), envDieAt+"="+strconv.Itoa(dieAt))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// callsLine is how the child of a whole run reports.
const callsLine = "writes:"

func parseCalls(t *testing.T, out string) (calls int, swaps []int) {
	t.Helper()
	_, line, ok := strings.Cut(out, callsLine)
	require.True(t, ok, out)
	line, _, _ = strings.Cut(line, "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.Atoi(f)
		require.NoError(t, err)
		if i == 0 {
			calls = n
			continue
		}
		swaps = append(swaps, n)
	}
	return calls, swaps
}

func dieMidRun(t *testing.T) {
	id, err := iceberg.ParseTableID(os.Getenv(envTable))
	require.NoError(t, err)
	at, err := strconv.ParseInt(os.Getenv(envDieAt), 10, 64)
	require.NoError(t, err)
	fl, err := filer.Dial(t.Context(), filer.Config{Addresses: []string{os.Getenv(envFiler)}})
	require.NoError(t, err)
	defer fl.Close()
	m := &mortal{Filer: fl, dieAt: at}
	results, err := runnerOn(m, clock.System()).Run(t.Context(), everyOperation(id))
	require.NoError(t, err)
	for _, r := range results {
		require.Equal(t, ops.Finished, r.Status)
	}
	fmt.Fprintln(os.Stdout, callsLine, m.calls.Load(), strings.Trim(fmt.Sprint(m.swaps), "[]"))
}

// mortal is a filer whose process is killed before one of its writes.
type mortal struct {
	filer.Filer
	dieAt int64
	calls atomic.Int64
	swaps []int64
}

func (m *mortal) write() int64 {
	n := m.calls.Add(1)
	if n == m.dieAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail
		select {}
	}
	return n
}

func (m *mortal) Create(ctx context.Context, p filer.Path, o filer.CreateOptions) (filer.Upload, error) {
	u, err := m.Filer.Create(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return &mortalUpload{u, m}, nil
}

func (m *mortal) Put(ctx context.Context, p filer.Path, content []byte, o filer.CreateOptions) (*filer.Entry, error) {
	m.write()
	return m.Filer.Put(ctx, p, content, o)
}

func (m *mortal) Update(ctx context.Context, u filer.Update) (*filer.Entry, error) {
	n := m.write()
	if u.Set[iceberg.AttrMetadata] != nil {
		m.swaps = append(m.swaps, n)
	}
	return m.Filer.Update(ctx, u)
}

func (m *mortal) Patch(ctx context.Context, base *filer.Entry, set map[string][]byte, id string) error {
	m.write()
	return m.Filer.Patch(ctx, base, set, id)
}

func (m *mortal) Move(ctx context.Context, mv filer.Move) error {
	m.write()
	return m.Filer.Move(ctx, mv)
}

func (m *mortal) Delete(ctx context.Context, p filer.Path, g filer.Guard) error {
	m.write()
	return m.Filer.Delete(ctx, p, g)
}

func (m *mortal) Unlink(ctx context.Context, p filer.Path, g filer.Guard) error {
	m.write()
	return m.Filer.Unlink(ctx, p, g)
}

// mortalUpload counts the commit, which is when a file appears.
type mortalUpload struct {
	filer.Upload
	m *mortal
}

func (u *mortalUpload) Commit(ctx context.Context) (*filer.Entry, error) {
	u.m.write()
	return u.Upload.Commit(ctx)
}

// later is a filer, and its clock, some time from now.
type later struct {
	filer.Filer
	by time.Duration
}

func (l *later) Clock(ctx context.Context) (time.Time, error) {
	now, err := l.Filer.Clock(ctx)
	return now.Add(l.by), err
}

// Now and Sleep implement clock.Clock.
func (l *later) Now() time.Time { return clock.System().Now().Add(l.by) }

func (l *later) Sleep(ctx context.Context, d time.Duration) error {
	return clock.System().Sleep(ctx, d)
}
