// Failures writes docs/failures.md: for every known failure of
// docs/failures.ids.txt the tests that cover it. A test covers an entry if the
// name of its top-level function contains the entry's id, as in
// TestF114BackslashIsOrdinary.
//
// With -check it writes nothing and fails if the page is not up to date.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

const (
	idsFile  = "docs/failures.ids.txt"
	pageFile = "docs/failures.md"
)

func main() {
	check := flag.Bool("check", false, "fail if the page is not up to date, write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool) error {
	in, err := os.ReadFile(idsFile)
	if err != nil {
		return err
	}
	entries, err := parseEntries(string(in))
	if err != nil {
		return fmt.Errorf("%s: %w", idsFile, err)
	}
	tests, err := scan(os.DirFS("."))
	if err != nil {
		return err
	}
	page, err := render(entries, tests)
	if err != nil {
		return err
	}
	if check {
		have, err := os.ReadFile(pageFile)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, page) {
			return fmt.Errorf("%s does not list the tests as they are: run make failures", pageFile)
		}
		return nil
	}
	return os.WriteFile(pageFile, page, 0o644)
}
