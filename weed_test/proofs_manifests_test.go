package weed_test

import (
	"slices"
	"testing"

	icego "github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/ops"
)

// enough commits for the default of min_manifests_to_rewrite.
const enough = 6

// rewritten requires that Seaice merges the manifests of the table and that
// every branch reads as before.
func (p *proofTable) rewritten(fl filer.Filer, branches ...string) ops.Result {
	p.t.Helper()
	branches = append(branches, icetable.MainBranch)
	before := map[string][]string{}
	for _, b := range branches {
		before[b] = p.rows(b)
		require.NotEmpty(p.t, before[b])
	}
	require.Greater(p.t, len(p.manifests()), 1)
	res := p.run(fl, config.RewriteManifests)
	require.Equal(p.t, ops.Finished, res.Status, res.Error)
	require.Equal(p.t, commit.Committed, res.Commit.Outcome)
	require.Empty(p.t, res.Warnings)
	require.Len(p.t, p.manifests(), 1)
	require.Equal(p.t, icetable.OpReplace, p.load().CurrentSnapshot().Summary.Operation)
	for _, b := range branches {
		require.Equal(p.t, before[b], p.rows(b))
	}
	return res
}

// P3: a commit on another branch takes a sequence number that the head of main
// does not have.
func TestP3OtherBranch(t *testing.T) {
	l := proofLake(t)
	const branch = "audit"
	shape := func() *proofTable {
		p := l.table(t, enough, nil)
		head := p.load().CurrentSnapshot()
		_, _, err := l.cat.CommitTable(t.Context(), p.ident(), nil, []icetable.Update{
			icetable.NewSetSnapshotRefUpdate(branch, head.SnapshotID, icetable.BranchRef, 0, 0, 0),
		})
		require.NoError(t, err)
		p.write(branch)
		require.Equal(t, head.SnapshotID, p.load().CurrentSnapshot().SnapshotID, "main has not moved")
		return p
	}
	theirs := shape()
	require.ErrorContains(t, l.builtin(t).rewriteManifests(theirs), "sequence number")
	require.Len(t, theirs.manifests(), enough)

	shape().rewritten(l.fl, branch)
}

// P4: rewrite_manifests of a v1 table.
func TestP4V1RewriteManifests(t *testing.T) {
	l := proofLake(t)
	v1 := icego.Properties{"format-version": "1"}
	theirs := l.table(t, enough, v1)
	require.Equal(t, 1, theirs.load().Metadata().Version())
	require.ErrorContains(t, l.builtin(t).rewriteManifests(theirs), "snapshot id")
	require.Len(t, theirs.manifests(), enough)

	ours := l.table(t, enough, v1)
	ours.rewritten(l.fl)
	require.Equal(t, 1, ours.load().Metadata().Version())
}

// P5: tables that another catalog wrote and this one registered have metadata
// files named after no version, or after one that counts from 0.
func TestP5RegisteredNames(t *testing.T) {
	l := proofLake(t)
	for _, name := range []string{
		"00000-8f0f6f0e-52a1-4f6e-9d0b-3b8d6c1d7a11.metadata.json",
		"3f2504e0-4f89-41d3-9a0c-0305e82c3301.metadata.json",
	} {
		t.Run(name, func(t *testing.T) {
			theirs := registered(t, l, name)
			require.Error(t, l.builtin(t).rewriteManifests(theirs))
			require.Len(t, theirs.manifests(), enough)
			require.Contains(t, theirs.load().MetadataLocation(), name, "nothing was committed")

			registered(t, l, name).rewritten(l.fl)
		})
	}
}

// registered is a table that is known only by a metadata file of that name.
func registered(t *testing.T, l *lake, name string) *proofTable {
	t.Helper()
	source := l.table(t, enough, nil)
	at := source.load()
	from := filer.BucketsRoot.Join(locationParts(t, at.MetadataLocation())...)
	content, _, err := filer.ReadAll(t.Context(), l.fl, from, 1<<20)
	require.NoError(t, err)
	p := &proofTable{t: t, l: l, name: source.name + "-registered", next: source.next}
	to := filer.BucketPath(lakeBucket).Join(lakeNamespace, p.name+"-files", "metadata", name)
	_, err = l.fl.Put(t.Context(), to, content, filer.CreateOptions{Mime: "application/json"})
	require.NoError(t, err)
	_, err = l.cat.RegisterTable(t.Context(), p.ident(), "s3://"+to.Rel(filer.BucketsRoot))
	require.NoError(t, err)
	p.dropped()
	return p
}

// P11: a file that was there before a manifest is rewritten exists; it is not
// added again.
func TestP11ExistingStatus(t *testing.T) {
	l := proofLake(t)
	theirs := l.table(t, enough, nil)
	require.NoError(t, l.builtin(t).rewriteManifests(theirs))
	require.Equal(t, icetable.OpReplace, theirs.load().CurrentSnapshot().Summary.Operation)
	for file, e := range theirs.entries() {
		require.Equal(t, icego.EntryStatusADDED, e.Status(), "%s: the built-in worker writes it as added by a snapshot that adds nothing", file)
	}

	ours := l.table(t, enough, nil)
	before := ours.entries()
	ours.rewritten(l.fl)
	after := ours.entries()
	require.Len(t, after, len(before))
	for file, was := range before {
		e := after[file]
		require.NotNil(t, e, file)
		require.Equal(t, icego.EntryStatusEXISTING, e.Status(), file)
		require.Equal(t, was.SnapshotID(), e.SnapshotID(), file)
		require.Equal(t, was.SequenceNum(), e.SequenceNum(), file)
		require.Equal(t, was.DataFile().Count(), e.DataFile().Count(), file)
	}
	m := ours.manifests()
	require.Equal(t, int32(len(before)), m[0].ExistingDataFiles())
	require.Zero(t, m[0].AddedDataFiles())
	added := slices.ContainsFunc(m, func(f icego.ManifestFile) bool { return f.SnapshotID() != ours.load().CurrentSnapshot().SnapshotID })
	require.False(t, added, "the manifest is the new snapshot's")
}
