package compact_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
	"github.com/seaice/seaice/manifests"
	"github.com/seaice/seaice/ops/compact"
)

// TestPlanGolden plans on the tables that testdata describes and compares the
// plans with those in the files: SEAICE_GOLDEN=rewrite go test -run Golden writes
// them anew. A file holds stories, a blank line between them; a story is a
// description, a line of four dashes and the plan. Lines of a description:
//
//	version N
//	spec TEXT                     one for each spec, the last is current
//	order COLUMN [desc]
//	setting NAME=VALUE
//	property NAME=VALUE
//	seq N                         the head's sequence number, 9 if not said
//	split N                       files of a manifest
//	file NAME[*N] size=S [rows=N] [seq=N] [added=N] [in=V,…] [of-spec=N] [groups=N|offsets=N,…|offsets=null] [format=F] [min=N] [max=N] [row-id=N] [encrypted]
//	vector NAME of=FILE rows=N [seq=N] [in=V,…] [at=N]
//	positions NAME [of=FILE] [bounds] rows=N [seq=N] [in=V,…] [format=F]
//	equality NAME[*N] rows=N [seq=N] [in=V,…] [of-spec=N] [ids=N,…] [format=F]
//
// Columns are id (1), region (2), day (3) and price (4). Sizes may end in K, M or
// G; the default is 100 rows. Every plan is made twice, read back from its JSON,
// and made again on the table it leaves, which must give nothing to do.
func TestPlanGolden(t *testing.T) {
	dir, err := os.ReadDir("testdata")
	require.NoError(t, err)
	require.NotEmpty(t, dir)
	for _, f := range dir {
		if !strings.HasSuffix(f.Name(), ".txt") {
			continue
		}
		t.Run(strings.TrimSuffix(f.Name(), ".txt"), func(t *testing.T) {
			name := "testdata/" + f.Name()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			var out []string
			for story := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
				given, want, ok := strings.Cut(story+"\n", "----\n")
				require.True(t, ok, "%s has a story without a line of four dashes:\n%s", name, story)
				got := tell(t, parse(t, given))
				out = append(out, given+"----\n"+got)
				if os.Getenv("SEAICE_GOLDEN") != "rewrite" {
					require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), "%s\n%s", name, given)
				}
			}
			if os.Getenv("SEAICE_GOLDEN") == "rewrite" {
				require.NoError(t, os.WriteFile(name, []byte(strings.Join(out, "\n")), 0o600))
			}
		})
	}
}

func parse(t *testing.T, text string) *sketch {
	t.Helper()
	s := &sketch{version: 2, settings: map[string]string{}, props: map[string]string{}, seq: 9}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		a := arguments{t: t, line: line, v: map[string]string{}}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			a.v[k] = v
		}
		switch words[0] {
		case "version":
			s.version = int(a.parse(words[1]))
		case "spec":
			s.specs = append(s.specs, strings.Trim(strings.Join(words[1:], " "), "-"))
		case "order":
			s.order = &model.SortOrder{Fields: []model.SortField{{Source: a.column(words[1]), Desc: a.has("desc")}}}
		case "setting":
			k, v, _ := strings.Cut(words[1], "=")
			s.settings[k] = v
		case "property":
			k, v, _ := strings.Cut(words[1], "=")
			s.props[k] = v
		case "seq":
			s.seq = iceberg.SeqNum(a.parse(words[1]))
		case "split":
			s.split = int(a.parse(words[1]))
		case "empty":
			s.empty = true
		case "file":
			for _, name := range a.names(words[1]) {
				s.files = append(s.files, a.file(name))
			}
		default:
			for _, name := range a.names(words[1]) {
				s.deletes = append(s.deletes, a.delete(s.version, words[0], name))
			}
		}
	}
	return s
}

// arguments are the NAME=VALUE words of a line.
type arguments struct {
	t    *testing.T
	line string
	v    map[string]string
}

func (a arguments) has(k string) bool { _, ok := a.v[k]; return ok }

func (a arguments) parse(text string) int64 {
	a.t.Helper()
	unit := int64(1)
	for suffix, u := range map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = n, u
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(a.t, err, a.line)
	return n * unit
}

func (a arguments) number(k string, fallback int64) int64 {
	a.t.Helper()
	if !a.has(k) {
		return fallback
	}
	return a.parse(a.v[k])
}

