package compact_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops"
	"github.com/seaice/seaice/ops/compact"
)

// stories runs those of the golden files that name a known failure.
func stories(t *testing.T, known string) {
	t.Helper()
	dir, err := os.ReadDir("testdata")
	require.NoError(t, err)
	n := 0
	for _, f := range dir {
		if !strings.HasSuffix(f.Name(), ".txt") {
			continue
		}
		text, err := os.ReadFile("testdata/" + f.Name())
		require.NoError(t, err)
		for story := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			given, want, _ := strings.Cut(story+"\n", "----\n")
			if strings.Contains(given, known) {
				require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(tell(t, parse(t, given))), "%s", given)
				n++
			}
		}
	}
	require.Positive(t, n, "no story names %s", known)
}

// F001: a file is in a plan whole or not at all, and one that would become one
// file again is not.
func TestF001PlanTakesFilesWhole(t *testing.T) { stories(t, "F001") }

// F009: equality deletes apply to strictly older data, position deletes also to
// data of their own commit.
func TestF009PlannedDeletesBySequence(t *testing.T) { stories(t, "F009") }

// F010: equality deletes stay in their partition, but for specs without fields.
func TestF010PlannedDeletesByPartition(t *testing.T) { stories(t, "F010") }

// F013: position and equality deletes of one file are both planned.
func TestF013PlannedDeletesOfBothKinds(t *testing.T) { stories(t, "F013") }

// F016: split offsets that are missing, empty or outside of the file split
// nothing.
func TestF016SplitOffsetsAreChecked(t *testing.T) { stories(t, "F016") }

// F019: vectors that share a Puffin file are told apart.
func TestF019VectorsByOffset(t *testing.T) { stories(t, "F019") }

// F020: a table with two vectors for one file is refused.
func TestF020TwoVectorsAreRefused(t *testing.T) { stories(t, "F020") }

// F089: formats are known in any case, and what is not Parquet is counted.
func TestF089FormatsInAnyCase(t *testing.T) { stories(t, "F089") }

// F099: encrypted files are refused.
func TestF099EncryptedFilesAreRefused(t *testing.T) { stories(t, "F099") }

// F132: deletes leave when they are proved dead.
func TestF132PredictedDeletes(t *testing.T) { stories(t, "F132") }

// F139: empty files and files whose rows are all deleted leave no file.
func TestF139EmptyFilesArePlannedAway(t *testing.T) { stories(t, "no file comes out") }

// P8: what must not have its deletes applied is not planned, each time anew.
func TestP8DeletesNotApplied(t *testing.T) { stories(t, "P8") }

// scene plans on a table of the model.
func scene(t *testing.T, fl *filertest.Filer, set map[string]string, bind compact.Bind) (*compact.Plan, error) {
	t.Helper()
	v, err := iceberg.Load(t.Context(), fl, id)
	require.NoError(t, err)
	s, err := config.Resolve(config.Layers{Flags: set, Properties: v.Metadata.Properties}, id.String())
	require.NoError(t, err)
	return compact.NewPlanner(bind).Plan(t.Context(), ops.Input{View: v, Reader: fl, Settings: s, Now: fl.Virtual().Now()})
}

// F012, P26: an equality delete by a column that was dropped since is planned.
func TestF012PlanWithDroppedKey(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{ID: id, Version: 2, Schema: model.Columns(t, "id long!, data string"), Seed: 5})
	s.File(s.R(int64(1), "keep"), s.R(int64(2), "del"))
	s.EqualityDelete([]string{"data"}, s.R(int64(0), "del"))
	s.Do(s.DropColumn(t.Context(), "data"))
	s.File(s.R(int64(3)))
	p, err := scene(t, fl, map[string]string{"min_input_files": "2"}, nil)
	require.NoError(t, err)
	require.Len(t, p.Units(), 1)
	require.Equal(t, []compact.Applied{{Delete: 0, Inputs: []int{0}}}, p.Units()[0].Deletes)
	require.Equal(t, []iceberg.FieldID{2}, p.Deletes()[0].EqualityIDs)
	require.EqualValues(t, 0, p.Head().Effects.After.DeleteFiles)
}

