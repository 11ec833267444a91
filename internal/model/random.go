package model

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	icego "github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// RandomOptions bound what a Generator does.
type RandomOptions struct {
	// Versions to choose from; nil is 1, 2 and 3.
	Versions []int
	// Steps of Random; 0 is 12.
	Steps int
	// Rows is the most rows of one append; 0 is 12.
	Rows int
	// Columns is the most columns besides the key; 0 is 5.
	Columns int
	// Without are the names of steps that must not happen, see StepNames.
	Without []string
	// PlainStyle keeps to the plain style and spelling.
	PlainStyle bool
	// Varied makes deeply nested columns that change, and data files of many
	// layouts: pages of a few rows, both versions of pages, page indexes.
	Varied bool
	// Unpartitioned tables begin without a partition; "spec" among Without keeps
	// them so.
	Unpartitioned bool
	// Config is the base of the table's.
	Config Config
}

// Generator makes random steps on a table. All follows from the seed.
type Generator struct {
	*Table
	pcg *rand.PCG
	rng *rand.Rand
	o   RandomOptions
	key int64
	// named counts the partition fields named so far.
	named int
	// Log are the steps made, one line each.
	Log []string
}

// NewGenerator makes a table with a random schema, spec and style.
func NewGenerator(ctx context.Context, fl filer.Filer, seed uint64, o RandomOptions) (*Generator, error) {
	if o.Versions == nil {
		o.Versions = []int{1, 2, 3}
	}
	if o.Steps == 0 {
		o.Steps = 12
	}
	if o.Rows == 0 {
		o.Rows = 12
	}
	if o.Columns == 0 {
		o.Columns = 5
	}
	g := &Generator{pcg: rand.NewPCG(seed, 0x5ea1ce), o: o}
	g.rng = rand.New(g.pcg)
	cfg := o.Config
	cfg.Seed = seed
	cfg.Version = pick(g.rng, o.Versions)
	cfg.Schema = g.schema(cfg.Version)
	if !o.Unpartitioned {
		cfg.Spec = g.specText(cfg.Schema, nil)
	}
	if !o.PlainStyle {
		cfg.Style = pick(g.rng, []Style{Plain, Plain, JavaLike, Ours, DuckDBLike, LegacyJava, {NullCounts: true}, {Codec: "zstandard"}})
		cfg.Spelling = pick(g.rng, []Spelling{S3, S3, S3, S3, S3A, S3N, Absolute, BucketRelative, TableRelative, Escaped})
		cfg.EmbeddedManifests = cfg.Version == 1 && cfg.Spec == "" && g.chance(3)
		cfg.Registered = g.chance(4)
		cfg.LocationOnly = g.chance(4)
	}
	tb, err := NewTable(ctx, fl, cfg)
	if err != nil {
		return nil, err
	}
	g.Table = tb
	g.Log = append(g.Log, fmt.Sprintf("create v%d (%s) by [%s] style %+v spelling %d", cfg.Version, describeSchema(cfg.Schema), cfg.Spec, cfg.Style, cfg.Spelling))
	return g, nil
}

// Random makes a table and its random history of o.Steps steps.
func Random(ctx context.Context, fl filer.Filer, seed uint64, o RandomOptions) (*Generator, error) {
	g, err := NewGenerator(ctx, fl, seed, o)
	if err != nil {
		return nil, err
	}
	for range g.o.Steps {
		if err := g.Step(ctx); err != nil {
			return g, err
		}
	}
	return g, nil
}

