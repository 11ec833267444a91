package movement_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/movement"
)

type place struct {
	output int
	row    int64
}

// drawMap moves the rows of some sources: in order, dropping some, or each to
// any place, as a sort does. The naive answer is where each row went.
func drawMap(t *rapid.T) (*movement.Map, []map[int64]place) {
	var sources []movement.Source
	type row struct {
		source int
		at     int64
	}
	var rows []row
	for i := range rapid.IntRange(0, 4).Draw(t, "sources") {
		n := rapid.Int64Range(0, 40).Draw(t, "rows")
		sources = append(sources, movement.Source{Location: string(rune('a' + i)), Rows: n})
		drop := rapid.SampledFrom([]int{0, 1, 5, 10}).Draw(t, "drop of ten")
		for at := range n {
			if rapid.IntRange(0, 9).Draw(t, "die") >= drop {
				rows = append(rows, row{i, at})
			}
		}
	}
	if rapid.Bool().Draw(t, "sorted") {
		rows = rapid.Permutation(rows).Draw(t, "order")
	}
	b, naive := movement.NewBuilder(sources), make([]map[int64]place, len(sources))
	for i := range naive {
		naive[i] = map[int64]place{}
	}
	output := 0
	for _, r := range rows {
		if b.Rows(output) > 0 && rapid.IntRange(0, 15).Draw(t, "roll") == 0 {
			output++
		}
		naive[r.source][r.at] = place{output, b.Rows(output)}
		b.Append(r.source, r.at, 1, output)
	}
	locations := []string{"x", "y", "z"}
	for len(locations) <= output {
		locations = append(locations, "more")
	}
	if len(rows) > 0 {
		output++
	}
	m, err := b.Build(locations[:output])
	require.NoError(t, err)
	return m, naive
}

func TestMapsOfRandomUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, naive := drawMap(t)
		require.NoError(t, m.Check())
		total := int64(0)
		for i, s := range m.Sources {
			require.EqualValues(t, len(naive[i]), m.Moved(i))
			require.EqualValues(t, s.Rows-int64(len(naive[i])), m.Dropped(i))
			require.Equal(t, m.Dropped(i), m.DroppedRows(i).Len())
			total += m.Moved(i)
			for k := 1; k < len(s.Runs); k++ {
				a, b := s.Runs[k-1], s.Runs[k]
				require.False(t, a.From+a.Rows == b.From && a.Output == b.Output && a.To+a.Rows == b.To, "runs are merged")
			}
			want, hit := map[int]*deletes.Positions{}, &deletes.Positions{}
			gone := &deletes.Positions{}
			for at := range s.Rows {
				output, row, moved := m.Find(i, at)
				p, ok := naive[i][at]
				require.Equal(t, ok, moved)
				require.Equal(t, !ok, m.DroppedRows(i).Contains(at))
				if ok {
					require.Equal(t, place{output, row}, p)
				}
				if rapid.Bool().Draw(t, "deleted") {
					hit.Add(at)
					if !ok {
						gone.Add(at)
						continue
					}
					if want[p.output] == nil {
						want[p.output] = &deletes.Positions{}
					}
					want[p.output].Add(p.row)
				}
			}
			_, _, moved := m.Find(i, s.Rows)
			require.False(t, moved)
			got, lost, err := m.Translate(i, hit)
			require.NoError(t, err)
			require.True(t, gone.Equal(lost))
			require.Len(t, got, len(want))
			for o, p := range want {
				require.True(t, p.Equal(got[o]))
			}
			_, _, err = m.Translate(i, deletes.Of(s.Rows))
			require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
		}
		for _, o := range m.Outputs {
			total -= o.Rows
		}
		require.Zero(t, total)

		b, err := m.Append([]byte("before"))
		require.NoError(t, err)
		back, err := movement.Parse(b[len("before"):])
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(m, back, cmpopts.EquateEmpty()))
		text, err := json.Marshal(m)
		require.NoError(t, err)
		var again movement.Map
		require.NoError(t, json.Unmarshal(text, &again))
		require.Empty(t, cmp.Diff(m, &again, cmpopts.EquateEmpty()))
	})
}

