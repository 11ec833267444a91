package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's directory, seen from this package.
const root = "../.."

// skippedDirs hold nothing that is written here.
var skippedDirs = []string{".git", ".venv", ".fuzz", "bin", "tmp"}

// failures is where rapid keeps what failed; git ignores it.
const failures = "testdata/rapid"

// file is one file of the project.
type file struct {
	path string
	data []byte
}

func (f file) product() bool {
	return strings.HasSuffix(f.path, ".go") && !strings.HasSuffix(f.path, "_test.go")
}

// files are all files of the project but binary test inputs.
func files(t *testing.T) []file {
	t.Helper()
	var out []file
	fsys := os.DirFS(root)
	require.NoError(t, fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (slices.Contains(skippedDirs, p) || strings.HasSuffix(p, failures)) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		if !bytes.Contains(data[:min(len(data), 8<<10)], []byte{0}) {
			out = append(out, file{p, data})
		}
		return nil
	}))
	require.NotEmpty(t, out)
	return out
}

// report fails t once with everything that was found.
func report(t *testing.T, advice string, found []string) {
	t.Helper()
	if len(found) > 0 {
		slices.Sort(found)
		t.Errorf("%s:\n%s", advice, strings.Join(slices.Compact(found), "\n"))
	}
}

// elsewhere are the directories whose packages may import everything, so they
// need no room of their own.
var elsewhere = regexp.MustCompile(`^(cmd|bench|weed_test|tools|internal/cluster|internal/lint)(/|$)`)

func TestEveryPackageHasARoom(t *testing.T) {
	config, err := os.ReadFile(root + "/.golangci.yml")
	require.NoError(t, err)
	var found []string
	for _, f := range files(t) {
		if dir := path.Dir(f.path); f.product() && !elsewhere.MatchString(dir) && !hasRoom(string(config), dir) {
			found = append(found, dir)
		}
	}
	report(t, "packages without a depguard rule; say in .golangci.yml what each may import", found)
}

// hasRoom reports whether a rule of the linter's configuration is about the
// package in dir, or about the whole tree of a directory above it.
func hasRoom(config, dir string) bool {
	const start, end = `files: ["${config-path}/`, `", "!$test"]`
	if strings.Contains(config, start+dir+"/*.go"+end) {
		return true
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if strings.Contains(config, start+dir+"/**"+end) {
			return true
		}
	}
	return false
}

// machineWords are traces of the machine or the people a file was written on
// or by. The classes of one letter keep this line from matching itself.
var machineWords = regexp.MustCompile(`/w[o]rk/|/f[a]rm/|/r[o]ot/|\.libr[a]ry/|sub[a]gent|https?://(proxy|registry|repo1?|deb|index|files|static)\.`)

func TestFilesSpeakOfTheProjectAlone(t *testing.T) {
	var found []string
	for _, f := range files(t) {
		if path.Base(f.path) == "go.sum" {
			continue
		}
		for i, line := range bytes.Split(f.data, []byte("\n")) {
			if machineWords.Match(line) {
				found = append(found, fmt.Sprintf("%s:%d: %.120s", f.path, i+1, line))
			}
		}
	}
	report(t, "machine paths and hosts do not belong in the project", found)
}

const maxLines = 600

func TestProductFilesAreOneIdea(t *testing.T) {
	var found []string
	for _, f := range files(t) {
		if n := bytes.Count(f.data, []byte("\n")); f.product() && n > maxLines {
			found = append(found, fmt.Sprintf("%s: %d lines", f.path, n))
		}
	}
	report(t, fmt.Sprintf("files over %d lines hold more than one idea; split them by idea", maxLines), found)
}

var catchAll = regexp.MustCompile(`(^|/)(utils?|common|types|helpers?|misc)(_test)?(\.go$|/)`)

func TestNamesSayWhatIsInside(t *testing.T) {
	var found []string
	for _, f := range files(t) {
		if strings.HasSuffix(f.path, ".go") && catchAll.MatchString(f.path) {
			found = append(found, f.path)
		}
	}
	report(t, "files and packages are named after their idea", found)
}

func TestExportedFunctionsTakeNoBool(t *testing.T) {
	var found []string
	for _, f := range files(t) {
		if !f.product() || strings.HasPrefix(f.path, "tools/") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, f.path, f.data, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			// A function named after the type takes the bool as its datum.
			if !ok || !exported(fn) || strings.HasSuffix(fn.Name.Name, "Bool") {
				continue
			}
			for _, p := range fn.Type.Params.List {
				if id, ok := p.Type.(*ast.Ident); ok && id.Name == "bool" {
					found = append(found, fmt.Sprintf("%s: %s", fset.Position(fn.Pos()), fn.Name.Name))
				}
			}
		}
	}
	report(t, "a bool says nothing at the call; take an options struct or make two functions", found)
}

// exported reports whether other packages can call fn.
func exported(fn *ast.FuncDecl) bool {
	if !fn.Name.IsExported() {
		return false
	}
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	recv := fn.Recv.List[0].Type
	for {
		switch r := recv.(type) {
		case *ast.StarExpr:
			recv = r.X
		case *ast.IndexExpr:
			recv = r.X
		case *ast.IndexListExpr:
			recv = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return true
		}
	}
}

// heavy are packages that would bring cloud SDKs, a catalog client, the built-in
// worker or our own tests' world into the binary. The package testing is there:
// Thrift's library has it, which arrow-go's reader of Parquet needs.
var heavy = regexp.MustCompile(`^(github\.com/apache/iceberg-go/(catalog|io/gocloud)|gocloud\.dev|github\.com/seaweedfs/seaweedfs/weed/worker|github\.com/seaice/seaice/(internal/(model|measure|cluster)|filer/filertest))(/|$)`)

func TestSeaiceLinksNoCloudClient(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/seaice")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var found []string
	for p := range strings.FieldsSeq(string(out)) {
		if heavy.MatchString(p) {
			found = append(found, p)
		}
	}
	report(t, "bin/seaice links what it must not; find the importer with go list -deps", found)
}
