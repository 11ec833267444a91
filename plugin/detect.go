package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seaice/seaice/fault"
)

const (
	// proposalsPerMessage and flushEvery bound what waits to be sent.
	proposalsPerMessage = 10
	flushEvery          = time.Second
)

// detection is one search for work. It ends with the stream it was asked on,
// as the admin does not take its answer on another one.
type detection struct {
	c       *Client
	id      string
	session *session
	ctx     context.Context // Findings has none of its own; it ends with the detection
	cancel  context.CancelCauseFunc
	req     DetectRequest
	began   bool // under Client.mu: holds a slot

	// Used by the handler's goroutines one at a time, by contract of lock.
	lock    chan struct{}
	pending []*plugin_pb.JobProposal
	flushed time.Time
	count   int
}

func (c *Client) detect(s *session, requestID string, r *plugin_pb.RunDetectionRequest) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	d := &detection{c: c, id: requestID, session: s, ctx: ctx, cancel: cancel, lock: make(chan struct{}, 1), flushed: c.o.Clock.Now()}
	if requestID == "" {
		cancel(nil)
		d.complete(DetectSummary{}, errors.New("the request has no id"))
		return
	}
	if !ours(r.GetJobType()) {
		cancel(nil)
		d.complete(DetectSummary{}, errors.New(notOurs(r.GetJobType())))
		return
	}
	d.req = DetectRequest{
		RequestID:  requestID,
		Settings:   Settings{Worker: readTexts(r.GetWorkerConfigValues()), Admin: readTexts(r.GetAdminConfigValues())},
		Cluster:    readCluster(r.GetClusterContext()),
		MaxResults: max(0, int(r.GetMaxResults())),
		TimeLimit:  timeLimit(time.Duration(r.GetAdminRuntime().GetDetectionTimeoutSeconds()) * time.Second),
	}
	if t := r.GetLastSuccessfulRun(); t.IsValid() {
		d.req.LastSuccess = t.AsTime()
	}
	c.mu.Lock()
	_, twice := c.detections[requestID]
	take := !twice && !c.draining
	if take {
		c.detections[requestID] = d
		c.work.Add(1)
		c.beatSoon()
	}
	c.mu.Unlock()
	switch {
	case twice:
		cancel(nil)
		c.acknowledge(s, requestID, "this detection is running")
	case !take:
		cancel(nil)
		d.complete(DetectSummary{}, errStopping)
	default:
		c.acknowledge(s, requestID, "detection accepted")
		go d.main()
	}
}

// adminsLimit is what the admin takes where no limit is set.
const adminsLimit = 45 * time.Second

// timeLimit leaves a margin below the admin's limit: what arrives later is
// dropped, with everything that was sent before.
func timeLimit(admin time.Duration) time.Duration {
	if admin <= 0 {
		admin = adminsLimit
	}
	margin := min(max(admin/10, 2*time.Second), 20*time.Second)
	return max(admin-margin, admin/2)
}

func (d *detection) main() {
	c := d.c
	defer c.work.Done()
	defer d.cancel(nil)
	go func() {
		if c.o.Clock.Sleep(d.ctx, d.req.TimeLimit) == nil {
			d.cancel(errTimeUp)
		}
	}()
	var sum DetectSummary
	err := d.slot()
	if err == nil {
		sum, err = d.guarded()
		<-c.slots
	}
	err = d.end(&sum, err)
	c.mu.Lock()
	delete(c.detections, d.id)
	c.beatSoon()
	c.lastDetect = Detection{At: c.o.Clock.Now(), Proposals: d.count, Err: err}
	c.mu.Unlock()
	d.complete(sum, err)
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn // nothing is maintained until what it names is mended
	}
	c.o.Log.Log(context.WithoutCancel(d.ctx), level, "detection ended", "request", d.id, "proposals", d.count, "more", sum.HasMore, "error", err)
}

// slot waits for a free slot.
func (d *detection) slot() error {
	select {
	case d.c.slots <- struct{}{}:
	case <-d.ctx.Done():
		return context.Cause(d.ctx)
	}
	d.c.mu.Lock()
	d.began = true
	d.c.beatSoon()
	d.c.mu.Unlock()
	return nil
}

func (d *detection) guarded() (sum DetectSummary, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.c.o.Log.Error("a detection panicked", "request", d.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.WithHint("the worker's log has the stack", fault.New(fault.Halt, fmt.Sprintf("detect: internal error: %v", p)))
		}
	}()
	return d.c.o.Handler.Detect(d.ctx, d.req, d)
}

