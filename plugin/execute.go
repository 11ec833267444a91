package plugin

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seaice/seaice/fault"
)

// atCapacity is a text the admin looks for: it puts the job back instead of
// failing it.
const atCapacity = "executor is at capacity"

// maxPendingNotes bounds the activities of a job that wait for a stream.
const maxPendingNotes = 500

// run is one attempt at a job. It outlives the stream it was asked on.
type run struct {
	c      *Client
	job    Job
	cancel context.CancelCauseFunc

	// Under Client.mu:
	progress Progress
	stale    bool // progress or notes wait to be sent
	lastSent time.Time
	notes    []*plugin_pb.ActivityEvent
	lost     int // notes that gave way
	inFlight []*plugin_pb.ActivityEvent
	answer   *plugin_pb.JobCompleted
	sentOn   *session
	sentAt   time.Time
}

// execute takes a job if there is a free slot. A worker that stops answers as
// if there were none, so that the admin looks for another one.
func (c *Client) execute(s *session, requestID string, r *plugin_pb.ExecuteJobRequest) {
	if r.GetJob() == nil || r.GetJob().GetJobId() == "" || requestID == "" {
		c.refuse(s, requestID, r.GetJob(), "the request has no job id or no request id")
		return
	}
	if !ours(r.GetJob().GetJobType()) {
		c.refuse(s, requestID, r.GetJob(), notOurs(r.GetJob().GetJobType()))
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.ctx))
	j := &run{c: c, job: readJob(requestID, r), cancel: cancel, progress: Progress{Stage: "starting"}}
	c.mu.Lock()
	known, twice := c.jobs[requestID]
	if twice {
		// Asked again, an answer that was sent did not arrive.
		known.sentOn = nil
	}
	free := !c.draining && c.busy() < c.o.ExecutionSlots
	if free && !twice {
		c.jobs[requestID] = j
		c.work.Add(1)
		c.beatSoon()
	}
	c.mu.Unlock()
	switch {
	case twice:
		cancel(nil)
		c.acknowledge(s, requestID, "this request is being executed")
	case !free:
		cancel(nil)
		c.refuse(s, requestID, r.GetJob(), atCapacity)
	default:
		c.acknowledge(s, requestID, "job accepted")
		go j.main(ctx)
	}
}

// busy counts jobs that hold a slot.
func (c *Client) busy() int {
	n := 0
	for _, r := range c.jobs {
		if r.answer == nil {
			n++
		}
	}
	return n
}

// refuse answers a job that never began.
func (c *Client) refuse(s *session, requestID string, j *plugin_pb.JobSpec, message string) {
	c.reply(s, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_JobCompleted{JobCompleted: &plugin_pb.JobCompleted{
		RequestId: requestID, JobId: j.GetJobId(), JobType: JobType, ErrorMessage: message,
		CompletedAt: timestamppb.New(c.o.Clock.Now()),
	}}})
}

func (r *run) main(ctx context.Context) {
	defer r.c.work.Done()
	defer r.cancel(nil)
	began := r.c.o.Clock.Now()
	res, err := r.guarded(ctx)
	if err != nil && ctx.Err() != nil && fault.Of(err) == fault.Canceled {
		// Who canceled says more than that something was canceled.
		err = fault.In("run job "+r.job.ID, context.Cause(ctx))
	}
	now := r.c.o.Clock.Now()
	r.c.o.Log.Info("job ended", "job", r.job.ID, "attempt", r.job.Attempt, "seconds", now.Sub(began).Seconds(), "summary", res.Summary, "error", err)
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.answer = completion(r.job, res, err, now)
	r.answer.Activities = append(r.takeNotes(now, maxPendingNotes+1), r.answer.Activities...)
	r.c.beatSoon()
}

// guarded turns a panic into the failure of this job.
func (r *run) guarded(ctx context.Context) (res JobResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.c.o.Log.Error("a job panicked", "job", r.job.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res, err = JobResult{}, fault.WithHint("the worker's log has the stack", fault.New(fault.Halt, fmt.Sprintf("run job %s: internal error: %v", r.job.ID, p)))
		}
	}()
	return r.c.o.Handler.Execute(ctx, r.job, r)
}

