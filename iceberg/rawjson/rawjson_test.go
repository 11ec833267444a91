package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// spaced draws a JSON text with white space in every place it may be.
func spaced(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		ws := func() string { return rapid.SampledFrom([]string{"", " ", "\n  ", "\t", "\r\n"}).Draw(t, "space") }
		leaf := rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `-1.50e+3`, `1E2`, `"a\u00e9\n"`, `"é😀"`, `""`, `"\ud83d\ude00"`, `9223372036854775807`})
		if depth == 0 {
			return leaf.Draw(t, "leaf")
		}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return leaf.Draw(t, "leaf")
		case 1:
			var parts []string
			for range rapid.IntRange(0, 4).Draw(t, "len") {
				parts = append(parts, ws()+spaced(depth-1).Draw(t, "value")+ws())
			}
			return "[" + strings.Join(parts, ",") + map[bool]string{true: ws()}[len(parts) == 0] + "]"
		default:
			var parts []string
			for i := range rapid.IntRange(0, 30).Draw(t, "len") {
				parts = append(parts, fmt.Sprintf("%s\"k%d\"%s:%s%s%s", ws(), i, ws(), ws(), spaced(depth-1).Draw(t, "value"), ws()))
			}
			return "{" + strings.Join(parts, ",") + map[bool]string{true: ws()}[len(parts) == 0] + "}"
		}
	})
}

func TestUneditedBytesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := spaced(3).Draw(t, "json")
		require.True(t, json.Valid([]byte(text)), text)
		switch text[0] {
		case '{':
			o, err := rawjson.ParseObject([]byte(text))
			require.NoError(t, err)
			require.Equal(t, text, string(o.Bytes()))
		case '[':
			a, err := rawjson.ParseArray([]byte(text))
			require.NoError(t, err)
			require.Equal(t, text, string(a.Bytes()))
			a.Keep(func(int, []byte) bool { return true })
			require.Equal(t, text, string(a.Bytes()))
		}
	})
}

// TestGrammarAgreesWithGo feeds damaged JSON: what we take, encoding/json takes.
func TestGrammarAgreesWithGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte("[" + spaced(2).Draw(t, "json") + "]")
		for range rapid.IntRange(0, 2).Draw(t, "damage") {
			i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				text = append(text[:i:i], text[i+1:]...)
			case 1:
				text[i] = rapid.SampledFrom([]byte(`{}[],:"\0-.e+ntfu x`)).Draw(t, "byte")
			default:
				text = text[:i]
			}
			if len(text) == 0 {
				return
			}
		}
		err := rawjson.EachElement(text, func(int, []byte) error { return nil })
		if json.Valid(text) && bytes.TrimLeft(text, " ")[0] == '[' {
			require.NoError(t, err, "%s", text)
			return
		}
		require.Error(t, err, "%s", text)
		require.Equal(t, fault.Corrupt, fault.Of(err))
	})
}

func TestEditing(t *testing.T) {
	const text = "{\n  \"a\": 1.0,\n  \"b\" : {\"x\":[ ]},\n  \"c\": \"\\u003c\"\n}\n"
	for _, c := range []struct {
		name string
		do   func(o *rawjson.Object)
		want string
	}{
		{"replace", func(o *rawjson.Object) { o.Set("b", []byte("2")) }, "{\n  \"a\": 1.0,\n  \"b\" : 2,\n  \"c\": \"\\u003c\"\n}\n"},
		{"append", func(o *rawjson.Object) { o.Set("d", []byte("2")) }, "{\n  \"a\": 1.0,\n  \"b\" : {\"x\":[ ]},\n  \"c\": \"\\u003c\",\n  \"d\": 2\n}\n"},
		{"delete first", func(o *rawjson.Object) { o.Delete("a") }, "{\n  \"b\" : {\"x\":[ ]},\n  \"c\": \"\\u003c\"\n}\n"},
		{"delete last", func(o *rawjson.Object) { o.Delete("c") }, "{\n  \"a\": 1.0,\n  \"b\" : {\"x\":[ ]}\n}\n"},
		{"delete all", func(o *rawjson.Object) {
			for _, k := range o.Keys() {
				require.True(t, o.Delete(k))
			}
		}, "{}\n"},
		{"delete and set", func(o *rawjson.Object) { o.Delete("a"); o.Set("c", []byte("3")); o.Set("a", []byte("4")) },
			"{\n  \"b\" : {\"x\":[ ]},\n  \"c\": 3,\n  \"a\": 4\n}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := rawjson.ParseObject([]byte(text))
			require.NoError(t, err)
			c.do(o)
			require.Equal(t, c.want, string(o.Bytes()))
			require.False(t, o.Delete("none"))
			for _, k := range o.Keys() {
				_, ok := o.Get(k)
				require.True(t, ok)
			}
		})
	}
}

