package thrift_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

var kinds = []thrift.Kind{thrift.True, thrift.False, thrift.I8, thrift.I16, thrift.I32, thrift.I64, thrift.Double,
	thrift.Binary, thrift.UUID, thrift.List, thrift.Set, thrift.Map, thrift.Group}

func drawStruct(t *rapid.T, depth int) *thrift.Struct {
	s := &thrift.Struct{}
	for range rapid.IntRange(0, 5).Draw(t, "fields") {
		k := rapid.SampledFrom(usable(depth)).Draw(t, "kind")
		v := thrift.Value{Kind: k}
		if k != thrift.True && k != thrift.False {
			v = drawValue(t, k, depth)
		}
		s.Fields = append(s.Fields, thrift.Member{ID: rapid.Int16().Draw(t, "id"), Value: v})
	}
	return s
}

// usable are the kinds that end at a depth.
func usable(depth int) []thrift.Kind {
	if depth > 3 {
		return kinds[:9]
	}
	return kinds
}

func drawValue(t *rapid.T, k thrift.Kind, depth int) thrift.Value {
	v := thrift.Value{Kind: k}
	switch k {
	case thrift.True, thrift.False: // of lists
		v.Kind, v.Int = thrift.True, rapid.Int64Range(0, 1).Draw(t, "bool")
	case thrift.I8:
		v.Int = int64(rapid.Int8().Draw(t, "i8"))
	case thrift.I16, thrift.I32, thrift.I64:
		v.Int = rapid.Int64().Draw(t, "int")
	case thrift.Double:
		v.Bytes = rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "double")
	case thrift.UUID:
		v.Bytes = rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")
	case thrift.Binary:
		v.Bytes = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "binary")
	case thrift.List, thrift.Set:
		v.Element = element(t, depth)
		v.List = []thrift.Value{}
		for range rapid.SampledFrom([]int{0, 1, 3, 14, 15, 20}).Draw(t, "length") {
			v.List = append(v.List, drawValue(t, v.Element, depth+1))
		}
	case thrift.Map:
		v.List = []thrift.Value{}
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Key, v.Element = element(t, depth), element(t, depth)
			for range n {
				v.List = append(v.List, drawValue(t, v.Key, depth+1), drawValue(t, v.Element, depth+1))
			}
		}
	case thrift.Group:
		v.Struct = drawStruct(t, depth+1)
	}
	return v
}

func element(t *rapid.T, depth int) thrift.Kind {
	k := rapid.SampledFrom(usable(depth+1)).Draw(t, "element")
	if k == thrift.False {
		return thrift.True
	}
	return k
}

func TestTreesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStruct(t, 0)
		b := s.Append(nil)
		got, n, err := thrift.Parse(append(bytes.Clone(b), "rest"...))
		require.NoError(t, err)
		require.Len(t, b, n)
		require.Empty(t, cmp.Diff(s, got))
		require.Equal(t, b, got.Append(nil))
		// A reader that knows no field goes over all of them.
		r := thrift.NewReader(b, 1<<20)
		r.Begin()
		for f := (thrift.Field{}); r.Next(&f); {
			r.Skip(f.Kind)
		}
		require.NoError(t, r.Err())
		require.Len(t, b, r.At())
		_, _, err = thrift.Parse(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")])
		require.ErrorIs(t, err, thrift.ErrShort)
	})
}

func TestAnythingEndsWithoutAPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "bytes")
		s, n, err := thrift.Parse(b)
		if err != nil {
			require.Contains(t, []fault.Kind{fault.Corrupt, fault.TooLarge}, fault.Of(err))
			return
		}
		require.LessOrEqual(t, n, len(b))
		again, _, err := thrift.Parse(s.Append(nil))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(s, again))
	})
}

func TestDepthIsBounded(t *testing.T) {
	for _, b := range [][]byte{
		bytes.Repeat([]byte{1<<4 | byte(thrift.Group)}, 1000),
		append([]byte{1<<4 | byte(thrift.List)}, bytes.Repeat([]byte{1<<4 | byte(thrift.List)}, 1000)...),
		append([]byte{1<<4 | byte(thrift.Map)}, bytes.Repeat([]byte{1, byte(thrift.Map)<<4 | byte(thrift.Map)}, 1000)...),
	} {
		_, _, err := thrift.Parse(b)
		require.ErrorContains(t, err, "deeper than 32")
		r := thrift.NewReader(b, 1<<20)
		r.Begin()
		for f := (thrift.Field{}); r.Next(&f); {
			r.Skip(f.Kind)
		}
		require.ErrorContains(t, r.Err(), "deeper than 32")
	}
}

func TestFieldsAreSetInTheOrderOfTheirIDs(t *testing.T) {
	s := &thrift.Struct{}
	for _, id := range []int16{5, 1, 9, 5, 3} {
		s.Set(id, thrift.Value{Kind: thrift.I32, Int: int64(id)})
	}
	s.Remove(9)
	s.Remove(77)
	var ids []int16
	for _, m := range s.Fields {
		ids = append(ids, m.ID)
	}
	require.Equal(t, []int16{1, 3, 5}, ids)
	require.Nil(t, s.Get(9))
	require.Equal(t, int64(3), s.Get(3).Int)
}

func TestValuesOfOtherKindsAreCorrupt(t *testing.T) {
	var w thrift.Writer
	w.Begin()
	w.Int64(1, 1<<40)
	w.Text(2, "x")
	w.End()
	for name, read := range map[string]func(r *thrift.Reader, f thrift.Field){
		"bytes":  func(r *thrift.Reader, f thrift.Field) { r.Bytes(f.Kind) },
		"bool":   func(r *thrift.Reader, f thrift.Field) { r.Bool(f.Kind) },
		"list":   func(r *thrift.Reader, f thrift.Field) { r.List(f.Kind, 1) },
		"struct": func(r *thrift.Reader, f thrift.Field) { r.Struct(f.Kind) },
		"int32":  func(r *thrift.Reader, f thrift.Field) { r.Int32(f.Kind) },
	} {
		r := thrift.NewReader(w.B, 1<<20)
		r.Begin()
		for f := (thrift.Field{}); r.Next(&f); {
			read(&r, f)
		}
		require.Equal(t, fault.Corrupt, fault.Of(r.Err()), name)
	}
}
