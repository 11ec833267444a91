// Package rawjson reads and edits JSON without touching the bytes it was not
// asked to change: numbers keep their spelling, members their order, unknown
// members their place, and even white space stays where it was.
//
// It exists because catalog records and table metadata are written by many
// programs, and what this one does not know about must survive its commits.
// Input is taken as hostile: nesting is bounded by MaxDepth, a key that occurs
// twice in an object that is looked into is an error, and every error is
// fault.Corrupt.
package rawjson

import (
	"fmt"

	"github.com/seaice/seaice/fault"
)

// MaxDepth bounds the nesting of arrays and objects.
const MaxDepth = 256

func syntax(at int, what string) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("json at byte %d: %s", at, what))
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipValue returns the position behind the value that begins at i, having
// checked its grammar.
func skipValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return 0, syntax(i, "unexpected end")
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return skipNested(b, i, depth, '}')
	case c == '[':
		return skipNested(b, i, depth, ']')
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		return skipWord(b, i, "true")
	case c == 'f':
		return skipWord(b, i, "false")
	case c == 'n':
		return skipWord(b, i, "null")
	}
	return 0, syntax(i, "unexpected character")
}

func skipWord(b []byte, i int, word string) (int, error) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return 0, syntax(i, "invalid literal")
	}
	return i + len(word), nil
}

func skipNested(b []byte, i, depth int, end byte) (int, error) {
	if depth >= MaxDepth {
		return 0, syntax(i, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1, nil
	}
	for {
		var err error
		if end == '}' {
			if i, err = skipKey(b, i); err != nil {
				return 0, err
			}
		}
		if i, err = skipValue(b, i, depth+1); err != nil {
			return 0, err
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return 0, syntax(i, "unexpected end")
		}
		switch b[i] {
		case end:
			return i + 1, nil
		case ',':
			i = skipSpace(b, i+1)
		default:
			return 0, syntax(i, "expected a comma or the end")
		}
	}
}

// skipKey returns the position of the value that belongs to the key at i.
func skipKey(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return 0, syntax(i, "expected a key")
	}
	i, err := skipString(b, i)
	if err != nil {
		return 0, err
	}
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return 0, syntax(i, "expected a colon")
	}
	return skipSpace(b, i+1), nil
}

// plain marks the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < len(t); c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func skipString(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		if plain[b[i]] {
			continue
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return 0, syntax(i, "control character in a string")
		default:
			i++
			if i >= len(b) {
				return 0, syntax(i, "unexpected end")
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(b)-i < 5 || !isHex(b[i+1:i+5]) {
					return 0, syntax(i, "invalid escape")
				}
				i += 4
			default:
				return 0, syntax(i, "invalid escape")
			}
		}
	}
	return 0, syntax(i, "unexpected end")
}

func isHex(b []byte) bool {
	for _, c := range b {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

func skipNumber(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	start := i
	i = skipDigits(b, i)
	if i == start || b[start] == '0' && i > start+1 {
		return 0, syntax(start, "invalid number")
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = skipDigits(b, start); i == start {
			return 0, syntax(start, "invalid number")
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		start = i + 1
		if start < len(b) && (b[start] == '+' || b[start] == '-') {
			start++
		}
		if i = skipDigits(b, start); i == start {
			return 0, syntax(start, "invalid number")
		}
	}
	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
