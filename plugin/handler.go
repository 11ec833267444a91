// Package plugin is the face towards SeaweedFS's admin: it speaks plugin.proto
// over one stream that the worker opens, and hands detection and execution to
// a Handler in plain Go types. It is the only package that knows plugin_pb.
//
// It promises that a running job survives a broken stream and a restarted
// admin; that every job that was accepted is answered, and answered again
// after a reconnect if the answer may not have arrived; that what detection
// found in time is kept; and that a panic of a handler ends one job and not
// the worker. It never decides what work there is.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

// JobType is the only name that has the admin's Iceberg lane; any other would
// run in the default lane under the cluster's lock.
const JobType = "iceberg_maintenance"

// Handler does what the admin asks for. Its methods are called concurrently.
type Handler interface {
	// Detect looks for work and hands each proposal to out as it is found, the
	// most useful first. ctx ends before the admin's own time limit, when the
	// stream breaks or when the admin cancels. Proposals handed over before are
	// kept if the time was up or Detect fails.
	Detect(ctx context.Context, req DetectRequest, out Findings) (DetectSummary, error)
	// Execute runs one job. ctx ends when the admin cancels it or the worker
	// stops, not when the stream breaks.
	Execute(ctx context.Context, job Job, out Reporter) (JobResult, error)
}

// ErrEnough is what Findings.Propose answers when the admin takes no more
// proposals in this detection. Detect stops then and sets HasMore.
var ErrEnough = errors.New("the admin takes no more proposals now")

// Findings receives what one detection finds. Its methods block while the
// stream is busy.
type Findings interface {
	// Propose hands over one proposal. It fails once ctx has ended.
	Propose(p Proposal) error
	// Note shows an activity in the admin: settings that were refused, tables
	// that were skipped and why. It fails once the stream is broken.
	Note(a Activity) error
	Observer
}

// Reporter shows how a job goes. Its methods never block and never fail; while
// the stream is down they remember the latest progress and a bounded number of
// activities.
type Reporter interface {
	// Progress replaces the job's progress.
	Progress(p Progress)
	// Note adds an activity. All numbers of a job go into activities: the admin
	// ignores metrics, and drops the results of a failed job.
	Note(a Activity)
	Observer
}

// Observer is told what a table looks like.
type Observer interface {
	// Observe remembers facts about tables for the admin's pages. They may be
	// lost; nothing is decided by them.
	Observe(o ...Observation)
}

// Settings are the values of the admin's forms, as text.
type Settings struct {
	// Worker holds the fields of config.WorkerForm, Admin those of
	// config.AdminForm.
	Worker map[string]string
	Admin  map[string]string
}

// Cluster is where the cluster's servers are.
type Cluster struct {
	// Filers are host:port.grpcPort, as the filer client reads them.
	Filers []string
	// Masters are gRPC addresses.
	Masters []string
}

// DetectRequest asks for proposals.
type DetectRequest struct {
	RequestID string
	Settings  Settings
	Cluster   Cluster
	// MaxResults is how many proposals the admin takes; 0 is no limit.
	MaxResults int
	// TimeLimit is when ctx ends, a little before the admin's own limit.
	TimeLimit time.Duration
	// LastSuccess is when a job last succeeded; zero if never.
	LastSuccess time.Time
}

// DetectSummary ends a detection.
type DetectSummary struct {
	// HasMore: there is more work than was proposed.
	HasMore bool
	// SkippedReason says why the detection did not look at all.
	SkippedReason string
	// EligibleAfter, with SkippedReason, is when it will.
	EligibleAfter time.Time
}

// Priority is how the admin labels a proposal. It runs them in the order they
// were sent in.
type Priority uint8

// The priorities.
const (
	PriorityNormal Priority = iota
	PriorityLow
	PriorityHigh
	PriorityCritical
)

// Proposal is work on one table. The built-in worker could execute it too: its
// parameters have the names that worker reads.
type Proposal struct {
	Table iceberg.TableID
	// Summary is one line with the files and bytes; Detail says more.
	Summary  string
	Detail   string
	Priority Priority
	// Filer is the gRPC address the built-in worker would use. Ours takes the
	// cluster's filers at execution.
	Filer string
	// EstimatedRuntime lengthens the admin's time limit for the job.
	EstimatedRuntime time.Duration
	// ResourceGroup is shown with the job.
	ResourceGroup string
	// Parameters come back with the job; they may not use the names above.
	Parameters map[string]Value
}

// Job is one attempt at a proposal.
type Job struct {
	// ID is the job's; RequestID that of this attempt.
	ID        string
	RequestID string
	// Attempt counts from 1.
	Attempt    int
	Summary    string
	Parameters map[string]Value
	Settings   Settings
	Cluster    Cluster
	// CreatedAt is when the admin made the job.
	CreatedAt time.Time
}

// Table is the table the job is about. The parameters come from whoever may
// talk to the admin, so names that could leave their directory are refused.
func (j Job) Table() (iceberg.TableID, error) {
	id := iceberg.TableID{
		Bucket:    j.Parameters[paramBucket].String(),
		Namespace: j.Parameters[paramNamespace].String(),
		Name:      j.Parameters[paramTable].String(),
	}
	for _, p := range [...]struct{ name, text string }{{paramBucket, id.Bucket}, {paramNamespace, id.Namespace}, {paramTable, id.Name}} {
		if p.text == "" || p.text == "." || strings.Contains(p.text, "..") || strings.ContainsAny(p.text, "/\\\x00") {
			return iceberg.TableID{}, fault.New(fault.Unsupported, fmt.Sprintf("job parameter %s=%q names no table", p.name, p.text))
		}
	}
	return id, nil
}

// JobResult is what a job did. Of a failed job, too: the numbers are shown as
// an activity then.
type JobResult struct {
	// Summary is the one line the jobs table shows, with the numbers:
	// "compact: 412 -> 6 files, 98.1 MB -> 97.4 MB, 13 deletes removed".
	Summary string
	// Outputs are shown in the job's details.
	Outputs map[string]Value
}

// Progress is where a job is. Percent never goes back, and stays below 100
// until the job is answered.
type Progress struct {
	Percent float64
	Stage   string
	Message string
}

// Activity is a line in the admin's list of activities.
type Activity struct {
	Stage   string
	Message string
	Details map[string]Value
}

// Observation is what a table looked like.
type Observation struct {
	Table iceberg.TableID
	// Attributes are shown as they are; "rows" is the row count in the list of
	// tables.
	Attributes map[string]Value
}