func TestArrayEditing(t *testing.T) {
	a, err := rawjson.ParseArray([]byte("[ 1,\n 2 ,3\n]"))
	require.NoError(t, err)
	a.Append([]byte("4"))
	a.Keep(func(i int, raw []byte) bool { return i != 1 && string(raw) != "4" })
	require.Equal(t, "[ 1,3\n]", string(a.Bytes()))
	require.Equal(t, 2, a.Len())
	require.Equal(t, "3", string(a.At(1)))
	a.Keep(func(int, []byte) bool { return false })
	a.Append([]byte("5"))
	require.Equal(t, "[5]", string(a.Bytes()))
}

func TestHostileInput(t *testing.T) {
	deep := strings.Repeat("[", rawjson.MaxDepth+1) + strings.Repeat("]", rawjson.MaxDepth+1)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":0`, i)
	}
	for name, text := range map[string]string{
		"duplicate":         `{"a":1,"b":2,"a":3}`,
		"escaped duplicate": `{"a":1,"\u0061":3}`,
		"late duplicate":    `{` + strings.Join(many, ",") + `,"k99":1}`,
		"deep":              `{"a":` + deep + `}`,
		"empty":             ``,
		"trailing":          `{} {}`,
		"array":             `[]`,
		"null":              `null`,
		"half surrogate":    `{"\ud800":1}`,
		"reversed":          `{"\udc00\ud800":1}`,
		"control":           "{\"a\x01\":1}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rawjson.ParseObject([]byte(text))
			require.Error(t, err)
			require.Equal(t, fault.Corrupt, fault.Of(err))
		})
	}
	o, err := rawjson.ParseObject([]byte(`{` + strings.Join(many, ",") + `}`))
	require.NoError(t, err)
	require.Equal(t, 100, o.Len())
}

func TestScalars(t *testing.T) {
	n, err := rawjson.Int64([]byte("-9223372036854775808"))
	require.NoError(t, err)
	require.Equal(t, int64(-1<<63), n)
	for _, text := range []string{`1.0`, `1e3`, `"1"`, `9223372036854775808`, ``, `null`, `+1`} {
		_, err := rawjson.Int64([]byte(text))
		require.Error(t, err, text)
	}
	_, err = rawjson.Int32([]byte("2147483648"))
	require.Error(t, err)
	b, err := rawjson.Bool([]byte("true"))
	require.NoError(t, err)
	require.True(t, b)
	_, err = rawjson.Bool([]byte("1"))
	require.Error(t, err)
	require.Equal(t, `{"a<":1,"b":"x"}`, string(rawjson.Make(rawjson.Pair{Key: "a<", Value: rawjson.Int(1)}, rawjson.Pair{Key: "b", Value: rawjson.Quote("x")})))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		quoted, err := json.Marshal(s)
		require.NoError(t, err)
		for _, raw := range [][]byte{quoted, rawjson.Quote(s)} {
			back, err := rawjson.String(raw)
			require.NoError(t, err)
			require.Equal(t, s, back)
		}
	})
	for _, text := range []string{`"a`, `a"`, `"a"b"`, `"\x"`, `12`, `"\ud83d"`, `"\ud83d\u0041"`} {
		_, err := rawjson.String([]byte(text))
		require.Error(t, err, text)
	}
	require.True(t, rawjson.IsNull([]byte(" null\n")))
	require.False(t, rawjson.IsNull([]byte(`"null"`)))
}