// Fork is a generator in the same state over fl, which must hold the same files.
// Both make the same steps from now on, each on its own table; see Table.Fork.
func (g *Generator) Fork(fl filer.Filer) *Generator {
	out := *g
	out.Table, out.Log = g.Table.Fork(fl), slices.Clone(g.Log)
	pcg := *g.pcg
	out.pcg = &pcg
	out.rng = rand.New(out.pcg)
	return &out
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// chance is true once in n times.
func (g *Generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

func describeSchema(s *icego.Schema) string {
	var parts []string
	for _, f := range s.Fields() {
		parts = append(parts, fmt.Sprintf("%d %s %s", f.ID, f.Name, f.Type))
	}
	return strings.Join(parts, ", ")
}

// primitive is a random column type.
func (g *Generator) primitive(version int) icego.Type {
	types := []icego.Type{
		icego.BooleanType{}, icego.Int32Type{}, icego.Int64Type{}, icego.Float32Type{}, icego.Float64Type{}, icego.DecimalTypeOf(1+g.rng.IntN(30), 0),
		icego.DecimalTypeOf(9, 2), icego.DateType{}, icego.TimeType{}, icego.TimestampType{}, icego.TimestampTzType{}, icego.StringType{},
		icego.StringType{}, icego.UUIDType{}, icego.FixedTypeOf(1 + g.rng.IntN(20)), icego.BinaryType{},
	}
	if version >= 3 {
		types = append(types, icego.TimestampNsType{}, icego.TimestampTzNsType{})
	}
	return pick(g.rng, types)
}

func (g *Generator) schema(version int) *icego.Schema {
	fields := []icego.NestedField{{ID: 1, Name: "id", Type: icego.Int64Type{}, Required: true}}
	next := 2
	for i := range 1 + g.rng.IntN(g.o.Columns) {
		f := icego.NestedField{ID: next, Name: fmt.Sprintf("c%d", i), Type: g.primitive(version), Required: g.chance(4)}
		next++
		if g.o.Varied {
			f.Type = g.deepType(version, 3, &next)
			fields = append(fields, f)
			continue
		}
		switch g.rng.IntN(12) {
		case 0:
			f.Type = &icego.StructType{FieldList: []icego.NestedField{
				{ID: next, Name: "x", Type: g.primitive(version)}, {ID: next + 1, Name: "y", Type: g.primitive(version)},
			}}
			next += 2
		case 1:
			f.Type = &icego.ListType{ElementID: next, Element: g.primitive(version), ElementRequired: g.chance(2)}
			next++
		case 2:
			f.Type = &icego.MapType{KeyID: next, KeyType: icego.StringType{}, ValueID: next + 1, ValueType: g.primitive(version)}
			next += 2
		}
		fields = append(fields, f)
	}
	return icego.NewSchema(0, fields...)
}

// specText is a random spec over the schema. With old fields, v1's rule holds:
// none may go, they become void.
func (g *Generator) specText(s *icego.Schema, old []icego.PartitionField) string {
	var parts []string
	used := map[string]bool{}
	for _, f := range old {
		name, ok := s.FindColumnName(f.SourceID())
		if !ok {
			continue
		}
		used[name+" void"] = true
		parts = append(parts, fmt.Sprintf("void(%s) as %s", name, f.Name))
	}
	for range g.rng.IntN(3) {
		f := pick(g.rng, s.Fields())
		transforms := transformsOf(f.Type)
		if len(transforms) == 0 {
			continue
		}
		transform := pick(g.rng, transforms)
		kind, _, _ := strings.Cut(transform, "[")
		if used[f.Name+" "+kind] { // readers call the second one redundant
			continue
		}
		used[f.Name+" "+kind] = true
		g.named++
		name := fmt.Sprintf("p%d_%s", g.named, kind)
		if transform == "identity" {
			parts = append(parts, fmt.Sprintf("%s as %s", f.Name, name))
		} else {
			parts = append(parts, fmt.Sprintf("%s(%s) as %s", transform, f.Name, name))
		}
	}
	return strings.Join(parts, ", ")
}

func transformsOf(t icego.Type) []string {
	switch t.(type) {
	case icego.BooleanType:
		return []string{"identity", "void"}
	case icego.Int32Type, icego.Int64Type, icego.DecimalType:
		return []string{"identity", "bucket[3]", "truncate[10]", "void"}
	case icego.StringType, icego.BinaryType:
		return []string{"identity", "bucket[3]", "truncate[1]"}
	case icego.DateType:
		return []string{"identity", "bucket[2]", "year", "month", "day"}
	case icego.TimestampType, icego.TimestampTzType, icego.TimestampNsType, icego.TimestampTzNsType:
		return []string{"identity", "bucket[2]", "year", "month", "day", "hour"}
	case icego.TimeType, icego.UUIDType, icego.FixedType:
		return []string{"identity", "bucket[2]"}
	case icego.Float32Type, icego.Float64Type:
		return []string{"identity"}
	}
	return nil
}

// value is a random value of type t from a small domain with its corners, so
// that values meet again.
func (g *Generator) value(t icego.Type) Value {
	small := int64(g.rng.IntN(5))
	switch t := t.(type) {
	case icego.BooleanType:
		return small%2 == 0
	case icego.Int32Type:
		return pick(g.rng, []int32{int32(small), int32(small), int32(-small), math.MinInt32, math.MaxInt32})
	case icego.Int64Type:
		return pick(g.rng, []int64{small, small, -small, math.MinInt64, math.MaxInt64})
	case icego.Float32Type:
		return pick(g.rng, []float32{float32(small) / 2, float32(math.NaN()), float32(math.Copysign(0, -1)), 0, float32(math.Inf(-1)), math.MaxFloat32})
	case icego.Float64Type:
		return pick(g.rng, []float64{float64(small) / 2, math.NaN(), math.Copysign(0, -1), 0, math.Inf(1), -math.MaxFloat64})
	case icego.DecimalType:
		edge := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision())), nil)
		edge.Sub(edge, big.NewInt(1))
		n := pick(g.rng, []*big.Int{big.NewInt(small), big.NewInt(-small), edge, new(big.Int).Neg(edge)})
		return icego.Decimal{Val: decimal128.FromBigInt(n), Scale: t.Scale()}
	case icego.DateType:
		return pick(g.rng, []icego.Date{icego.Date(small), icego.Date(20_000 + small*40), -1, -719_162})
	case icego.TimeType:
		return pick(g.rng, []icego.Time{icego.Time(small), 86_399_999_999})
	case icego.TimestampType, icego.TimestampTzType:
		return pick(g.rng, []icego.Timestamp{icego.Timestamp(small), icego.Timestamp(1_700_000_000_000_000 + small*3_600_000_000*30), -1, -62_135_596_800_000_000})
	case icego.TimestampNsType, icego.TimestampTzNsType:
		return pick(g.rng, []icego.TimestampNano{icego.TimestampNano(small), icego.TimestampNano(1_700_000_000_000_000_001 + small*3_600_000_000_000*30), -1})
	case icego.StringType:
		return pick(g.rng, []string{"", "a", "b", "a/b=c?", "żółć 😀", strings.Repeat("long", 8) + fmt.Sprint(small), "\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF\U0010FFFF"})
	case icego.BinaryType:
		return pick(g.rng, [][]byte{{}, {0}, {byte(small), 255}, []byte(strings.Repeat("\xff", 20))})
	case icego.FixedType:
		return []byte(strings.Repeat(string([]byte{byte(small) + '0'}), t.Len()))
	case icego.UUIDType:
		return uuid.UUID{byte(small), 15: byte(small * 60)}
	}
	return g.nested(t)
}