// F084: manifests that v1 metadata names itself are read, and their files have
// the sequence number 0.
func TestF084PlanWithEmbeddedManifests(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{ID: id, Version: 1, EmbeddedManifests: true, Spec: "name", Seed: 5})
	for n := range 3 {
		s.Append(s.R(int64(n), "a"), s.R(int64(n+10), "b"))
	}
	p, err := scene(t, fl, map[string]string{"min_input_files": "2"}, nil)
	require.NoError(t, err)
	require.Len(t, p.Units(), 2)
	for _, u := range p.Units() {
		require.Len(t, u.Inputs, 3)
		require.Zero(t, u.Inputs[0].DataSeq)
		require.Nil(t, u.Inputs[0].FirstRowID)
	}
	require.EqualValues(t, 6, p.Head().Effects.Before.DataFiles)
	require.EqualValues(t, 6, p.Head().Effects.Before.Rows)
}

// In v3 an input is known by its effective first row id, too.
func TestPlanHasRowIDs(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{ID: id, Version: 3, Seed: 5})
	var want []int64
	for n := range 3 {
		s.File(s.R(int64(2*n), "a"), s.R(int64(2*n+1), "b"))
		want = append(want, int64(2*n))
	}
	p, err := scene(t, fl, map[string]string{"min_input_files": "2"}, nil)
	require.NoError(t, err)
	var got []int64
	for _, in := range p.Units()[0].Inputs {
		got = append(got, *in.FirstRowID)
	}
	require.Equal(t, want, got)
}

// P3: a branch is planned by its own head.
func TestP3PlanOfABranch(t *testing.T) {
	fl := filertest.New(filertest.Options{})
	s := model.NewScene(t, fl, model.Config{ID: id, Version: 2, Seed: 5})
	s.Append(s.R(int64(1), "a"))
	s.Branch("dev")
	for n := range 5 {
		s.AppendWith(model.Options{Branch: "dev"}, s.R(int64(n), "b"))
	}
	p, err := scene(t, fl, nil, nil)
	require.NoError(t, err)
	require.True(t, p.Empty())
	p, err = scene(t, fl, map[string]string{"branch": "dev"}, nil)
	require.NoError(t, err)
	require.Len(t, p.Units()[0].Inputs, 6)
	require.Equal(t, "dev", p.Head().Base.Branch)
	require.Equal(t, s.Head("dev").Seq, p.Head().Base.Sequence)
	_, err = scene(t, fl, map[string]string{"branch": "gone"}, nil)
	require.ErrorContains(t, err, "gone")
}

// A table that writes under a transform nobody here knows is refused; an old spec
// of the kind costs only its own files.
func TestPlanUnderUnknownTransforms(t *testing.T) {
	for _, current := range []bool{true, false} {
		w := (&sketch{version: 2, specs: []string{"region", "day"}, seq: 2, settings: map[string]string{}, files: append(
			repeat(5, sketchFile{name: "a", in: []string{"eu"}, bytes: 1 << 20, rows: 10, seq: 1, format: manifests.Parquet}),
			repeat(5, sketchFile{name: "b", spec: 1, in: []string{"7"}, bytes: 1 << 20, rows: 10, seq: 1, format: manifests.Parquet})...,
		)}).write(t)
		w.respec(t, map[bool]int{true: 1, false: 0}[current], "zigzag[3]")
		p, err := w.plan()
		if current {
			require.Equal(t, fault.Unsupported, fault.Of(err))
			require.ErrorContains(t, err, "zigzag")
			continue
		}
		require.NoError(t, err)
		require.Len(t, p.Units(), 1)
		require.Equal(t, "unwritable-spec", p.Head().Reasons[0].Code)
		require.Contains(t, p.Head().Reasons[0].Text, "zigzag")
		require.EqualValues(t, 5, p.Head().Reasons[0].Count)
	}
}

// respec gives the fields of a spec another transform.
func (w *world) respec(t *testing.T, spec int, transform string) {
	t.Helper()
	require.NoError(t, w.scene.Edit(t.Context(), func(doc map[string]any) {
		for _, f := range doc["partition-specs"].([]any)[spec].(map[string]any)["fields"].([]any) {
			f.(map[string]any)["transform"] = transform
		}
	}))
}

func repeat(n int, f sketchFile) []sketchFile {
	var out []sketchFile
	for i := range n {
		f.name = fmt.Sprintf("%.1s%d", f.name, i+1)
		out = append(out, f)
	}
	return out
}

// regions selects partitions of the field region by value; a spec without the
// field cannot decide.
type regions struct {
	want  string
	asked int
}

func (r *regions) field(t *iceberg.PartitionType) int {
	return slices.IndexFunc(t.Fields, func(f iceberg.PartitionField) bool { return f.Name == "region" })
}

