package manifests_test

import (
	"bytes"
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests"
)

// world makes entries for rules: spec 0 has no fields, spec 1 is partitioned
// by an int, spec 2 by void fields only.
type world struct {
	t     *testing.T
	types map[iceberg.SpecID]*iceberg.PartitionType
	rules manifests.Rules
}

func newWorld(t *testing.T) world {
	w := world{t: t, types: map[iceberg.SpecID]*iceberg.PartitionType{}, rules: manifests.Rules{GlobalSpecs: map[iceberg.SpecID]bool{}}}
	for id, fields := range [][]partField{{}, {{"p", 3, icego.IdentityTransform{}}}, {{"v", 3, icego.VoidTransform{}}}} {
		_, parts := testSpec(t, id, testSchema(), fields...)
		w.types[iceberg.SpecID(id)] = parts.Type
		if parts.Type.Unpartitioned() {
			w.rules.GlobalSpecs[iceberg.SpecID(id)] = true
		}
	}
	return w
}

func (w world) entry(content manifests.Content, spec iceberg.SpecID, part any, path string, seq iceberg.SeqNum) *manifests.Entry {
	tuple, err := w.types[spec].TupleAt(func(int) any { return part })
	require.NoError(w.t, err)
	return &manifests.Entry{Status: manifests.Existing, DataSeq: manifests.Some(seq), File: manifests.File{
		Content: content, Path: path, Format: manifests.Parquet, SpecID: spec, Partition: tuple, Records: 1,
	}}
}

func (w world) data(spec iceberg.SpecID, part any, path string, seq iceberg.SeqNum) *manifests.Entry {
	if spec == 2 {
		part = nil
	}
	return w.entry(manifests.Data, spec, part, path, seq)
}

func refers(e *manifests.Entry, path string) *manifests.Entry {
	e.ReferencedDataFile = manifests.Some(path)
	return e
}

func vector(e *manifests.Entry, path string, offset int64) *manifests.Entry {
	e.Format, e.ContentOffset, e.ContentSize = manifests.Puffin, manifests.Some(offset), manifests.Some(int64(40))
	return refers(e, path)
}

func TestApplies(t *testing.T) {
	w := newWorld(t)
	eq := func(spec iceberg.SpecID, part any, seq iceberg.SeqNum) *manifests.Entry {
		return w.entry(manifests.EqualityDeletes, spec, part, "eq", seq)
	}
	pos := func(spec iceberg.SpecID, part any, seq iceberg.SeqNum) *manifests.Entry {
		return w.entry(manifests.PositionDeletes, spec, part, "pos", seq)
	}
	dead := func(e *manifests.Entry) *manifests.Entry { e.Status = manifests.Deleted; return e }
	unassigned := func(e *manifests.Entry) *manifests.Entry {
		e.DataSeq = manifests.Opt[iceberg.SeqNum]{}
		return e
	}
	d := func(seq iceberg.SeqNum) *manifests.Entry { return w.data(1, int32(5), "d", seq) }
	for _, c := range []struct {
		name string
		del  *manifests.Entry
		data *manifests.Entry
		want bool
	}{
		{"equality, older data", eq(1, int32(5), 3), d(2), true},
		{"equality, data of the same commit", eq(1, int32(5), 3), d(3), false},
		{"equality, newer data", eq(1, int32(5), 3), d(4), false},
		{"equality, other partition", eq(1, int32(6), 3), d(2), false},
		{"equality, null partition is one of its own", eq(1, nil, 3), d(2), false},
		{"equality, null equals null", eq(1, nil, 3), w.data(1, nil, "d", 2), true},
		{"equality, without fields: the whole table", eq(0, nil, 3), d(2), true},
		{"equality, void fields only: the whole table", eq(2, nil, 3), d(2), true},
		{"equality, partitioned, data of another spec", eq(1, int32(5), 3), w.data(0, nil, "d", 2), false},
		{"position, older data", pos(1, int32(5), 3), d(2), true},
		{"position, data of the same commit", pos(1, int32(5), 3), d(3), true},
		{"position, newer data", pos(1, int32(5), 3), d(4), false},
		{"position, other partition", pos(1, int32(6), 3), d(2), false},
		{"position, without fields is not global", pos(0, nil, 3), d(2), false},
		{"position, void fields are not global", pos(2, nil, 3), w.data(2, nil, "d", 2), true},
		{"position, refers to it", refers(pos(1, int32(5), 3), "d"), d(2), true},
		{"position, refers to another", refers(pos(1, int32(5), 3), "e"), d(2), false},
		{"vector", vector(pos(1, int32(5), 3), "d", 4), d(3), true},
		{"vector, newer data", vector(pos(1, int32(5), 3), "d", 4), d(4), false},
		{"vector, another file", vector(pos(1, int32(5), 3), "e", 4), d(3), false},
		{"vector, other partition", vector(pos(1, int32(6), 3), "d", 4), d(3), false},
		{"deleted delete", dead(eq(1, int32(5), 3)), d(2), false},
		{"deleted data", eq(1, int32(5), 3), dead(d(2)), false},
		{"a delete is no data", eq(1, int32(5), 3), eq(1, int32(5), 2), false},
		{"data does not apply", d(3), d(2), false},
		{"delete of this commit", unassigned(eq(1, int32(5), 0)), d(2), true},
		{"data of this commit, older equality delete", eq(1, int32(5), 3), unassigned(d(0)), false},
		{"both of this commit, equality", unassigned(eq(1, int32(5), 0)), unassigned(d(0)), false},
		{"both of this commit, position", unassigned(pos(1, int32(5), 0)), unassigned(d(0)), true},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, w.rules.Applies(c.del, c.data)) })
	}
	noPath := vector(pos(1, int32(5), 3), "d", 4)
	noPath.ReferencedDataFile = manifests.Opt[string]{}
	require.False(t, w.rules.Applies(noPath, d(2)))
}

