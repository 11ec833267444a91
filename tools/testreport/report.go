package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of "go test -json" (see go doc test2json). Build output
// comes with ImportPath instead of Package.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

// fixtureWord is in the message of every test that skips for want of fixtures,
// in any case: they name the variable SEAICE_FIXTURES or say "fixtures".
const fixtureWord = "fixture"

// report gathers events. Output of a test is kept until it is known whether
// it failed.
type report struct {
	out     io.Writer
	output  map[string][]string // by package and test, "" is the package itself
	builds  map[string][]string // compiler output by import path
	reasons map[string]int      // skipped tests by their last line

	passed, failed, skipped, fixtures int
	// broken counts packages that failed without a failed test in them: they
	// did not build, or died.
	broken    int
	failedIn  map[string]int
	brokenPkg []string
	failures  []string
}

func newReport(out io.Writer) *report {
	return &report{
		out:      out,
		output:   map[string][]string{},
		builds:   map[string][]string{},
		reasons:  map[string]int{},
		failedIn: map[string]int{},
	}
}

// read handles every event of in. Lines that are not events, such as those of
// the toolchain itself, are printed as they are.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				fmt.Fprintf(r.out, "%s\n", bytes.TrimRight(line, "\n"))
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e, key)
		} else {
			r.endTest(e, key)
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		reason := lastWords(r.output[key])
		r.reasons[reason]++
		if strings.Contains(strings.ToLower(reason), fixtureWord) {
			r.fixtures++
		}
	case "fail":
		r.failed++
		r.failedIn[e.Package]++
		r.failures = append(r.failures, e.Package+" "+e.Test)
		r.print(r.output[key])
	}
}

func (r *report) endPackage(e event, key string) {
	out := r.output[key]
	if e.Action == "fail" {
		r.print(r.builds[e.FailedBuild])
		if r.failedIn[e.Package] == 0 {
			r.broken++
			r.brokenPkg = append(r.brokenPkg, e.Package)
			// A panic or a time-out ends the process: what the running tests had
			// said is the only trace of it.
			for _, k := range r.unfinished(e.Package) {
				r.print(r.output[k])
				delete(r.output, k)
			}
		}
		r.print(out)
		return
	}
	for _, line := range out {
		if strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "ok\t") {
			fmt.Fprint(r.out, line)
		}
	}
}

// unfinished lists the keys of the tests of pkg that have not ended.
func (r *report) unfinished(pkg string) []string {
	var keys []string
	for k := range r.output {
		if p, test, _ := strings.Cut(k, "\x00"); p == pkg && test != "" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (r *report) print(lines []string) {
	for _, l := range lines {
		fmt.Fprint(r.out, l)
	}
}

// finish prints the counts and reports whether all is well.
func (r *report) finish() bool {
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		fmt.Fprintf(r.out, "skipped %d: %s\n", r.reasons[reason], reason)
	}
	for _, p := range r.brokenPkg {
		fmt.Fprintf(r.out, "failed as a whole: %s\n", p)
	}
	for _, f := range r.failures {
		fmt.Fprintf(r.out, "failed: %s\n", f)
	}
	ran := r.passed + r.failed
	if ran == 0 && r.broken == 0 {
		fmt.Fprintln(r.out, "no test ran")
	}
	fmt.Fprintf(r.out, "skipped for absent fixtures: %d\n", r.fixtures)
	fmt.Fprintf(r.out, "tests: %d passed, %d failed, %d skipped\n", r.passed, r.failed+r.broken, r.skipped)
	return ran > 0 && r.failed == 0 && r.broken == 0
}

// lastWords is the message a test gave with Skip: the last line of its output
// that is not one of the runner's, without the place it came from.
func lastWords(lines []string) string {
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "=== ") {
			continue
		}
		if place, words, ok := strings.Cut(l, ": "); ok && strings.Contains(place, ".go:") {
			l = words
		}
		return l
	}
	return "no reason given"
}
