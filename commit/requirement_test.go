package commit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	icego "github.com/apache/iceberg-go"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

// Evolution by id changes no file that is there; anything else does.
func TestReadableSchema(t *testing.T) {
	f := newFixture(t, 2)
	planned := iceberg.SchemaID(f.table.Schema().ID)
	check := func() error {
		v, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
		require.NoError(t, err)
		return commit.ReadableSchema{Schema: planned}.Check(v)
	}
	require.NoError(t, check())
	_, err := f.table.AddColumn(t.Context(), model.Column{Name: "n", Type: icego.PrimitiveTypes.Int32})
	require.NoError(t, err)
	require.NoError(t, check())
	require.NoError(t, f.table.RenameColumn(t.Context(), "name", "label"))
	require.NoError(t, check())
	require.NoError(t, f.table.DropColumn(t.Context(), "label"))
	require.NoError(t, check())
	planned = iceberg.SchemaID(f.table.Schema().ID)
	require.NoError(t, f.table.Promote(t.Context(), "n", icego.PrimitiveTypes.Int64))
	require.NoError(t, check())

	planned = iceberg.SchemaID(f.table.Schema().ID)
	require.NoError(t, f.table.Edit(t.Context(), func(doc map[string]any) {
		// A column that became narrower, as no engine may make it.
		doc["current-schema-id"] = int64(planned) - 1
	}))
	require.Equal(t, fault.Stale, fault.Of(check()))
	planned = 99
	require.Equal(t, fault.Stale, fault.Of(check()))
	require.Contains(t, commit.ReadableSchema{Schema: 3}.String(), "schema 3")
}

// The attempts of a run share a snapshot id, so that manifests made for one serve
// the next; an id that is in the table is never drawn again (F121).
func TestAttemptsShareASnapshotID(t *testing.T) {
	f := newFixture(t, 2)
	var ids []iceberg.SnapshotID
	a, err := begin(t, f.fl, "r1", commit.Options{Retries: 5}, func(v *iceberg.View) commit.Change {
		ch := relist(v)
		rebuild := ch.Rebuild
		ch.Rebuild = func(ctx context.Context, head *iceberg.View, st *commit.Stage) (commit.Next, error) {
			n, err := rebuild(ctx, head, st)
			if err == nil {
				ids = append(ids, n.Snapshot.ID)
			}
			return n, err
		}
		return ch
	})
	require.NoError(t, err)
	peers := 0
	f.fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Path == f.table.Record() && c.Op == filertest.OpUpdate && peers == 0 {
			peers++
			f.append(77)
		}
		return nil
	})
	res, err := a.commit(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Committed, res.Outcome)
	require.Len(t, ids, 2)
	require.Equal(t, ids[0], ids[1])
	require.Equal(t, ids[0], res.Snapshot)
	f.rows()
	v, err := iceberg.Load(t.Context(), f.fl, f.table.ID)
	require.NoError(t, err)
	sn, err := a.st.Begin(v, iceberg.MainBranch)
	require.NoError(t, err)
	require.NotEqual(t, ids[0], sn.ID)
}
