package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seaice/seaice/fault"
)

// Check looks at every place the footer names in a file whose footer begins at
// end. A place outside is fault.Corrupt. Chunks in other files and encrypted ones
// are fault.Unsupported.
func (f *Footer) Check(end int64) error {
	if f.Encrypted {
		return fault.New(fault.Unsupported, "the parquet file is encrypted")
	}
	for i := range f.RowGroups {
		for c := range f.RowGroups[i].Columns {
			if err := f.RowGroups[i].Columns[c].check(end); err != nil {
				return fault.In(fmt.Sprintf("column %s of row group %d", f.Schema.Leaves[c], i), err)
			}
		}
	}
	return nil
}

func (c *Chunk) check(end int64) error {
	if c.Encrypted {
		return fault.New(fault.Unsupported, "it is encrypted")
	}
	if c.FilePath != "" {
		return fault.New(fault.Unsupported, fmt.Sprintf("it lies in another file, %q", c.FilePath))
	}
	if c.Values == 0 {
		return nil // nothing is read
	}
	if from := c.Begin(); from < 4 || from > end || c.CompressedSize > end-from {
		return fault.New(fault.Corrupt, fmt.Sprintf("it lies at %d+%d in a file whose footer is at %d", from, c.CompressedSize, end))
	}
	return nil
}

// Begin is where the first page of the chunk lies. Writers leave the offset of
// the dictionary out, or 0, or name it as that of the data.
func (c *Chunk) Begin() int64 {
	if c.Dictionary != nil && *c.Dictionary >= 4 && *c.Dictionary < c.DataPage {
		return *c.Dictionary
	}
	return c.DataPage
}

// Writer is what created_by says about the program that wrote a file.
type Writer struct {
	// App is the name in lower case, such as "parquet-mr", empty when not known.
	App                 string
	Major, Minor, Patch int
	// Versioned reports that there is a version.
	Versioned bool
}

// ParseWriter reads a created_by of the form "app version 1.2.3 (build x)".
// What it cannot read is left out.
func ParseWriter(createdBy string) Writer {
	app, rest, found := strings.Cut(createdBy, " version ")
	w := Writer{App: strings.ToLower(strings.TrimSpace(app))}
	if !found {
		return w
	}
	version, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	parts := strings.SplitN(version, ".", 3)
	for i, to := range []*int{&w.Major, &w.Minor, &w.Patch} {
		if i >= len(parts) {
			break
		}
		digits := parts[i]
		if at := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); at >= 0 {
			digits = digits[:at]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return w
		}
		*to, w.Versioned = n, true
	}
	return w
}

// Before reports that w has a version and that it is less than the one given.
func (w Writer) Before(major, minor, patch int) bool {
	if !w.Versioned {
		return false
	}
	if w.Major != major {
		return w.Major < major
	}
	if w.Minor != minor {
		return w.Minor < minor
	}
	return w.Patch < patch
}
