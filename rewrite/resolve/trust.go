package resolve

import (
	"strconv"
	"strings"

	"github.com/seaice/seaice/rewrite/format"
)

// Trust says what of a column may be believed because of who wrote the file.
type Trust struct {
	// Statistics may be read: not those of binary columns by writers that
	// compared bytes as signed (PARQUET-251), nor by unknown writers, nor those
	// that arrow-go 18.8.0 gives repeated columns: with small pages they leave
	// values out. Nor of decimals that are bytes by those that do not compare them as
	// numbers, of floats by those that NaN makes forget values, nor of text that parquet-cpp
	// took from a dictionary of which it knew the first part.
	Statistics bool
	// Nulls may be counted by statistics and indexes: not by writers known to count them
	// wrong.
	Nulls bool
	// DeltaByteArray pages may be moved: not those of writers that lost the
	// prefix at the begin of a page (PARQUET-246).
	DeltaByteArray bool
}

// TrustedWriter says what may be believed of a leaf of a file, by the created_by
// of its footer. The faults of binary columns are those of parquet-mr before 1.8.0; Cloudera's
// 1.5.0 has the correction of the first from cdh5.5 on. A file that does not
// name its writer may be one of them.
func TrustedWriter(createdBy string, leaf *format.Node) Trust {
	w := format.ParseWriter(createdBy)
	t := trustedBy(w, createdBy, leaf)
	t.Nulls = !miscounts(w, leaf.Type)
	return t
}

func trustedBy(w format.Writer, createdBy string, leaf *format.Node) Trust {
	if w.App == polars {
		return Trust{DeltaByteArray: true}
	}
	if w.App == "parquet-go" && leaf.MaxRep > 0 { // what arrow-go calls itself
		return Trust{DeltaByteArray: true}
	}
	binary := leaf.Type == format.ByteArray || leaf.Type == format.FixedLenByteArray
	if binary && shapeOf(leaf).meaning == decimal && miscompares(w, leaf.Type) {
		return Trust{DeltaByteArray: true}
	}
	if forgets(w, leaf.Type) || firstOnly(w, leaf.Type) {
		return Trust{DeltaByteArray: true}
	}
	if !binary || w.App != "" && w.App != "parquet-mr" {
		return Trust{Statistics: true, DeltaByteArray: true}
	}
	old := !w.Versioned || w.Before(1, 8, 0)
	return Trust{Statistics: !old || corrected(createdBy), DeltaByteArray: !old}
}

// polars is the name of Polars to version 1, which does not say its version: bounds of
// decimals compare them without their sign (polars 29347), those of booleans have the
// value of nulls (polars 26667).
const polars = "polars"

// miscounts reports that a writer is known to count nulls wrong: Polars times the number of
// pages (polars 29321), or by rows of lists (polars 20621); parquet-cpp of Arrow before 6.0.0
// not at all where its input had a dictionary (ARROW-12513).
func miscounts(w format.Writer, t format.Type) bool {
	return w.App == polars || w.App == "parquet-cpp-arrow" && t == format.ByteArray && (!w.Versioned || w.Before(6, 0, 0))
}

// miscompares reports that a writer is known to compare decimals that are bytes as if
// they were something else: parquet-go, at least to v0.32.0, and ClickHouse before
// 25.8, which does not say its version as others do, without their sign; parquet-cpp
// before 4.0.0 byte by byte (PARQUET-1655); parquet-rs before 14.0.0 without their sign
// (arrow-rs 1532), and those of any length in all versions (arrow-rs 10860, 11073).
func miscompares(w format.Writer, t format.Type) bool {
	switch {
	case strings.HasSuffix(w.App, "/parquet-go"), strings.HasPrefix(w.App, "clickhouse"):
		return true
	case strings.HasPrefix(w.App, "parquet-cpp"):
		return !w.Versioned || w.Before(4, 0, 0)
	case w.App == "parquet-rs":
		return t == format.ByteArray || !w.Versioned || w.Before(14, 0, 0)
	}
	return false
}

// forgets reports that a NaN makes a writer forget the values before it: parquet-go, in
// dictionary pages at least to v0.32.0, and in others before parquet-go 459.
func forgets(w format.Writer, t format.Type) bool {
	return strings.HasSuffix(w.App, "/parquet-go") && (t == format.Float || t == format.Double)
}

// firstOnly reports that a writer may state the bounds of the first of several
// dictionaries it was given: parquet-cpp of Arrow before 11.0.0 (arrow 15042).
func firstOnly(w format.Writer, t format.Type) bool {
	return w.App == "parquet-cpp-arrow" && t == format.ByteArray && (!w.Versioned || w.Before(11, 0, 0))
}

func corrected(createdBy string) bool {
	_, rest, ok := strings.Cut(createdBy, " version 1.5.0-cdh5.")
	digits, _, _ := strings.Cut(rest, ".")
	minor, err := strconv.Atoi(digits)
	return ok && err == nil && minor >= 5
}