func TestTranslateAcrossRuns(t *testing.T) {
	m := &movement.Map{
		Sources: []movement.Source{
			{Location: "a", Rows: 100, Runs: []movement.Run{{From: 10, Rows: 20, To: 0}, {From: 30, Rows: 10, Output: 1, To: 5}, {From: 50, Rows: 50, To: 20}}},
			{Location: "b", Rows: 5, Runs: []movement.Run{{From: 0, Rows: 5, Output: 1}}},
		},
		Outputs: []movement.Output{{Location: "x", Rows: 70}, {Location: "y", Rows: 15}},
	}
	require.NoError(t, m.Check())
	p := &deletes.Positions{}
	p.AddRange(5, 60)
	moved, gone, err := m.Translate(0, p)
	require.NoError(t, err)
	require.EqualValues(t, 15, gone.Len())
	require.EqualValues(t, 5, gone.Count(0, 10))
	require.EqualValues(t, 10, gone.Count(40, 50))
	require.EqualValues(t, 30, moved[0].Count(0, 30))
	require.EqualValues(t, 30, moved[0].Len())
	require.Equal(t, []int64{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, slices.Collect(moved[1].All()))
	require.Equal(t, 1, m.Index("b"))
	require.Equal(t, -1, m.Index("c"))
}

// TestF023MapsThatLoseOrDoubleRows shows that a row that is lost, doubled or out of
// nowhere is noticed before a commit.
func TestF023MapsThatLoseOrDoubleRows(t *testing.T) {
	run := func(runs ...movement.Run) *movement.Map {
		return &movement.Map{Sources: []movement.Source{{Location: "a", Rows: 10, Runs: runs}}, Outputs: []movement.Output{{Location: "x", Rows: 4}}}
	}
	require.NoError(t, run(movement.Run{From: 6, Rows: 4}).Check())
	for name, m := range map[string]*movement.Map{
		"a row is missing":     run(movement.Run{Rows: 3}),
		"a row is too much":    run(movement.Run{Rows: 5}),
		"a row comes twice":    run(movement.Run{Rows: 4}, movement.Run{From: 5, Rows: 4}),
		"a gap":                run(movement.Run{Rows: 2}, movement.Run{From: 5, Rows: 2, To: 3}),
		"not in order":         run(movement.Run{From: 5, Rows: 2}, movement.Run{From: 1, Rows: 2, To: 2}),
		"overlap":              run(movement.Run{Rows: 2}, movement.Run{From: 1, Rows: 2, To: 2}),
		"outside the source":   run(movement.Run{From: 7, Rows: 4}),
		"a negative row":       run(movement.Run{From: -1, Rows: 4}),
		"no rows":              run(movement.Run{Rows: 0}, movement.Run{Rows: 4}),
		"overflow":             run(movement.Run{From: 1, Rows: 1<<63 - 1}),
		"no such output":       run(movement.Run{Rows: 4, Output: 1}),
		"a negative output":    run(movement.Run{Rows: 4, Output: -1}),
		"negative source rows": {Sources: []movement.Source{{Rows: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			err := m.Check()
			require.True(t, fault.Is(err, fault.Halt), "%v", err)
		})
	}
}

func TestBuilderRefusesWhatCannotBe(t *testing.T) {
	for name, do := range map[string]func(b *movement.Builder){
		"no such source":       func(b *movement.Builder) { b.Append(1, 0, 1, 0) },
		"outside":              func(b *movement.Builder) { b.Append(0, 9, 2, 0) },
		"negative":             func(b *movement.Builder) { b.Append(0, 9, -1, 0) },
		"an output is missing": func(b *movement.Builder) { b.Append(0, 0, 1, 1) },
		"a row twice":          func(b *movement.Builder) { b.Append(0, 0, 2, 0); b.Append(0, 1, 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			b := movement.NewBuilder([]movement.Source{{Location: "a", Rows: 10}})
			do(b)
			_, err := b.Build([]string{"x"})
			require.True(t, fault.Is(err, fault.Halt), "%v", err)
		})
	}
	b := movement.NewBuilder([]movement.Source{{Location: "a", Rows: 10}})
	b.Append(0, 0, 0, 7) // nothing
	b.Append(0, 0, 1, 0)
	_, err := b.Build(nil)
	require.True(t, fault.Is(err, fault.Halt), "%v", err)
}

// TestStoredMapsThatAreDamaged cuts and changes stored maps.
func TestStoredMapsThatAreDamaged(t *testing.T) {
	m := &movement.Map{
		Sources: []movement.Source{{Location: "a", Rows: 10, Runs: []movement.Run{{From: 1, Rows: 2, To: 1}, {From: 5, Rows: 1, To: 0}}}},
		Outputs: []movement.Output{{Location: "x", Rows: 3}},
	}
	good, err := m.Append(nil)
	require.NoError(t, err)
	sum := func(b []byte) []byte {
		return binary.BigEndian.AppendUint32(slices.Clone(b[:len(b)-4]), crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	for n := range good {
		_, err := movement.Parse(good[:n])
		require.True(t, fault.Is(err, fault.Corrupt), "%d bytes: %v", n, err)
	}
	for i := range good {
		for _, x := range []byte{1, 0x80, 0xff} {
			b := slices.Clone(good)
			b[i] ^= x
			_, err := movement.Parse(b)
			require.Error(t, err)
			if got, err := movement.Parse(sum(b)); err == nil {
				require.NoError(t, got.Check())
			}
		}
	}
	later := slices.Clone(good)
	later[4]++
	_, err = movement.Parse(sum(later))
	require.True(t, fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Corrupt), "%v", err)
	many := binary.AppendUvarint(append([]byte("\xd5map"), 1), 1<<40)
	_, err = movement.Parse(sum(append(many, 0, 0, 0, 0)))
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
}

func FuzzParse(f *testing.F) {
	m := &movement.Map{Sources: []movement.Source{{Location: "a", Rows: 10, Runs: []movement.Run{{From: 1, Rows: 2}}}}, Outputs: []movement.Output{{Location: "x", Rows: 2}}}
	good, err := m.Append(nil)
	require.NoError(f, err)
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.BigEndian.AppendUint32(slices.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
		got, err := movement.Parse(b)
		if err != nil {
			return
		}
		require.NoError(t, got.Check())
		again, err := got.Append(nil)
		require.NoError(t, err)
		back, err := movement.Parse(again)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got, back, cmpopts.EquateEmpty()))
	})
}