func TestDangling(t *testing.T) {
	w := newWorld(t)
	bounded := func(e *manifests.Entry, lower, upper string) *manifests.Entry {
		e.Lower = manifests.Bounds{{Column: 2147483546, Value: []byte(lower)}}
		e.Upper = manifests.Bounds{{Column: 2147483546, Value: []byte(upper)}}
		return e
	}
	eq := func(spec iceberg.SpecID, part any, seq iceberg.SeqNum) *manifests.Entry {
		return w.entry(manifests.EqualityDeletes, spec, part, "eq", seq)
	}
	pos := func(spec iceberg.SpecID, part any, seq iceberg.SeqNum) *manifests.Entry {
		return w.entry(manifests.PositionDeletes, spec, part, "pos", seq)
	}
	live := []*manifests.Entry{
		w.data(1, int32(5), "a", 4), w.data(1, int32(5), "b", 8), w.data(1, int32(6), "c", 8), w.data(0, nil, "d", 6),
	}
	gone := w.data(1, int32(7), "gone", 1)
	gone.Status = manifests.Deleted
	unassigned := eq(1, int32(7), 0)
	unassigned.DataSeq = manifests.Opt[iceberg.SeqNum]{}
	for _, c := range []struct {
		name string
		del  *manifests.Entry
		want bool
	}{
		{"equality above the oldest", eq(1, int32(5), 5), false},
		{"equality at the oldest", eq(1, int32(5), 4), true},
		{"equality, partition without files", eq(1, int32(7), 99), true},
		{"global equality", eq(0, nil, 5), false},
		{"global equality at the oldest", eq(0, nil, 4), true},
		{"void equality is global", eq(2, nil, 5), false},
		{"position at the oldest", pos(1, int32(5), 4), false},
		{"position below the oldest", pos(1, int32(5), 3), true},
		{"position, partition without files", pos(1, int32(7), 99), true},
		{"position refers to a live file", refers(pos(1, int32(5), 4), "a"), false},
		{"position refers to a newer file", refers(pos(1, int32(5), 7), "b"), true},
		{"position refers to a file that is gone", refers(pos(1, int32(5), 9), "gone"), true},
		{"position refers to a file of another partition", refers(pos(1, int32(6), 9), "a"), true},
		{"position, equal bounds, live", bounded(pos(1, int32(5), 9), "a", "a"), false},
		{"position, equal bounds, gone", bounded(pos(1, int32(5), 9), "x", "x"), true},
		{"position, unequal bounds", bounded(pos(1, int32(5), 9), "x", "y"), false},
		{"vector, live", vector(pos(1, int32(5), 9), "b", 4), false},
		{"vector, gone", vector(pos(1, int32(5), 9), "gone", 4), true},
		{"not assigned yet", unassigned, false},
		{"data", w.data(1, int32(7), "z", 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := manifests.NewLiveness(w.rules)
			l.Watch(c.del)
			for _, e := range append(live, gone) {
				l.See(e)
			}
			require.Equal(t, c.want, l.Dangling(c.del))
			// A delete that is dangling applies to no live file it can name.
			if c.want {
				for _, e := range live {
					if path, ok := c.del.Target(); ok && path != e.Path {
						continue
					}
					require.False(t, w.rules.Applies(c.del, e), e.Path)
				}
			}
		})
	}
}