func (r *regions) Manifest(t *iceberg.PartitionType, s []manifests.FieldSummary) bool {
	r.asked++
	i := r.field(t)
	return s == nil || i < 0 || string(s[i].Lower) <= r.want && r.want <= string(s[i].Upper)
}

func (r *regions) Partition(t *iceberg.PartitionType, tuple iceberg.Tuple) compact.Selection {
	switch i := r.field(t); {
	case i < 0:
		return compact.Undecided
	case tuple.At(i).String() == r.want:
		return compact.Selected
	}
	return compact.Excluded
}

// A condition restricts the plan, is asked about manifests before they are read,
// and leaves the prediction of deletes right for what was not looked at.
func TestPlanWhere(t *testing.T) {
	s := &sketch{version: 2, specs: []string{"day", "region"}, seq: 5, split: 5, settings: map[string]string{"where": "region = 'eu'"}}
	s.files = slices.Concat(
		repeat(5, sketchFile{name: "a", spec: 1, in: []string{"eu"}, bytes: 1 << 20, rows: 10, seq: 2, format: manifests.Parquet}),
		repeat(5, sketchFile{name: "b", spec: 1, in: []string{"us"}, bytes: 1 << 20, rows: 10, seq: 2, format: manifests.Parquet}),
		repeat(5, sketchFile{name: "c", in: []string{"3"}, bytes: 1 << 20, rows: 10, seq: 2, format: manifests.Parquet}),
	)
	s.deletes = []sketchDelete{
		{name: "p", content: manifests.PositionDeletes, spec: 1, in: []string{"eu"}, rows: 1, seq: 3, format: manifests.Parquet},
		{name: "q", content: manifests.PositionDeletes, spec: 1, in: []string{"us"}, rows: 1, seq: 3, format: manifests.Parquet},
	}
	r := &regions{want: "eu"}
	s.bind = func(where string, _ *iceberg.Metadata) (compact.Selector, error) {
		require.Equal(t, "region = 'eu'", where)
		return r, nil
	}
	w := s.write(t)
	var opened []string
	w.fl.OnCall(func(c filertest.Call) *filertest.Fault {
		if c.Op == filertest.OpOpen {
			opened = append(opened, c.Path.Name())
		}
		return nil
	})
	p, err := w.plan()
	require.NoError(t, err)
	require.Len(t, p.Units(), 1)
	require.Equal(t, "region=eu", p.Units()[0].Label)
	require.Positive(t, r.asked)
	for _, name := range opened {
		require.NotEqual(t, "m-1-data-5.avro", name, "its summary excludes it")
	}
	require.Equal(t, []string{"not-selected", "where-undecided"}, codes(p))
	e := p.Head().Effects
	require.EqualValues(t, 15, e.Before.DataFiles)
	require.EqualValues(t, 11, e.After.DataFiles)
	require.EqualValues(t, 2, e.Before.DeleteFiles)
	require.EqualValues(t, 1, e.After.DeleteFiles)

	s.bind = func(string, *iceberg.Metadata) (compact.Selector, error) {
		return nil, fault.New(fault.Unsupported, "no such field")
	}
	before := len(opened)
	_, err = w.plan()
	require.ErrorContains(t, err, "no such field")
	for _, name := range opened[before:] {
		require.False(t, strings.HasSuffix(name, ".avro"), "an error before any work")
	}
}

func codes(p *compact.Plan) []string {
	var out []string
	for _, r := range p.Head().Reasons {
		out = append(out, r.Code)
	}
	return out
}

