package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on the text of the rules, which comes from a form anybody may fill.
const (
	maxRulesBytes = 1 << 20
	maxRules      = 10_000
	maxProblems   = 100
)

// Rule sets values for the tables its pattern matches.
type Rule struct {
	// Line is where the rule stands in its text, from 1.
	Line    int
	Pattern Pattern
	Assign  []Assignment
}

// Assignment is one setting=value of a rule.
type Assignment struct {
	Setting string
	Value   string
	// Column is where it begins in its line, in characters from 1.
	Column int
}

// Pattern matches tables by "bucket/namespace/table". In every part * stands
// for any characters and ? for one; neither crosses a slash.
type Pattern [3]string

// Matches reports whether the table "bucket/namespace/table" fits.
func (p Pattern) Matches(table string) bool {
	parts := strings.Split(table, "/")
	if len(parts) != len(p) {
		return false
	}
	for i, part := range parts {
		if !glob(p[i], part) {
			return false
		}
	}
	return true
}

// String is the pattern as it is written.
func (p Pattern) String() string { return strings.Join(p[:], "/") }

// String is the rule as a line ParseRules reads.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Pattern.String())
	for _, a := range r.Assign {
		b.WriteString(" " + a.Setting + "=" + quote(a.Value))
	}
	return b.String()
}

// ParseRules reads the rules field: one rule a line, a pattern and then
// setting=value, separated by white space. A value with white space, a quote
// or # stands in double quotes, in which \" and \\ are read. # begins a comment.
// All lines are read; the error, of type *Error, names the line and column of
// every problem.
func ParseRules(text string) ([]Rule, error) {
	if len(text) > maxRulesBytes {
		return nil, refuse("", []Problem{{Setting: "rules", Origin: Origin{Source: FromForm}, Value: text,
			Reason: fmt.Sprintf("is longer than %d bytes", maxRulesBytes)}})
	}
	var rules []Rule
	var problems []Problem
	for i, line := range strings.Split(text, "\n") {
		p := &ruleParser{line: i + 1, text: strings.TrimSuffix(line, "\r")}
		rule, ok := p.rule()
		problems = append(problems, p.problems...)
		if ok {
			rules = append(rules, rule)
		}
		if len(rules) > maxRules {
			problems = append(problems, p.problem(0, fmt.Sprintf("more than %d rules", maxRules)))
			break
		}
		if len(problems) >= maxProblems {
			break
		}
	}
	if len(problems) > 0 {
		return nil, refuse("", problems)
	}
	return rules, nil
}

// ruleParser reads one line.
type ruleParser struct {
	line     int
	text     string
	pos      int
	problems []Problem
}

func (p *ruleParser) problem(at int, reason string) Problem {
	return Problem{Origin: Origin{Source: FromRule, Name: fmt.Sprintf("line %d", p.line)}, Reason: reason, Line: p.line, Column: p.column(at)}
}

func (p *ruleParser) fail(at int, format string, args ...any) {
	p.problems = append(p.problems, p.problem(at, fmt.Sprintf(format, args...)))
}

func (p *ruleParser) column(at int) int { return utf8.RuneCountInString(p.text[:at]) + 1 }

// rule reads the line; ok is false for an empty line or one with problems.
func (p *ruleParser) rule() (r Rule, ok bool) {
	if !utf8.ValidString(p.text) {
		p.fail(0, "is not valid UTF-8")
		return r, false
	}
	p.space()
	if p.end() {
		return r, false
	}
	r.Line = p.line
	r.Pattern = p.pattern()
	if len(p.problems) > 0 {
		return r, false
	}
	for p.space(); !p.end(); p.space() {
		a, good := p.assignment()
		if !good {
			return r, false
		}
		p.check(r.Assign, a)
		r.Assign = append(r.Assign, a)
	}
	if len(r.Assign) == 0 && len(p.problems) == 0 {
		p.fail(p.pos, "the rule sets nothing; write setting=value behind the pattern")
	}
	return r, len(p.problems) == 0
}

// end is true at the end of the line or at a comment.
func (p *ruleParser) end() bool { return p.pos == len(p.text) || p.text[p.pos] == '#' }

