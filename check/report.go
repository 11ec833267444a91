package check

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seaice/seaice/iceberg"
)

// Severity says how bad a finding is.
type Severity string

const (
	// Error: readers get wrong results or none, or a commit would build on
	// something false.
	Error Severity = "error"
	// Warning: some readers or later operations may go wrong, or what is said
	// for people is not so.
	Warning Severity = "warning"
	// Note: unusual and harmless, or not looked at.
	Note Severity = "note"
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is one thing that is not as it should be.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Subject is what it is about: a path as the metadata spells it, "snapshot
	// 17", "record" or "metadata".
	Subject string `json:"subject"`
	Text    string `json:"text"`
	// Hint says what to look at or to run. It may be empty.
	Hint string `json:"hint,omitempty"`
}

// Stats count what was looked at.
type Stats struct {
	Snapshots int64 `json:"snapshots"`
	Manifests int64 `json:"manifests"`
	// Files are distinct live data and delete files, Rows and Bytes theirs.
	Files int64 `json:"files"`
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
	// Opened are the data and delete files that were looked into.
	Opened int64 `json:"opened"`
}

// Report is the result of a check.
type Report struct {
	Table            iceberg.TableID `json:"table"`
	MetadataLocation string          `json:"metadata-location"`
	// Findings are in the order of severity, code, subject and text.
	Findings []Finding `json:"findings"`
	// Errors, Warnings and Notes count all findings, also those left out of
	// Findings because there were too many.
	Errors   int64 `json:"errors"`
	Warnings int64 `json:"warnings"`
	Notes    int64 `json:"notes"`
	Omitted  int64 `json:"omitted"`
	Stats    Stats `json:"stats"`
}

// Clean reports whether there are no errors.
func (r *Report) Clean() bool { return r.Errors == 0 }

// collector gathers findings. It is safe for concurrent use.
type collector struct {
	mu      sync.Mutex
	max     int
	byCode  map[Code]int
	grouped map[Code]*group
	report  *Report
}

// group is a finding that is made once, however often it holds.
type group struct {
	first Finding
	n     int64
}

func newCollector(maxFindings int, r *Report) *collector {
	return &collector{max: maxFindings, byCode: map[Code]int{}, grouped: map[Code]*group{}, report: r}
}

func (c *collector) add(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(f)
}

func (c *collector) addLocked(f Finding) {
	switch f.Severity {
	case Error:
		c.report.Errors++
	case Warning:
		c.report.Warnings++
	case Note:
		c.report.Notes++
	}
	// One fault that is everywhere must not hide the others.
	if len(c.report.Findings) >= c.max || c.byCode[f.Code] >= max(1, c.max/8) {
		c.report.Omitted++
		return
	}
	c.byCode[f.Code]++
	c.report.Findings = append(c.report.Findings, f)
}

// addGroup makes one finding of all with its code.
func (c *collector) addGroup(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.grouped[f.Code]
	if g == nil {
		g = &group{first: f}
		c.grouped[f.Code] = g
	}
	g.n++
}

func (c *collector) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.grouped {
		if g.n > 1 {
			g.first.Text += more(g.n - 1)
		}
		c.addLocked(g.first)
	}
	clear(c.grouped)
	slices.SortFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Text, b.Text))
	})
}