// Progress implements Reporter.
func (r *run) Progress(p Progress) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if math.IsNaN(p.Percent) {
		p.Percent = 0
	}
	p.Percent = max(r.progress.Percent, min(p.Percent, 99))
	if p.Stage == "" {
		p.Stage = r.progress.Stage
	}
	if p.Stage != r.progress.Stage {
		r.lastSent = time.Time{}
	}
	r.progress = p
	r.stale = true
	r.c.wakeSession()
}

// Note implements Reporter.
func (r *run) Note(a Activity) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.notes = append(r.notes, a.wire(plugin_pb.ActivitySource_ACTIVITY_SOURCE_EXECUTOR, r.c.o.Clock.Now()))
	if n := len(r.notes) - maxPendingNotes; n > 0 {
		r.notes = append(r.notes[:0:0], r.notes[n:]...)
		r.lost += n
	}
	r.stale = true
	r.c.wakeSession()
}

// Observe implements Reporter.
func (r *run) Observe(o ...Observation) { r.c.observe(o) }

// takeNotes empties the notes, most at a time, and says what was lost.
func (r *run) takeNotes(now time.Time, most int) []*plugin_pb.ActivityEvent {
	var out []*plugin_pb.ActivityEvent
	if r.lost > 0 {
		a := Activity{Stage: r.progress.Stage, Message: fmt.Sprintf("%d activities were lost while the admin could not be reached", r.lost)}
		out = append(out, a.wire(plugin_pb.ActivitySource_ACTIVITY_SOURCE_EXECUTOR, now))
		r.lost = 0
	}
	n := min(len(r.notes), most)
	out = append(out, r.notes[:n]...)
	r.notes = r.notes[n:]
	return out
}

func (r *run) listed() *plugin_pb.RunningWork {
	w := &plugin_pb.RunningWork{
		WorkId: r.job.ID, Kind: plugin_pb.WorkKind_WORK_KIND_EXECUTION, JobType: JobType,
		State: plugin_pb.JobState_JOB_STATE_RUNNING, ProgressPercent: r.progress.Percent, Stage: clip(r.progress.Stage),
	}
	if r.answer != nil {
		w.State = plugin_pb.JobState_JOB_STATE_FAILED
		if r.answer.GetSuccess() {
			w.State, w.ProgressPercent = plugin_pb.JobState_JOB_STATE_SUCCEEDED, 100
		}
	}
	return w
}

// nextOf is what a job has to say now, if anything. An answer is sent as often
// as it takes; progress and notes
// once the stream took them.
func (c *Client) nextOf(s *session, r *run) (*plugin_pb.WorkerToAdminMessage, func()) {
	if r.answer != nil {
		if r.sentOn != nil {
			return nil, nil
		}
		return &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_JobCompleted{JobCompleted: r.answer}}, func() {
			r.sentOn, r.sentAt = s, c.o.Clock.Now()
			s.beat = true
		}
	}
	now := c.o.Clock.Now()
	if !r.stale || !r.lastSent.IsZero() && now.Sub(r.lastSent) < progressEvery {
		return nil, nil
	}
	const perMessage = 50
	u := &plugin_pb.JobProgressUpdate{
		RequestId: r.job.RequestID, JobId: r.job.ID, JobType: JobType, State: plugin_pb.JobState_JOB_STATE_RUNNING,
		ProgressPercent: r.progress.Percent, Stage: clip(r.progress.Stage), Message: clip(r.progress.Message),
		Activities: r.takeNotes(now, perMessage), UpdatedAt: timestamppb.New(now),
	}
	r.stale = len(r.notes) > 0
	r.lastSent = now
	r.inFlight = u.GetActivities()
	return &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_JobProgressUpdate{JobProgressUpdate: u}}, func() { r.inFlight = nil }
}

// takeBack keeps what a broken stream did not take.
func (r *run) takeBack() {
	if r.answer != nil {
		r.answer.Activities = append(r.inFlight, r.answer.Activities...)
	} else {
		r.notes = append(r.inFlight, r.notes...)
		r.stale = true
	}
	r.inFlight = nil
	r.lastSent = time.Time{}
}
