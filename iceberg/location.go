package iceberg

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// RootKind says by what a directory became one of a table's locations.
type RootKind string

// The ways a table names its directories.
const (
	// RootRecord is where the current metadata file lies, up to its last
	// "/metadata/", or else where the catalog said files would go, or else the
	// record's own directory.
	RootRecord RootKind = "record"
	// RootWarehouse is the catalog's warehouse location.
	RootWarehouse RootKind = "warehouse"
	// RootLocation is the metadata's location.
	RootLocation RootKind = "location"
	// RootData and the like are table properties.
	RootData     RootKind = "write.data.path"
	RootMetadata RootKind = "write.metadata.path"
	RootObjects  RootKind = "write.object-storage.path"
	RootFolders  RootKind = "write.folder-storage.path"
)

// Root is one of a table's locations.
type Root struct {
	Kind RootKind
	Path filer.Path
}

// Locator turns the spellings of paths in one table's metadata into filer paths
// and back. The same file is spelled in many ways: with the scheme s3, s3a or
// s3n, as a URL of a filer, from /buckets on, from the bucket on, relative to the
// table, with double slashes, percent-encoded. A Locator is immutable.
type Locator struct {
	bucket string
	// record is the directory of the catalog record.
	record filer.Path
	root   filer.Path
	roots  []Root
	// style is what Spelling puts before the path inside the bucket's directory.
	style string
	// data and metadata are where new files go.
	data, metadata filer.Path
}

// NewLocator makes the Locator of a table. m may be nil for a table without
// metadata.
func NewLocator(id TableID, r *Record, m *Metadata) (*Locator, error) {
	l := &Locator{bucket: id.Bucket, record: r.Path, style: "s3://"}
	root, err := l.recordRoot(r)
	if err != nil {
		return nil, err
	}
	l.root = root
	l.roots = []Root{{RootRecord, root}}
	if p, err := l.absolute(r.WarehouseLocation); err == nil {
		l.add(RootWarehouse, p)
	}
	l.data, l.metadata = root.Join("data"), root.Join("metadata")
	if m == nil {
		return l, nil
	}
	l.style = styleOf(m.Location)
	return l, l.fromMetadata(m)
}

func (l *Locator) fromMetadata(m *Metadata) error {
	location, err := l.Resolve(m.Location)
	if err != nil {
		return fault.In("find the table's location", err)
	}
	l.add(RootLocation, location)
	l.data, l.metadata = location.Join("data"), location.Join("metadata")
	for _, kind := range []RootKind{RootFolders, RootObjects, RootData, RootMetadata} {
		text := m.Properties[string(kind)]
		if text == "" {
			continue
		}
		p, err := l.Resolve(text)
		if err != nil {
			return fault.In("find the directory in the table property "+string(kind), err)
		}
		l.add(kind, p)
		switch {
		case kind == RootMetadata:
			l.metadata = p
		case kind != RootObjects || strings.EqualFold(m.Properties["write.object-storage.enabled"], "true"):
			l.data = p
		}
	}
	return nil
}

func (l *Locator) add(kind RootKind, p filer.Path) {
	if !slices.ContainsFunc(l.roots, func(r Root) bool { return r.Path == p }) {
		l.roots = append(l.roots, Root{kind, p})
	}
}

// recordRoot is where the catalog takes the record's files to be.
func (l *Locator) recordRoot(r *Record) (filer.Path, error) {
	for _, text := range []string{cutMetadata(r.MetadataLocation), r.WarehouseLocation} {
		if text == "" {
			continue
		}
		p, err := l.absolute(text)
		if err != nil {
			return "", fault.In("find the directory of the catalog record "+r.Path.String(), err)
		}
		if p.Bucket() == l.bucket && p != filer.BucketPath(l.bucket) {
			return p, nil
		}
	}
	return r.Path, nil
}

// cutMetadata is the table's directory as a metadata location shows it. A file
// outside of any metadata directory, as a registered table may have, shows the
// directory it is in.
func cutMetadata(location string) string {
	location = strings.TrimSuffix(location, "/")
	if i := strings.LastIndex(location, "/metadata/"); i >= 0 {
		return location[:i]
	}
	return location[:max(0, strings.LastIndexByte(location, '/'))]
}

func styleOf(location string) string {
	scheme, rest, ok := cutScheme(location)
	switch {
	case !ok:
		return "s3://"
	case isS3(scheme):
		return scheme + "://"
	}
	authority, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + authority + "/buckets/"
}

// cutScheme splits a URI. The scheme keeps its case.
func cutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(s, "://")
	if !ok || scheme == "" {
		return "", s, false
	}
	for i, c := range []byte(scheme) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return "", s, false
		}
	}
	return scheme, rest, true
}

func isS3(scheme string) bool {
	switch strings.ToLower(scheme) {
	case "s3", "s3a", "s3n":
		return true
	}
	return false
}

func refuse(spelling, why string) error {
	return fault.New(fault.Unsupported, fmt.Sprintf("path %q %s", spelling, why))
}

// absolute resolves a spelling that says where it begins.
func (l *Locator) absolute(spelling string) (filer.Path, error) {
	if scheme, rest, ok := cutScheme(spelling); ok {
		switch {
		case isS3(scheme):
			return clean(spelling, "/buckets/"+rest)
		case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"), strings.EqualFold(scheme, "seaweedfs"):
			_, key, _ := strings.Cut(rest, "/")
			if !strings.HasPrefix(strings.TrimLeft(key, "/"), "buckets/") {
				return "", refuse(spelling, "does not lead to a bucket of a filer")
			}
			return clean(spelling, "/"+key)
		}
		return "", refuse(spelling, "has a scheme that is not handled")
	}
	if strings.HasPrefix(spelling, "/") {
		key := "/" + strings.TrimLeft(spelling, "/")
		if strings.HasPrefix(key, "/buckets/") {
			return clean(spelling, key)
		}
		if strings.HasPrefix(key, "/"+l.bucket+"/") {
			return clean(spelling, "/buckets"+key)
		}
		return "", refuse(spelling, "is absolute but outside of all buckets")
	}
	return "", refuse(spelling, "is not absolute")
}

