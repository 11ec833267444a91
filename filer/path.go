package filer

import (
	"fmt"
	"path"
	"strings"

	"github.com/seaice/seaice/fault"
)

// Path is the canonical absolute path of a filer entry: it begins with a slash,
// does not end with one (but for the root), and has no empty, "." or ".."
// element. Names are bytes; a backslash or a percent sign is an ordinary
// character (F114).
type Path string

// BucketsRoot is the directory that holds all buckets.
const BucketsRoot Path = "/buckets"

// ParsePath checks that s is canonical and returns it as a Path.
func ParsePath(s string) (Path, error) {
	if s == "" || s[0] != '/' || path.Clean(s) != s || strings.ContainsRune(s, 0) {
		return "", fault.New(fault.Unsupported, fmt.Sprintf("path %q is not an absolute, clean filer path", s))
	}
	return Path(s), nil
}

// String is the path as text.
func (p Path) String() string { return string(p) }

// Dir is the parent directory; the root is its own parent.
func (p Path) Dir() Path { return Path(path.Dir(string(p))) }

// Name is the last element.
func (p Path) Name() string { return path.Base(string(p)) }

// Join appends names, which may contain slashes. The result is cleaned, so
// names must come from this program or have been checked with Within.
func (p Path) Join(names ...string) Path {
	return Path(path.Join(append([]string{string(p)}, names...)...))
}

// Within reports whether p is dir or lies below it.
func (p Path) Within(dir Path) bool {
	if p == dir || dir == "/" {
		return true
	}
	return len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// Rel is p relative to dir, without a leading slash. It panics unless p lies
// within dir, because such a call is a programming error.
func (p Path) Rel(dir Path) string {
	if !p.Within(dir) {
		panic(fmt.Sprintf("%s is not within %s", p, dir))
	}
	return strings.TrimPrefix(strings.TrimPrefix(string(p), string(dir)), "/")
}

// Bucket is the name of the bucket p lies in, or "" outside of all buckets.
func (p Path) Bucket() string {
	if !p.Within(BucketsRoot) || p == BucketsRoot {
		return ""
	}
	name, _, _ := strings.Cut(p.Rel(BucketsRoot), "/")
	return name
}

// BucketPath is the directory of the named bucket.
func BucketPath(bucket string) Path { return BucketsRoot.Join(bucket) }