func (g *Generator) nested(t icego.Type) Value {
	switch t := t.(type) {
	case *icego.StructType:
		row := Row{}
		for _, f := range t.FieldList {
			row[iceberg.FieldID(f.ID)] = g.orNull(f.Required, f.Type)
		}
		return row
	case *icego.ListType:
		list := []Value{}
		for range g.rng.IntN(3) {
			list = append(list, g.orNull(t.ElementRequired, t.Element))
		}
		return list
	case *icego.MapType:
		pairs := []Pair{}
		for i := range g.rng.IntN(3) {
			pairs = append(pairs, Pair{fmt.Sprintf("k%d", i), g.orNull(t.ValueRequired, t.ValueType)})
		}
		return pairs
	}
	return nil
}

func (g *Generator) orNull(required bool, t icego.Type) Value {
	if !required && g.chance(5) {
		return nil
	}
	return g.value(t)
}

// Rows are n new random rows. Keys count up; some are used again.
func (g *Generator) Rows(n int) []Row {
	out := make([]Row, n)
	for i := range out {
		row := Row{}
		for _, f := range g.Schema().Fields() {
			row[iceberg.FieldID(f.ID)] = g.orNull(f.Required, f.Type)
		}
		g.key++
		row[1] = g.key
		if g.chance(10) {
			row[1] = 1 + g.rng.Int64N(g.key)
		}
		out[i] = row
	}
	return out
}

// some are up to most random live rows of a branch.
func (g *Generator) some(branch string, most int) []RowID {
	head := g.Head(branch)
	if head == nil || len(head.Rows) == 0 {
		return nil
	}
	rows := slices.Clone(head.Rows)
	g.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows[:1+g.rng.IntN(min(most, len(rows)))]
}

// options are random options of a commit to a branch.
func (g *Generator) options(branch string) Options {
	o := Options{Branch: branch, Layout: Layout{
		Files: 1 + g.rng.IntN(3), RowGroupRows: pick(g.rng, []int{0, 0, 1, 4}), Codec: pick(g.rng, []string{"", "snappy", "gzip", "uncompressed"}),
		Plain: g.chance(3), NoMetrics: g.chance(8),
	}}
	o.MergeManifests, o.KeepDead = g.chance(5), g.chance(8)
	if g.o.Varied {
		g.vary(&o.Layout)
	}
	if !g.o.PlainStyle {
		o.Format = pick(g.rng, []string{"", "", "", "parquet"})
	}
	return o
}

// branch is main, mostly.
func (g *Generator) branch() string {
	if g.chance(4) {
		for _, r := range g.Refs() {
			if !r.Tag && r.Name != "main" {
				return r.Name
			}
		}
	}
	return ""
}
