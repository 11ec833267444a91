package trash

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// Outcome is what became of one file.
type Outcome string

const (
	// Moved: it is in the trash.
	Moved Outcome = "moved"
	// Purged: it is gone for good.
	Purged Outcome = "purged"
	// Restored: it is back at its origin.
	Restored Outcome = "restored"
	// Present: it was at its origin all the time.
	Present Outcome = "present"
	// Gone: it was not there any more.
	Gone Outcome = "gone"
	// Stale: another file is at its path than the one that was planned. It
	// stays.
	Stale Outcome = "stale"
	// Conflict: the place it should go to is taken by another file. Nothing was
	// overwritten.
	Conflict Outcome = "conflict"
	// Refused: it is not a file that may be removed. It stays.
	Refused Outcome = "refused"
	// Kept: it stays in the trash, because something still needs it or its
	// references could not be read.
	Kept Outcome = "kept"
	// Failed: the filer did not say, or could not do it. Nothing is lost; a
	// later run tries again.
	Failed Outcome = "failed"
)

// Result is one file's.
type Result struct {
	// Path is the file's origin.
	Path filer.Path `json:"path"`
	// Trash is its place in the trash, if known.
	Trash   filer.Path `json:"trash,omitempty"`
	Outcome Outcome    `json:"outcome"`
	Bytes   int64      `json:"bytes,omitempty"`
	// Detail explains the outcomes that are not the wished one.
	Detail string `json:"detail,omitempty"`
	// Err is the error behind Detail, if there is one.
	Err error `json:"-"`
}

func (r Result) because(err error) Result {
	r.Err, r.Detail = err, err.Error()
	return r
}

func (r Result) as(o Outcome, detail string) Result {
	r.Outcome, r.Detail = o, detail
	return r
}

// Report lists what became of every file, in order of path. No file is handled
// twice: what did not work is left to a later run (F138).
type Report struct {
	Results []Result `json:"results"`
	// Waiting counts the files whose purge time has not come.
	Waiting int `json:"waiting,omitempty"`
}

// Count is the number of files with the outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, x := range r.Results {
		if x.Outcome == o {
			n++
		}
	}
	return n
}

// Bytes is the size of all files with the outcome.
func (r *Report) Bytes(o Outcome) int64 {
	var n int64
	for _, x := range r.Results {
		if x.Outcome == o {
			n += x.Bytes
		}
	}
	return n
}

// Problems are the results that somebody may have to look at. After a commit
// they are warnings: they never undo it (F118).
func (r *Report) Problems() []Result {
	var out []Result
	for _, x := range r.Results {
		switch x.Outcome {
		case Moved, Purged, Restored, Present, Gone:
		default:
			out = append(out, x)
		}
	}
	return out
}

// Err joins the errors of the files that Failed, those that may go better the
// next time. At most ten are spelled out.
func (r *Report) Err() error {
	var errs []error
	n := 0
	for _, x := range r.Results {
		if x.Outcome != Failed {
			continue
		}
		if n++; n <= 10 {
			errs = append(errs, x.Err)
		}
	}
	if n > 10 {
		errs = append(errs, fault.New(fault.Transient, fmt.Sprintf("and %d more files", n-10)))
	}
	return errors.Join(errs...)
}

// collector gathers results from many goroutines.
type collector struct {
	mu sync.Mutex
	Report
}

func (c *collector) add(r Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Results = append(c.Results, r)
}

func (c *collector) report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.Results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Trash, b.Trash))
	})
	return c.Report
}