// A plan that was tampered with is refused and never followed.
func TestDecodeChecksPlans(t *testing.T) {
	p, err := parse(t, "file a*6 size=1M\npositions p of=a1 rows=1\nequality e rows=1\n").write(t).plan()
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	unit := func(d map[string]any) map[string]any { return d["units"].([]any)[0].(map[string]any) }
	input := func(d map[string]any) map[string]any { return unit(d)["inputs"].([]any)[0].(map[string]any) }
	for name, spoil := range map[string]func(d map[string]any){
		"no target":          func(d map[string]any) { d["options"].(map[string]any)["target-bytes"] = 0 },
		"no unit target":     func(d map[string]any) { unit(d)["target-bytes"] = -1 },
		"no id":              func(d map[string]any) { unit(d)["id"] = "" },
		"no inputs":          func(d map[string]any) { unit(d)["inputs"] = []any{} },
		"a unit twice":       func(d map[string]any) { d["units"] = append(d["units"].([]any), unit(d)) },
		"an input twice":     func(d map[string]any) { unit(d)["inputs"] = append(unit(d)["inputs"].([]any), input(d)) },
		"no manifest":        func(d map[string]any) { input(d)["manifest"] = 7 },
		"a manifest below 0": func(d map[string]any) { input(d)["manifest"] = -1 },
		"negative rows":      func(d map[string]any) { input(d)["records"] = -1 },
		"negative bytes":     func(d map[string]any) { input(d)["bytes"] = -1 },
		"a delete too many":  func(d map[string]any) { unit(d)["deletes"].([]any)[0].(map[string]any)["delete"] = 5 },
		"a delete twice": func(d map[string]any) {
			unit(d)["deletes"] = []any{map[string]any{"delete": 0}, map[string]any{"delete": 0}}
		},
		"an unknown input":    func(d map[string]any) { unit(d)["deletes"] = []any{map[string]any{"delete": 0, "inputs": []int{6}}} },
		"inputs out of order": func(d map[string]any) { unit(d)["deletes"] = []any{map[string]any{"delete": 0, "inputs": []int{1, 0}}} },
		"a lost manifest":     func(d map[string]any) { d["deletes"].([]any)[0].(map[string]any)["manifest"] = 9 },
		"an input moved":      func(d map[string]any) { input(d)["path"] = "s3://lake/other.parquet" },
		"fewer rows":          func(d map[string]any) { input(d)["records"] = 1 },
		"another target":      func(d map[string]any) { unit(d)["target-bytes"] = 1 << 20 },
		"verified by counts":  func(d map[string]any) { d["options"].(map[string]any)["verify"] = "counts" },
		"another base": func(d map[string]any) {
			d["base"].(map[string]any)["table-uuid"] = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
		},
		"no digest":        func(d map[string]any) { d["digest"] = "" },
		"a delete dropped": func(d map[string]any) { unit(d)["deletes"] = unit(d)["deletes"].([]any)[:1] },
		"a broken key":     func(d map[string]any) { unit(d)["partition"].(map[string]any)["tuple"] = "%" },
	} {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			require.NoError(t, json.Unmarshal(raw, &doc))
			before, err := json.Marshal(doc)
			require.NoError(t, err)
			spoil(doc)
			b, err := json.Marshal(doc)
			require.NoError(t, err)
			require.NotEqual(t, before, b, "nothing was spoiled")
			_, err = compact.Decode(b)
			require.Error(t, err)
		})
	}
	_, err = compact.Decode(raw)
	require.NoError(t, err)
}

// What a plan says is what the specification says, on any table; nothing is
// planned twice; and on the table it leaves there is nothing to plan.
func TestPlansOfRandomTables(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := draw(r)
		p, err := s.write(r).plan()
		require.NoError(r, err)
		follows(r, s, p)
		settle(r, s, p)
	})
}

func draw(r *rapid.T) *sketch {
	s := &sketch{version: rapid.IntRange(2, 3).Draw(r, "version"), props: map[string]string{"write.target-file-size-bytes": "1000000"}, settings: map[string]string{}}
	s.specs = rapid.SampledFrom([][]string{{""}, {"region"}, {"", "region"}, {"region", ""}}).Draw(r, "specs")
	s.seq = iceberg.SeqNum(rapid.IntRange(1, 6).Draw(r, "head"))
	s.split = rapid.IntRange(1, 9).Draw(r, "split")
	if rapid.Bool().Draw(r, "ordered") {
		s.order = &model.SortOrder{Fields: []model.SortField{{Source: 1, Desc: rapid.Bool().Draw(r, "descending")}}}
	}
	for _, choice := range [][]string{
		{"min_input_files", "2", "5"}, {"delete_file_threshold", "1", "2", "5"}, {"rewrite_all", "false", "true"}, {"apply_deletes", "true", "true", "false"},
		{"max_rows_per_file", "0", "0", "30"}, {"max_files", "0", "0", "4"}, {"max_partitions", "0", "0", "1"}, {"min_file_size_percent", "75", "99", "10"},
		{"max_file_size_percent", "180", "101"},
	} {
		s.settings[choice[0]] = rapid.SampledFrom(choice[1:]).Draw(r, choice[0])
	}
	part := func() (int, []string) {
		spec := rapid.IntRange(0, len(s.specs)-1).Draw(r, "spec")
		if s.specs[spec] == "" {
			return spec, nil
		}
		return spec, []string{rapid.SampledFrom([]string{"eu", "us", "null"}).Draw(r, "region")}
	}
	seq := func(least int) iceberg.SeqNum {
		return iceberg.SeqNum(rapid.IntRange(least, int(s.seq)).Draw(r, "seq"))
	}
	for i := range rapid.IntRange(0, 30).Draw(r, "files") {
		f := sketchFile{name: fmt.Sprintf("f%d", i), bytes: int64(rapid.IntRange(1, 400_000).Draw(r, "bytes")), rows: int64(rapid.IntRange(0, 20).Draw(r, "rows")), seq: seq(0), format: manifests.Parquet}
		f.spec, f.in = part()
		f.fileSeq = seq(int(f.seq))
		if rapid.IntRange(0, 5).Draw(r, "large") == 0 {
			f.bytes *= 20
			for g := range int64(rapid.IntRange(0, 4).Draw(r, "groups")) {
				f.offsets = append(f.offsets, 4+g*f.bytes/5)
			}
		}
		if rapid.IntRange(0, 15).Draw(r, "orc") == 0 {
			f.format = manifests.ORC
		}
		lower := int64(rapid.IntRange(-9, 9).Draw(r, "bound"))
		f.lower, f.upper = &lower, &lower
		s.files = append(s.files, f)
	}
	drawDeletes(r, s, part, seq)
	return s
}