// clean checks a path below /buckets and brings it into canonical form.
func clean(spelling, p string) (filer.Path, error) {
	if strings.IndexByte(p, 0) >= 0 {
		return "", refuse(spelling, "holds a zero byte")
	}
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			return "", refuse(spelling, "climbs")
		}
	}
	out, err := filer.ParsePath(path.Clean(p))
	if err != nil {
		return "", err
	}
	if out.Bucket() == "" {
		return "", refuse(spelling, "names no bucket")
	}
	return out, nil
}

// Candidates returns every filer path that a spelling may mean, the likeliest
// first: what is written, then what it means percent-decoded, because object
// names reach the filer decoded while metadata may keep the escapes. A relative
// spelling that begins with the bucket's name may mean that, too. The first one
// that exists is the file; all of them count as referenced. A spelling that
// cannot be told is fault.Unsupported. Paths in other buckets are returned as
// well, see Foreign.
func (l *Locator) Candidates(spelling string) ([]filer.Path, error) {
	var out []filer.Path
	literal, err := l.read(spelling)
	if err != nil {
		return nil, err
	}
	out = append(out, literal...)
	if !strings.Contains(spelling, "%") {
		return out, nil
	}
	decoded, err := url.PathUnescape(spelling)
	if err != nil {
		return out, nil // no escapes, then
	}
	more, err := l.read(decoded)
	if err != nil {
		return out, nil
	}
	for _, p := range more {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// read returns what a spelling may mean as it is.
func (l *Locator) read(spelling string) ([]filer.Path, error) {
	if spelling == "" {
		return nil, refuse(spelling, "is empty")
	}
	if _, _, uri := cutScheme(spelling); uri || spelling[0] == '/' {
		p, err := l.absolute(spelling)
		return []filer.Path{p}, err
	}
	first, rest, more := strings.Cut(spelling, "/")
	if strings.HasSuffix(first, ":") {
		return nil, refuse(spelling, "has a scheme that is not handled")
	}
	relative, err := clean(spelling, l.root.String()+"/"+spelling)
	if err != nil {
		return nil, err
	}
	out := []filer.Path{relative}
	if first == l.bucket && more && strings.Trim(rest, "/") != "" {
		full, err := clean(spelling, "/buckets/"+spelling)
		if err != nil {
			return nil, err
		}
		if first == "metadata" || first == "data" {
			return append(out, full), nil
		}
		return []filer.Path{full, relative}, nil
	}
	return out, nil
}

// Resolve returns the likeliest of the Candidates.
func (l *Locator) Resolve(spelling string) (filer.Path, error) {
	out, err := l.read(spelling)
	if err != nil {
		return "", err
	}
	return out[0], nil
}

// Foreign reports whether p is outside of the table's bucket.
func (l *Locator) Foreign(p filer.Path) bool { return p.Bucket() != l.bucket }

// Readable returns fault.Unsupported for a path in another bucket: metadata must
// not make this program copy what belongs to others.
func (l *Locator) Readable(p filer.Path) error {
	if !l.Foreign(p) {
		return nil
	}
	return fault.New(fault.Unsupported, fmt.Sprintf("file %s is not in the table's bucket %s", p, l.bucket))
}

// Bucket is the table's bucket.
func (l *Locator) Bucket() string { return l.bucket }

// Root is the directory the catalog takes the table's files to be in.
func (l *Locator) Root() filer.Path { return l.root }

// Roots are all locations of the table, the record's first, without repeats. Some
// may be in other buckets. It must not be modified.
func (l *Locator) Roots() []Root { return l.roots }

// Data is the directory new data files go to.
func (l *Locator) Data() filer.Path { return l.data }

// Metadata is the directory new manifests, lists and other metadata go to.
func (l *Locator) Metadata() filer.Path { return l.metadata }

// Pointer is the directory new metadata JSON goes to. It is below the root, and
// not where write.metadata.path says, because the catalog tells a table's root
// by the place of its metadata file, and a commit must not move it.
func (l *Locator) Pointer() filer.Path { return l.root.Join("metadata") }

// Owned reports whether p is below a location of this table, so that it may be
// taken for its file, as far as this table can tell: Sharing knows what other
// tables claim. Locations own nothing that lie in another bucket, that are a
// whole bucket or a directory directly in one, as namespaces are, that hold the
// table's own record, or that begin with a dot.
func (l *Locator) Owned(p filer.Path) bool {
	if l.Foreign(p) {
		return false
	}
	return slices.ContainsFunc(l.roots, func(r Root) bool { return p != r.Path && p.Within(r.Path) && l.ownable(r.Path) })
}

func (l *Locator) ownable(root filer.Path) bool {
	if root.Bucket() != l.bucket || l.record.Dir().Within(root) {
		return false
	}
	first, _, deep := strings.Cut(root.Rel(filer.BucketPath(l.bucket)), "/")
	return deep && !strings.HasPrefix(first, ".")
}

// Spelling is p as an absolute URI in the table's own style, for new metadata
// (F124). It is literal; Resolve gives p back.
func (l *Locator) Spelling(p filer.Path) string {
	return l.style + p.Rel(filer.BucketsRoot)
}
