package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// entry is one known failure.
type entry struct {
	id, kind, operation string
	// struck is why it cannot happen here; empty for an entry that needs a test.
	struck string
}

// test is a top-level test function.
type test struct {
	dir, name string
}

func (t test) String() string { return t.dir + " " + t.name }

var (
	idForm = regexp.MustCompile(`^(F\d{3}|P\d+b?)$`)
	// idInName finds ids in a function's name. The digits are taken whole, so
	// that P1 is not found in P13; a b belongs to the id unless it begins a word.
	idInName = regexp.MustCompile(`F\d{3}|P\d+(?:b\b|b[A-Z_])?`)
)

func parseEntries(text string) ([]entry, error) {
	var out []entry
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) < 3 || len(f) > 4 || !idForm.MatchString(f[0]) {
			return nil, fmt.Errorf("line %d is not id, kind, operation and perhaps struck: %q", i+1, line)
		}
		if seen[f[0]] {
			return nil, fmt.Errorf("line %d repeats %s", i+1, f[0])
		}
		seen[f[0]] = true
		e := entry{id: f[0], kind: f[1], operation: f[2]}
		if len(f) == 4 {
			reason, ok := strings.CutPrefix(f[3], "struck: ")
			if !ok || reason == "" {
				return nil, fmt.Errorf("line %d: the fourth field is not \"struck: reason\": %q", i+1, f[3])
			}
			e.struck = reason
		}
		out = append(out, e)
	}
	return out, nil
}

// idsOf lists the ids in the name of a test function.
func idsOf(name string) []string {
	var out []string
	for _, m := range idInName.FindAllString(name, -1) {
		if i := strings.IndexByte(m, 'b'); i > 0 {
			m = m[:i+1]
		}
		out = append(out, m)
	}
	return out
}

// scan finds the test functions of the module rooted at root, by id. Nested
// modules and directories the go command skips are left out.
func scan(root fs.FS) (map[string][]test, error) {
	out := map[string][]test{}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && skipped(root, p, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !isTest(fn.Name.Name) {
				continue
			}
			for _, id := range idsOf(fn.Name.Name) {
				out[id] = append(out[id], test{path.Dir(p), fn.Name.Name})
			}
		}
		return nil
	})
	for _, tests := range out {
		slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.String(), b.String()) })
	}
	return out, err
}

func skipped(root fs.FS, dir, name string) bool {
	if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "bin" || name == "tmp" {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")
}

// render is the page. A test that names an id without an entry is an error:
// either the name or the list is wrong.
func render(entries []entry, tests map[string][]test) ([]byte, error) {
	known := map[string]bool{}
	covered, struck := 0, 0
	for _, e := range entries {
		known[e.id] = true
		switch {
		case e.struck != "" && len(tests[e.id]) > 0:
			return nil, fmt.Errorf("%s is struck and has a test: %s", e.id, tests[e.id][0])
		case e.struck != "":
			struck++
		case len(tests[e.id]) > 0:
			covered++
		}
	}
	for id, ts := range tests {
		if !known[id] {
			return nil, fmt.Errorf("%s names %s, which %s does not list", ts[0], id, idsFile)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Known failures and their tests

Written by `+"`make failures`"+` from docs/failures.ids.txt and the names of the tests. F: seen in
other programs; P: seen in SeaweedFS's built-in worker.

%d entries: %d with a test, %d struck, %d without a test yet.

| id | kind | operation | tests |
|---|---|---|---|
`, len(entries), covered, struck, len(entries)-covered-struck)
	for _, e := range entries {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.id, e.kind, e.operation, state(e, tests[e.id]))
	}
	return b.Bytes(), nil
}

func state(e entry, tests []test) string {
	if e.struck != "" {
		return "struck: " + e.struck
	}
	var cells []string
	for _, t := range tests {
		cells = append(cells, "`"+t.dir+"` "+t.name)
	}
	return strings.Join(cells, "<br>")
}