func drawDeletes(r *rapid.T, s *sketch, part func() (int, []string), seq func(int) iceberg.SeqNum) {
	vectors := map[string]bool{}
	for i := range rapid.IntRange(0, 15).Draw(r, "deletes") {
		d := sketchDelete{name: fmt.Sprintf("d%d", i), content: manifests.PositionDeletes, bytes: 10, rows: int64(rapid.IntRange(0, 12).Draw(r, "deleted")), seq: seq(1), format: manifests.Parquet}
		d.spec, d.in = part()
		kind := rapid.IntRange(0, 3).Draw(r, "kind")
		if kind < 2 && len(s.files) > 0 {
			f := rapid.SampledFrom(s.files).Draw(r, "of")
			d.of, d.spec, d.in, d.byBounds = f.name, f.spec, f.in, s.version < 3
			if kind == 1 && s.version > 2 && !vectors[d.of] {
				vectors[d.of], d.format, d.offset = true, manifests.Puffin, int64(4+i*100)
			}
		}
		if kind == 3 {
			d.content, d.ids = manifests.EqualityDeletes, []iceberg.FieldID{1}
		}
		if !d.vector() && rapid.IntRange(0, 12).Draw(r, "avro") == 0 {
			d.format = manifests.Avro
		}
		s.deletes = append(s.deletes, d)
	}
}

// follows requires of a plan what the specification and the settings say.
func follows(t tb, s *sketch, p *compact.Plan) {
	t.Helper()
	planned := map[string]bool{}
	for _, u := range p.Units() {
		triggers := false
		for k, in := range u.Inputs {
			f := s.named(t, nameOf(in.Path))
			require.False(t, planned[f.name], "%s is planned twice", f.name)
			planned[f.name] = true
			require.Equal(t, manifests.Parquet, f.format)
			require.Equal(t, []int64{f.bytes, f.rows, int64(f.seq), int64(f.fileSeq)}, []int64{in.Bytes, in.Records, int64(in.DataSeq), int64(in.FileSeq)})
			triggers = triggers || in.Why == compact.WhyDeleteFiles || in.Why == compact.WhyDeleteRatio
			var want, got []string
			for i := range s.deletes {
				if s.applies(&s.deletes[i], f) {
					want = append(want, s.deletes[i].name)
					require.NotEqual(t, manifests.Avro, s.deletes[i].format)
				}
			}
			for _, a := range u.Deletes {
				if a.To(k) {
					got = append(got, nameOf(p.Deletes()[a.Delete].Path))
				}
			}
			require.ElementsMatch(t, want, got, "deletes of %s", f.name)
			require.True(t, len(want) == 0 || s.settings["apply_deletes"] == "true")
		}
		splits := slices.ContainsFunc(u.Inputs, func(in compact.Input) bool { return in.Why == compact.WhyLarge })
		require.True(t, u.Expect.Files < int64(len(u.Inputs)) || triggers || splits && u.Expect.Files > 1, "a unit must help: %+v", u)
		if u.Expect.Files > 0 {
			require.GreaterOrEqual(t, u.TargetBytes*u.Expect.Files, u.Expect.Bytes)
		}
	}
	left := int64(0)
	for _, r := range p.Head().Reasons {
		left += r.Count
	}
	require.EqualValues(t, len(s.files), left+int64(len(planned)), "every file is planned or left with a reason: %+v", p.Head().Reasons)
}