// end sends what still waits and decides what the detection is called. Success
// keeps the proposals, failure makes the admin drop them, so one that ended
// early is a success as soon as it found something.
func (d *detection) end(sum *DetectSummary, err error) error {
	// The detection may be over; what it found goes out as long as the stream is.
	ctx := d.session.ctx
	if ferr := d.flush(ctx, sum.HasMore); ferr != nil {
		return ferr
	}
	cause := context.Cause(d.ctx)
	timeUp := errors.Is(cause, errTimeUp)
	switch {
	case err == nil && !timeUp:
		return nil
	case timeUp && (err == nil || fault.Of(err) == fault.Canceled):
		if err == nil {
			return nil
		}
		sum.HasMore = true
		return d.note(ctx, Activity{Stage: "time_limit", Message: fmt.Sprintf("stopped at the time limit of %s after %d proposals; the rest follows next time", d.req.TimeLimit, d.count)})
	case cause != nil && !timeUp:
		return cause
	case d.count > 0:
		sum.HasMore = true
		return d.note(ctx, Activity{Stage: "ended_early", Message: fmt.Sprintf("ended after %d proposals: %s", d.count, fault.Message(err)),
			Details: map[string]Value{"kind": Text(fault.Of(err).String())}})
	default:
		return err
	}
}

func (d *detection) complete(sum DetectSummary, err error) {
	done := &plugin_pb.DetectionComplete{
		RequestId: d.id, JobType: JobType, Success: err == nil, TotalProposals: int32(d.count),
		SkippedReason: clip(sum.SkippedReason),
	}
	if err != nil {
		done.ErrorMessage = clip(fault.Message(err))
	}
	if !sum.EligibleAfter.IsZero() {
		done.EligibleAfter = timestamppb.New(sum.EligibleAfter)
	}
	d.c.reply(d.session, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_DetectionComplete{DetectionComplete: done}})
}

// Propose implements Findings.
func (d *detection) Propose(p Proposal) error {
	d.lock <- struct{}{}
	defer func() { <-d.lock }()
	if err := d.ctx.Err(); err != nil {
		return context.Cause(d.ctx)
	}
	if d.req.MaxResults > 0 && d.count >= d.req.MaxResults {
		return ErrEnough
	}
	d.count++
	d.pending = append(d.pending, p.wire(fmt.Sprintf("seaice-%s-%d", d.id, d.count)))
	now := d.c.o.Clock.Now()
	if d.count > 1 && len(d.pending) < proposalsPerMessage && now.Sub(d.flushed) < flushEvery {
		return nil
	}
	return d.send(d.ctx, false)
}

// Note implements Findings. It works as long as the stream does: what was
// skipped is worth showing when the time is up, too.
func (d *detection) Note(a Activity) error { return d.note(d.session.ctx, a) }

// Observe implements Findings.
func (d *detection) Observe(o ...Observation) { d.c.observe(o) }

func (d *detection) note(ctx context.Context, a Activity) error {
	now := d.c.o.Clock.Now()
	return d.c.enqueue(ctx, d.session, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_JobProgressUpdate{JobProgressUpdate: &plugin_pb.JobProgressUpdate{
		RequestId: d.id, JobType: JobType, State: plugin_pb.JobState_JOB_STATE_RUNNING, Stage: clip(a.Stage), Message: clip(a.Message),
		Activities: []*plugin_pb.ActivityEvent{a.wire(plugin_pb.ActivitySource_ACTIVITY_SOURCE_DETECTOR, now)}, UpdatedAt: timestamppb.New(now),
	}}})
}

func (d *detection) flush(ctx context.Context, more bool) error {
	d.lock <- struct{}{}
	defer func() { <-d.lock }()
	if len(d.pending) == 0 && !more {
		return nil
	}
	return d.send(ctx, more)
}

// send hands the pending proposals to the stream; the lock is held.
func (d *detection) send(ctx context.Context, more bool) error {
	batch := d.pending
	if err := d.c.enqueue(ctx, d.session, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_DetectionProposals{
		DetectionProposals: &plugin_pb.DetectionProposals{RequestId: d.id, JobType: JobType, Proposals: batch, HasMore: more}}}); err != nil {
		return err
	}
	d.pending, d.flushed = nil, d.c.o.Clock.Now()
	return nil
}
