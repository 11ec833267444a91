package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seaice/seaice/fault"
)

// IsNull reports whether raw is the null literal. White space around it does
// not matter.
func IsNull(raw []byte) bool { return string(bytes.TrimSpace(raw)) == "null" }

// Int64 reads an integer. A fraction, an exponent, a string or a number out of
// range is an error, as it is to Java's parser of table metadata.
func Int64(raw []byte) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || raw[0] == '+' {
		return 0, mismatch("a 64-bit integer", raw)
	}
	return n, nil
}

// Int32 reads an integer of 32 bits.
func Int32(raw []byte) (int32, error) {
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || raw[0] == '+' {
		return 0, mismatch("a 32-bit integer", raw)
	}
	return int32(n), nil
}

// Bool reads a boolean.
func Bool(raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, mismatch("a boolean", raw)
}

// String reads a string. Half of a surrogate pair is an error, because the text
// it stands for cannot be told.
func String(raw []byte) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", mismatch("a string", raw)
	}
	end, err := skipString(raw, 0)
	if err != nil {
		return "", err
	}
	if end != len(raw) {
		return "", mismatch("a string", raw)
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in), nil
	}
	return unescape(in)
}

func unescape(in []byte) (string, error) {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		i++
		switch c := in[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hexRune(in[i+1 : i+5])
			i += 4
			if utf16.IsSurrogate(r) {
				if len(in)-i < 7 || in[i+1] != '\\' || in[i+2] != 'u' {
					return "", mismatch("text", in)
				}
				r = utf16.DecodeRune(r, hexRune(in[i+3:i+7]))
				if r == utf8.RuneError {
					return "", mismatch("text", in)
				}
				i += 6
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out), nil
}

func hexRune(b []byte) rune {
	n, _ := strconv.ParseUint(string(b), 16, 32) // checked by skipString
	return rune(n)
}

// Quote is s as a JSON string. Only what JSON demands is escaped.
func Quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Int is n as JSON.
func Int(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

func mismatch(want string, raw []byte) error {
	const shown = 60
	text := string(raw)
	if len(text) > shown {
		text = text[:shown] + "..."
	}
	return fault.New(fault.Corrupt, fmt.Sprintf("json value %q is not %s", text, want))
}

// Pair is a member of an object being made.
type Pair struct {
	Key   string
	Value []byte
}

// Make is an object with the members in the order given.
func Make(pairs ...Pair) []byte {
	out := []byte{'{'}
	for i, p := range pairs {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, Quote(p.Key)...), ':')
		out = append(out, p.Value...)
	}
	return append(out, '}')
}
