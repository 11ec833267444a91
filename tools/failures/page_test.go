package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestIdsInNames(t *testing.T) {
	for name, want := range map[string][]string{
		"TestSwapIsExclusive":        nil,
		"TestPathHasNoDots":          nil,
		"TestPlanP":                  nil,
		"TestIPv4":                   nil,
		"TestBackslashF114":          {"F114"},
		"TestXF002F006ScopeAndOrder": {"F002", "F006"},
		"TestXP13Rebase":             {"P13"},
		"TestXP2bKeepsLiveRows":      {"P2b"},
		"TestXP2b":                   {"P2b"},
		"TestXP2b_P1":                {"P2b", "P1"},
		"TestXP1before":              {"P1"},
	} {
		require.Equal(t, want, idsOf(name), name)
	}
}

func TestEntriesAreChecked(t *testing.T) {
	got, err := parseEntries("# c\nF001\tdata-loss\tcompact\n\nP2b\tx\ty\tstruck: cannot happen\n")
	require.NoError(t, err)
	require.Equal(t, []entry{{"F001", "data-loss", "compact", ""}, {"P2b", "x", "y", "cannot happen"}}, got)
	for _, bad := range []string{"F1\ta\tb", "F001\ta", "F001\ta\tb\tno", "F001\ta\tb\nF001\ta\tb"} {
		_, err := parseEntries(bad)
		require.Error(t, err, bad)
	}
}

func TestScanSeesOnlyTopLevelTestsOfThisModule(t *testing.T) {
	// The names are put together here so that this file names no id itself.
	f := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package p\nfunc " + name + "() {}\n")}
	}
	id := "F" + "001"
	got, err := scan(fstest.MapFS{
		"a/a_test.go":          f("Test" + id + "Here"),
		"a/b.go":               f("Test" + id + "NotATestFile"),
		"a/c_test.go":          f("helper" + id),
		"a/testdata/d_test.go": f("Test" + id + "Data"),
		"tools/x/go.mod":       {},
		"tools/x/e_test.go":    f("Test" + id + "Nested"),
		"z_test.go":            f("Fuzz" + id),
	})
	require.NoError(t, err)
	require.Equal(t, map[string][]test{id: {{".", "Fuzz" + id}, {"a", "Test" + id + "Here"}}}, got)
}

func TestPageCountsAndRefuses(t *testing.T) {
	entries := []entry{{id: "F001", kind: "k", operation: "o"}, {id: "F002", struck: "no"}, {id: "F003"}}
	tests := map[string][]test{"F001": {{"a", "TestA"}, {"b", "TestB"}}}
	page, err := render(entries, tests)
	require.NoError(t, err)
	require.Contains(t, string(page), "3 entries: 1 with a test, 1 struck, 1 without a test yet.")
	require.Contains(t, string(page), "| F001 | k | o | `a` TestA<br>`b` TestB |\n| F002 |  |  | struck: no |\n| F003 |  |  |  |\n")

	_, err = render(entries, map[string][]test{"F002": {{"a", "TestA"}}})
	require.ErrorContains(t, err, "struck and has a test")
	_, err = render(entries, map[string][]test{"F009": {{"a", "TestA"}}})
	require.ErrorContains(t, err, "does not list")
}