func (p *ruleParser) space() {
	rest := strings.TrimLeftFunc(p.text[p.pos:], unicode.IsSpace)
	p.pos = len(p.text) - len(rest)
}

// word reads up to white space or one of stop.
func (p *ruleParser) word(stop string) string {
	rest := p.text[p.pos:]
	n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(stop, r) })
	if n < 0 {
		n = len(rest)
	}
	p.pos += n
	return rest[:n]
}

func (p *ruleParser) pattern() (out Pattern) {
	at := p.pos
	word := p.word("#=\"")
	parts := strings.Split(word, "/")
	if len(parts) != len(out) {
		p.fail(at, "pattern %q must be bucket/namespace/table; write * for any", clip(word))
		return out
	}
	for i, part := range parts {
		if part == "" {
			p.fail(at, "pattern %q has an empty part; write * for any", clip(word))
			return out
		}
		out[i] = part
	}
	if p.pos < len(p.text) && (p.text[p.pos] == '=' || p.text[p.pos] == '"') {
		p.fail(p.pos, "unexpected %q behind the pattern", p.text[p.pos])
	}
	return out
}

func (p *ruleParser) assignment() (a Assignment, ok bool) {
	at := p.pos
	a.Column = p.column(at)
	a.Setting = p.word("=#\"")
	if a.Setting == "" || p.pos == len(p.text) || p.text[p.pos] != '=' {
		p.fail(at, "expected setting=value, found %q", clip(p.text[at:]))
		return a, false
	}
	p.pos++
	if p.pos < len(p.text) && p.text[p.pos] == '"' {
		a.Value, ok = p.quoted()
		return a, ok
	}
	a.Value = p.word("\"#")
	if p.pos < len(p.text) && p.text[p.pos] == '"' {
		p.fail(p.pos, "a quote must stand at the beginning of the value")
		return a, false
	}
	return a, true
}

func (p *ruleParser) quoted() (string, bool) {
	at := p.pos
	var b strings.Builder
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch c := p.text[p.pos]; c {
		case '"':
			p.pos++
			if p.pos < len(p.text) && !p.end() && !unicode.IsSpace(rune(p.text[p.pos])) {
				p.fail(p.pos, "expected white space behind the closing quote")
				return "", false
			}
			return b.String(), true
		case '\\':
			if p.pos+1 == len(p.text) || !strings.ContainsRune(`"\`, rune(p.text[p.pos+1])) {
				p.fail(p.pos, `a backslash must be followed by \ or "`)
				return "", false
			}
			p.pos++
			b.WriteByte(p.text[p.pos])
		default:
			b.WriteByte(c)
		}
	}
	p.fail(at, "the quote is not closed")
	return "", false
}

// check refuses an assignment that could never hold.
func (p *ruleParser) check(before []Assignment, a Assignment) {
	bad := func(reason string) {
		p.problems = append(p.problems, Problem{Setting: a.Setting, Value: a.Value, Reason: reason,
			Origin: Origin{Source: FromRule, Name: fmt.Sprintf("line %d", p.line)}, Line: p.line, Column: a.Column})
	}
	for _, b := range before {
		if b.Setting == a.Setting {
			bad("is set twice in this rule")
			return
		}
	}
	d := find(a.Setting)
	switch {
	case d == nil:
		bad("is no setting" + nearest(a.Setting))
	case d.Has(WorkerWide):
		bad("holds for the whole worker and cannot be set for a table")
	case !d.Has(InForm):
		bad("cannot be set by a rule")
	default:
		if _, _, reason := d.parse(a.Value, d.home()); reason != "" {
			bad(reason)
		}
	}
}

// quote writes a value so that ParseRules reads it back.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, "\"#\\") && !strings.ContainsFunc(s, unicode.IsSpace) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// nearest suggests the setting with the smallest edit distance, if it is near.
func nearest(name string) string {
	if len(name) > 64 {
		return ""
	}
	best, at := "", 4
	for i := range table {
		if d := distance(name, table[i].Name); d < at {
			best, at = table[i].Name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// glob matches s against a pattern in which * is any run of characters and ?
// is one. It goes back only to the last star, so its time is bounded by the
// product of the lengths.
func glob(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