func (a arguments) list(k string) []string {
	if a.v[k] == "" {
		return nil
	}
	return strings.Split(a.v[k], ",")
}

func (a arguments) numbers(k string) []int64 {
	var out []int64
	for _, w := range a.list(k) {
		out = append(out, a.parse(w))
	}
	return out
}

func (a arguments) names(word string) []string {
	name, count, many := strings.Cut(word, "*")
	if !many {
		return []string{word}
	}
	var out []string
	for i := range a.parse(count) {
		out = append(out, fmt.Sprintf("%s%d", name, i+1))
	}
	return out
}

func (a arguments) column(name string) iceberg.FieldID {
	a.t.Helper()
	n, ok := map[string]iceberg.FieldID{"id": 1, "region": 2, "day": 3, "price": 4}[name]
	require.True(a.t, ok, a.line)
	return n
}

func (a arguments) file(name string) sketchFile {
	a.t.Helper()
	f := sketchFile{
		name: name, spec: int(a.number("of-spec", 0)), in: a.list("in"), bytes: a.number("size", 0), rows: a.number("rows", 100),
		seq: iceberg.SeqNum(a.number("seq", 1)), format: manifests.Parquet, encrypted: a.has("encrypted"),
	}
	f.fileSeq = iceberg.SeqNum(a.number("added", int64(f.seq)))
	if v, ok := a.v["format"]; ok {
		f.format = manifests.Format(v)
	}
	switch groups := a.number("groups", 1); {
	case a.v["offsets"] == "null":
	case a.has("offsets"):
		f.offsets = append([]int64{}, a.numbers("offsets")...)
	default:
		for i := range groups {
			f.offsets = append(f.offsets, 4+i*f.bytes/groups)
		}
	}
	for k, to := range map[string]**int64{"min": &f.lower, "max": &f.upper, "row-id": &f.firstRow} {
		if a.has(k) {
			n := a.number(k, 0)
			*to = &n
		}
	}
	return f
}

func (a arguments) delete(version int, kind, name string) sketchDelete {
	a.t.Helper()
	d := sketchDelete{
		name: name, spec: int(a.number("of-spec", 0)), in: a.list("in"), of: a.v["of"], byBounds: a.has("bounds"), rows: a.number("rows", 1),
		bytes: a.number("size", 1000), seq: iceberg.SeqNum(a.number("seq", 2)), format: manifests.Parquet, encrypted: a.has("encrypted"),
		content: manifests.PositionDeletes, incomplete: a.has("incomplete"), offset: a.number("at", 4),
	}
	// Before v3, manifests may lack the field that names the file.
	d.byBounds = d.byBounds || version < 3 && !a.has("referenced")
	switch kind {
	case "vector":
		d.format, d.byBounds = manifests.Puffin, false
	case "positions":
	case "equality":
		d.content, d.ids = manifests.EqualityDeletes, []iceberg.FieldID{1}
	default:
		a.t.Fatalf("no such line: %s", a.line)
	}
	if v, ok := a.v["format"]; ok {
		d.format = manifests.Format(v)
	}
	if a.has("ids") {
		d.ids = nil
		for _, n := range a.numbers("ids") {
			d.ids = append(d.ids, iceberg.FieldID(n))
		}
	}
	return d
}

// tell plans and describes the plan.
func tell(t *testing.T, s *sketch) string {
	t.Helper()
	w := s.write(t)
	before := w.fl.Dump()
	p, err := w.plan()
	if err != nil {
		return fmt.Sprintf("error: %s\n", strings.ReplaceAll(err.Error(), root, ""))
	}
	require.Empty(t, before.Changes(w.fl.Dump()), "planning writes nothing")
	twice, err := w.plan()
	require.NoError(t, err)
	require.Equal(t, p, twice, "planning is deterministic")
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	again, err := compact.Decode(raw)
	require.NoError(t, err)
	require.Equal(t, p, again, "a plan survives its JSON")

	var b strings.Builder
	fmt.Fprintln(&b, p.Summary())
	for _, u := range p.Units() {
		describe(&b, p, u)
	}
	for _, r := range p.Head().Reasons {
		fmt.Fprintf(&b, "left, %s: %d %s, %s", r.Code, r.Count, r.Subject, r.Text)
		if r.Setting != "" {
			fmt.Fprintf(&b, " (%s)", r.Setting)
		}
		fmt.Fprintln(&b)
	}
	if !p.Empty() {
		e := p.Head().Effects
		exact := ""
		if !e.RowsExact {
			exact = " at most"
		}
		fmt.Fprintf(&b, "files %d -> %d, deletes %d -> %d, rows %d ->%s %d\n", e.Before.DataFiles, e.After.DataFiles,
			e.Before.DeleteFiles, e.After.DeleteFiles, e.Before.Rows, exact, e.After.Rows)
	}
	settle(t, s, p)
	return b.String()
}

