package metrics_test

import (
	"fmt"
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/rewrite/metrics"
)

func TestModesAreReadAsPropertiesSpellThem(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "Counts": "counts", " FULL ": "full", "truncate(16)": "truncate(16)", "TRUNCATE( 4 )": "truncate(4)",
		"": "", "truncate(0)": "", "truncate(-1)": "", "truncate(x)": "", "truncate16": "", "truncate(99999999999)": "", "all": "",
	} {
		m, ok := metrics.ParseMode(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, m.String())
		}
	}
}

func nested(id int, name string, fields ...icego.NestedField) icego.NestedField {
	return icego.NestedField{ID: id, Name: name, Type: &icego.StructType{FieldList: fields}}
}

func field(id int, name string) icego.NestedField {
	return icego.NestedField{ID: id, Name: name, Type: types.Int32}
}

// TestF088ModesFollowTheTableAsInJava has the order in which columns get the
// usual mode: those of a struct before what is nested in it, and one struct after
// the other.
func TestF088ModesFollowTheTableAsInJava(t *testing.T) {
	s := icego.NewSchema(0,
		nested(1, "a1", field(2, "b1"), nested(3, "s1", field(4, "c1"))),
		nested(5, "a2", field(6, "b2"), nested(7, "s2", field(8, "c2"))),
		icego.NestedField{ID: 10, Name: "m", Type: &icego.MapType{KeyID: 11, KeyType: types.String, ValueID: 12, ValueType: types.String}},
		field(9, "a"))
	order := []iceberg.FieldID{9, 2, 4, 6, 8, 11, 12}
	for limit := range len(order) + 2 {
		c := metrics.NewConfig(map[string]string{metrics.LimitProperty: fmt.Sprint(limit)}, s, nil)
		for i, id := range order {
			want := "none"
			if i < limit {
				want = "truncate(16)"
			}
			require.Equal(t, want, c.Mode(id).String(), "column %d with a limit of %d", id, limit)
		}
	}

	many := make([]icego.NestedField, 150)
	for i := range many {
		many[i] = field(i+1, fmt.Sprintf("c%d", i+1))
	}
	wide := icego.NewSchema(0, many...)
	mode := func(properties map[string]string, id iceberg.FieldID) string {
		return metrics.NewConfig(properties, wide, &iceberg.SortOrder{ID: 1, Fields: []iceberg.SortField{
			{SourceIDs: []iceberg.FieldID{140}, Transform: icego.IdentityTransform{}},
			{SourceIDs: []iceberg.FieldID{141}, Transform: icego.BucketTransform{NumBuckets: 2}},
		}}).Mode(id).String()
	}
	require.Equal(t, "truncate(16)", mode(nil, 100))
	require.Equal(t, "none", mode(nil, 101))
	require.Equal(t, "truncate(16)", mode(nil, 140), "sorted by")
	require.Equal(t, "none", mode(nil, 141))
	require.Equal(t, "truncate(16)", mode(map[string]string{metrics.LimitProperty: "-1"}, 100))
	properties := map[string]string{
		metrics.DefaultProperty: "none", metrics.ColumnPrefix + "c2": "full", metrics.ColumnPrefix + "c3": "truncate(4)",
		metrics.ColumnPrefix + "c4": "no mode", metrics.ColumnPrefix + "gone": "full",
	}
	for id, want := range map[iceberg.FieldID]string{1: "none", 2: "full", 3: "truncate(4)", 4: "none", 140: "truncate(16)", 2147483540: "none"} {
		require.Equal(t, want, mode(properties, id))
	}
	require.Equal(t, "full", mode(map[string]string{metrics.DefaultProperty: "full"}, 140))
	require.Equal(t, "full", metrics.NewConfig(map[string]string{metrics.ColumnPrefix + "a1.s1.c1": "full"}, s, nil).Mode(4).String())
	require.Equal(t, "counts", metrics.NewConfig(map[string]string{metrics.ColumnPrefix + "m.key": "counts"}, s, nil).Mode(11).String())
}
