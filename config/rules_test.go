package config

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestRulesFirstMatchWinsPerKey(t *testing.T) {
	l := Layers{Rules: rules(t, `
# sizes by namespace
lake/sales/*      target_file_size_mb=512 rewrite_strategy=sort   # sorted
lake/sales/orders target_file_size_mb=64 min_input_files=3
*/*/*             target_file_size_mb=32 branch=audit
lake/sa?es/ord*s  sort_order="ts DESC NULLS LAST, \"the \\ id\"" where="a = '#'"
`)}
	s, err := Resolve(l, orders)
	require.NoError(t, err)
	require.Equal(t, int64(512<<20), s.TargetFileBytes)
	require.Equal(t, Sort, s.RewriteStrategy)
	require.Equal(t, 3, s.MinInputFiles)
	require.Equal(t, "audit", s.Branch)
	require.Equal(t, `ts DESC NULLS LAST, "the \ id"`, s.SortOrder)
	require.Equal(t, "a = '#'", s.Where)
	require.Equal(t, "rule line 3", s.origin("target_file_size_mb").String())
	require.Equal(t, "rule line 4", s.origin("min_input_files").String())

	s, err = Resolve(l, "other/a.b/t")
	require.NoError(t, err)
	require.Equal(t, int64(32<<20), s.TargetFileBytes)
	require.Equal(t, Binpack, s.RewriteStrategy)
}

func TestRuleErrorsNameLineAndColumn(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		reason       string
	}{
		{"lake/sales dry_run=true", 1, 1, "must be bucket/namespace/table"},
		{"\n  lake//t dry_run=true", 2, 3, "has an empty part"},
		{"lake/a/t", 1, 9, "sets nothing"},
		{"lake/a/t # nothing", 1, 10, "sets nothing"},
		{"lake/a/t dry_run", 1, 10, "expected setting=value"},
		{"lake/a/t =true", 1, 10, "expected setting=value"},
		{"lake/a/t dry_run=true target_file_size=5", 1, 23, "is no setting; did you mean target_file_size_mb?"},
		{"lake/a/t dry_run=maybe", 1, 10, "must be true or false"},
		{"lake/ä/t target_file_size_mb=-1", 1, 10, "out of range; allowed is 1 to"},
		{"lake/a/t memory_budget_mb=99", 1, 10, "holds for the whole worker"},
		{"lake/a/t rules=x", 1, 10, "holds for the whole worker"},
		{"lake/a/t bucket_filter=x", 1, 10, "cannot be set by a rule"},
		{"lake/a/t keys=x", 1, 10, "cannot be set by a rule"},
		{"lake/a/t branch=a branch=b", 1, 19, "is set twice"},
		{`lake/a/t where="a`, 1, 16, "not closed"},
		{`lake/a/t where="a"b`, 1, 19, "expected white space"},
		{`lake/a/t where="a\n"`, 1, 18, "backslash"},
		{`lake/a/t where=a"b"`, 1, 17, "at the beginning"},
		{"lake/a/t=5", 1, 9, "unexpected"},
		{"lake/a/t \xff=1", 1, 1, "UTF-8"},
		{"*/*/* operations=compact,vacuum", 1, 7, "unknown operation"},
	} {
		_, err := ParseRules(c.text)
		ps := problems(t, err)
		require.Len(t, ps, 1, c.text)
		require.Equal(t, [2]int{c.line, c.column}, [2]int{ps[0].Line, ps[0].Column}, "%q: %s", c.text, ps[0])
		require.Contains(t, ps[0].String(), c.reason)
	}
}

func TestRuleErrorsOfAllLinesAtOnce(t *testing.T) {
	_, err := ParseRules("a/b/c x=1\n# fine\na/b/c branch=main\na b\r\n")
	ps := problems(t, err)
	require.Len(t, ps, 2)
	require.ErrorContains(t, err, "rules line 1 column 7")
	require.ErrorContains(t, err, "rules line 4 column 1")
}

func TestRulesAreBounded(t *testing.T) {
	_, err := ParseRules(strings.Repeat("#", maxRulesBytes+1))
	require.ErrorContains(t, err, "longer than")
	require.Less(t, len(err.Error()), 1000, "the text itself must not fill the log")
	_, err = ParseRules(strings.Repeat("*/*/* branch=b\n", maxRules+1))
	require.ErrorContains(t, err, "more than 10000 rules")
	_, err = ParseRules(strings.Repeat("x\n", 100_000))
	require.Len(t, problems(t, err), maxProblems)
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"*", "a.b", true}, {"?", "ä", true}, {"?", "", false}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"*a*b*", "xxaxxbxx", true}, {"**", "a", true}, {"a?c", "abc", true}, {"abc", "abcd", false}, {"A", "a", false}, {"", "", true},
		{strings.Repeat("a*", 30) + "b", strings.Repeat("a", 5000), false},
	} {
		require.Equal(t, c.want, glob(c.pattern, c.s), "%q %q", c.pattern, c.s)
	}
	p := Pattern{"a*", "*", "*"}
	require.False(t, p.Matches("a/b"), "a star does not cross a slash")
	require.False(t, p.Matches("a/b/c/d"))
	require.True(t, p.Matches("ab/c.d/e"))
}

func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		"lake/sales/* target_file_size_mb=512 rewrite_strategy=sort",
		"# c\r\n\r\na/b/c where=\"x = '\\\"'\" dry_run=1 # z",
		"*/?/** sort_order=\"zorder(a, b)\"", "a/b/c=", "a/b", "\"", "a/b/c where=\"", "a/b/c where=\"\\",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseRules(text)
		if err != nil {
			for _, p := range problems(t, err) {
				require.NotEmpty(t, p.Reason)
				if p.Line > 0 {
					lines := strings.Split(text, "\n")
					require.LessOrEqual(t, p.Line, len(lines))
					require.GreaterOrEqual(t, p.Column, 1)
					require.LessOrEqual(t, p.Column, utf8.RuneCountInString(lines[p.Line-1])+1)
				}
			}
			return
		}
		for _, rule := range parsed {
			again, err := ParseRules(rule.String())
			require.NoError(t, err, rule.String())
			require.Len(t, again, 1)
			require.Empty(t, cmp.Diff(rule.Pattern, again[0].Pattern))
			require.Len(t, again[0].Assign, len(rule.Assign))
			for i, a := range rule.Assign {
				require.Equal(t, a.Setting, again[0].Assign[i].Setting)
				require.Equal(t, a.Value, again[0].Assign[i].Value)
			}
		}
		if _, err := Resolve(Layers{Rules: parsed}, orders); err != nil {
			// Only values that are bad together may be refused now.
			for _, p := range problems(t, err) {
				require.Contains(t, []string{"operations", "where", "keys", "verify"}, p.Setting, p.String())
			}
		}
	})
}