func describe(b *strings.Builder, p *compact.Plan, u compact.Unit) {
	label := ""
	if u.Partition.Spec != p.Head().Base.Spec {
		label = fmt.Sprintf(" of spec %d", u.Partition.Spec)
	}
	if u.Label != "" {
		label += " " + u.Label
	}
	rows := fmt.Sprintf("%d rows", u.Expect.Rows)
	if !u.Expect.RowsExact {
		rows = "at most " + rows
	}
	fmt.Fprintf(b, "unit%s: %d -> %d files, %s -> %s, %s, ended at %s\n", label, len(u.Inputs), u.Expect.Files, amount(u.Bytes()), amount(u.Expect.Bytes), rows, amount(u.TargetBytes))
	for i := 0; i < len(u.Inputs); {
		j := i
		var names []string
		for ; j < len(u.Inputs) && u.Inputs[j].Why == u.Inputs[i].Why; j++ {
			names = append(names, nameOf(u.Inputs[j].Path))
		}
		if len(names) > 10 {
			names = append(append(names[:3:3], "…"), names[len(names)-1])
		}
		fmt.Fprintf(b, "  %d %s: %s\n", j-i, u.Inputs[i].Why, strings.Join(names, " "))
		i = j
	}
	for _, a := range u.Deletes {
		d := p.Deletes()[a.Delete]
		var to []string
		for i := range u.Inputs {
			if a.To(i) {
				to = append(to, nameOf(u.Inputs[i].Path))
			}
		}
		names := strings.Join(to, " ")
		if a.Inputs == nil {
			names = "all"
		}
		at := ""
		if d.IsVector() {
			at = fmt.Sprintf(" at %d", d.Offset)
		}
		fmt.Fprintf(b, "  %s %s%s: %s\n", d.Content, nameOf(d.Path), at, names)
	}
}

func amount(n int64) string {
	switch {
	case n >= 1<<20:
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "M"
	case n >= 1<<10:
		return strconv.FormatFloat(float64(n)/(1<<10), 'f', 1, 64) + "K"
	}
	return strconv.FormatInt(n, 10)
}

// settle executes the plan in thought and plans again: what it left to a limit
// may be planned then, anything else not, and the numbers must be as predicted.
func settle(t tb, s *sketch, p *compact.Plan) {
	t.Helper()
	for range 10 + len(s.files) { // a run bounded to few files is one of many
		if p.Empty() {
			return
		}
		next := s.after(t, p)
		e := p.Head().Effects
		require.EqualValues(t, len(next.files), e.After.DataFiles, "data files")
		require.EqualValues(t, len(next.deletes), e.After.DeleteFiles, "delete files")
		limited := false
		for _, r := range p.Head().Reasons {
			switch r.Code {
			case "max-rewrite", "max-files", "max-partitions", "plan-full", "unit-full":
				limited = true
			}
		}
		w := next.write(t)
		again, err := w.plan()
		require.NoError(t, err)
		switch {
		case again.Empty() || limited:
		case odd(s):
			// Where hardly any size will do, or rows bound some units and bytes the
			// others, files that are divided anew can be one less. It comes to an end.
		default:
			require.True(t, again.Empty(), "planning again gives %s\n%+v\nafter\n%+v", again.Summary(), again.Units(), p.Units())
		}
		s, p = next, again
	}
	t.Fatalf("planning does not come to an end")
}

// odd reports settings under which means of outputs cannot all be healthy.
func odd(s *sketch) bool {
	set := s.settings
	return set["max_rows_per_file"] != "0" || set["min_file_size_percent"] == "99" || set["max_file_size_percent"] == "101"
}
