package model

import (
	"net/url"
	"strings"

	"github.com/seaice/seaice/filer"
)

// Spelling is how a table's manifests and metadata write a path. All of them
// occur in tables that exist.
type Spelling uint8

const (
	// S3 is s3://bucket/key, the usual one.
	S3 Spelling = iota
	// S3A is s3a://bucket/key.
	S3A
	// S3N is s3n://bucket/key.
	S3N
	// Absolute is the filer's own path, /buckets/bucket/key.
	Absolute
	// BucketRelative is bucket/key.
	BucketRelative
	// TableRelative is the path below the table's root.
	TableRelative
	// Escaped is s3://bucket/key with the key percent-encoded, while the file
	// lies under the decoded name.
	Escaped
)

// Spell writes the path of a file of a table.
func (s Spelling) Spell(root, p filer.Path) string {
	key := p.Rel(filer.BucketsRoot)
	switch s {
	case S3A:
		return "s3a://" + key
	case S3N:
		return "s3n://" + key
	case Absolute:
		return p.String()
	case BucketRelative:
		return key
	case TableRelative:
		if p.Within(root) {
			return p.Rel(root)
		}
	case Escaped:
		parts := strings.Split(key, "/")
		for i, part := range parts {
			parts[i] = url.PathEscape(part)
		}
		return "s3://" + strings.Join(parts, "/")
	}
	return "s3://" + key
}

// candidates are the paths a spelling can mean, the literal one first.
func candidates(root filer.Path, text string) []filer.Path {
	buckets := filer.BucketsRoot.String()
	var p string
	if _, rest, ok := strings.Cut(text, "://"); ok {
		p = buckets + "/" + rest
	} else {
		switch {
		case strings.HasPrefix(text, buckets+"/"):
			p = text
		case strings.HasPrefix(text, root.Bucket()+"/"):
			p = buckets + "/" + text
		default:
			p = root.String() + "/" + text
		}
	}
	var out []filer.Path
	if at, err := filer.ParsePath(p); err == nil {
		out = append(out, at)
	}
	if plain, err := url.PathUnescape(p); err == nil && plain != p {
		if at, err := filer.ParsePath(plain); err == nil {
			out = append(out, at)
		}
	}
	return out
}