// TestF019VectorsShareAFile: identity is path, offset and size, so removing two
// vectors of a shared Puffin file leaves the third.
func TestF019VectorsShareAFile(t *testing.T) {
	w := newWorld(t)
	_, parts := testSpec(t, 1, testSchema(), partField{"p", 3, icego.IdentityTransform{}})
	var out bytes.Buffer
	mw, err := manifests.NewWriter(&out, manifests.WriterOptions{Path: "m", Version: 3, Content: manifests.DeleteManifest, Partitioning: parts, SnapshotID: 7})
	require.NoError(t, err)
	var ids []manifests.DeleteID
	for i := range 3 {
		e := vector(w.entry(manifests.PositionDeletes, 1, int32(5), "s3://b/shared.puffin", 0), fmt.Sprintf("d%d", i), int64(4+40*i))
		e.DataSeq = manifests.Opt[iceberg.SeqNum]{}
		ids = append(ids, e.DeleteID())
		require.NoError(t, mw.Add(e))
	}
	require.NotEqual(t, ids[0], ids[1])
	m, err := mw.Close()
	require.NoError(t, err)
	list, _ := writeList(t, manifests.ListOptions{Version: 3, SnapshotID: 7, Seq: 3}, m)
	gone := map[manifests.DeleteID]bool{ids[0]: true, ids[1]: true}
	r, err := manifests.NewReader(t.Context(), bytes.NewReader(out.Bytes()), list[0], manifests.ReadOptions{Projection: manifests.ProjectPath})
	require.NoError(t, err)
	var sink bytes.Buffer
	next, err := manifests.NewWriter(&sink, manifests.WriterOptions{Path: "n", Version: 3, Content: manifests.DeleteManifest, Partitioning: parts, SnapshotID: 8})
	require.NoError(t, err)
	res, err := manifests.Filter(r, next, func(e *manifests.Entry) (manifests.Verdict, error) {
		if gone[e.DeleteID()] {
			return manifests.Remove, nil
		}
		return manifests.Keep, nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, res.Removed)
	m, err = next.Close()
	require.NoError(t, err)
	_, theirs := writeList(t, manifests.ListOptions{Version: 3, SnapshotID: 8, Seq: 4}, m)
	for _, e := range icegoEntries(t, theirs[0], sink.Bytes()) {
		if *e.DataFile().ReferencedDataFile() == "d2" {
			require.Equal(t, icego.EntryStatusEXISTING, e.Status())
			require.EqualValues(t, 84, *e.DataFile().ContentOffset())
		} else {
			require.Equal(t, icego.EntryStatusDELETED, e.Status())
		}
	}
}

// TestF020TwoVectorsForOneFile are found and named.
func TestF020TwoVectorsForOneFile(t *testing.T) {
	w := newWorld(t)
	v := manifests.Vectors{}
	one := vector(w.entry(manifests.PositionDeletes, 1, int32(5), "a.puffin", 3), "d", 4)
	require.NoError(t, v.Add(one))
	require.NoError(t, v.Add(vector(w.entry(manifests.PositionDeletes, 1, int32(5), "a.puffin", 3), "e", 44)))
	err := v.Add(vector(w.entry(manifests.PositionDeletes, 1, int32(5), "b.puffin", 4), "d", 4))
	require.ErrorIs(t, err, manifests.ErrTwoVectors)
	require.Equal(t, fault.Corrupt, fault.Of(err))
	require.ErrorContains(t, err, "a.puffin")
	require.ErrorContains(t, err, "b.puffin")
	one.ReferencedDataFile = manifests.Opt[string]{}
	require.Equal(t, fault.Corrupt, fault.Of(v.Add(one)))
}

func TestRulesFor(t *testing.T) {
	m, err := iceberg.ParseMetadata([]byte(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",
 "last-sequence-number":0,"last-updated-ms":1,"last-column-id":1,"current-schema-id":0,
 "schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":false,"type":"long"}]}],
 "default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]},{"spec-id":1,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]},
 {"spec-id":2,"fields":[{"name":"x","transform":"void","source-id":1,"field-id":1000}]}],"last-partition-id":1000,
 "default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}]}`))
	require.NoError(t, err)
	rules, err := manifests.RulesFor(m)
	require.NoError(t, err)
	require.Equal(t, map[iceberg.SpecID]bool{0: true, 2: true}, rules.GlobalSpecs)
	for _, spec := range []iceberg.SpecID{0, 1, 2} {
		p, err := manifests.PartitioningOf(m, spec)
		require.NoError(t, err)
		b, file := added(t, 2, p, nil)
		require.Equal(t, spec, file.SpecID)
		require.Len(t, partitionSchema(t, b).Fields, len(p.Type.Fields))
	}
	_, err = manifests.PartitioningOf(m, 9)
	require.Error(t, err)
}
