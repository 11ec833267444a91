package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seaice/seaice/fault"
)

const (
	// roomPerSession bounds the replies that wait for the stream.
	roomPerSession = 256
	// progressEvery spaces the updates of one job: the admin keeps each as an
	// activity, and its page looks every 3 seconds.
	progressEvery = 2 * time.Second
	// confirmAfter is when an answer that was sent is taken as arrived. The
	// stream's keepalive finds a dead peer well before. The protocol has no
	// receipt; an answer that was sent on a stream that broke earlier is sent
	// again, and the admin ignores one it has.
	confirmAfter     = 2 * time.Minute
	keepaliveTime    = 60 * time.Second
	keepaliveTimeout = 20 * time.Second
	// flushWait bounds the wait for the admin to read everything at the end.
	flushWait = 5 * time.Second
	// maxReceive bounds one message of the admin: forms and parameters.
	maxReceive = 64 << 20
)

// session is one stream to the admin.
type session struct {
	ctx    context.Context // a stream is its context
	cancel context.CancelCauseFunc
	stream plugin_pb.PluginControlService_WorkerStreamClient
	wake   chan struct{}
	room   chan struct{} // one element for every message in queue

	// Under Client.mu:
	queue    []*plugin_pb.WorkerToAdminMessage
	beat     bool
	nextBeat time.Time
	greeted  bool
	half     bool // our side is closed
}

func (s *session) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// serve runs one stream until it ends. A nil error means that everything was
// handed over after drained was closed.
func (c *Client) serve(life context.Context, drained <-chan struct{}) error {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	conn, err := grpc.NewClient(c.target, c.dialOptions()...)
	if err != nil {
		return fault.Wrap(fault.Unsupported, "dial the admin "+c.target, err)
	}
	defer conn.Close()
	streamCtx := ctx
	if md := c.security.credentials(); len(md) > 0 {
		streamCtx = metadata.NewOutgoingContext(ctx, md)
	}
	stream, err := plugin_pb.NewPluginControlServiceClient(conn).WorkerStream(streamCtx)
	if err != nil {
		return c.explain(err)
	}
	s := &session{
		ctx: ctx, cancel: cancel, stream: stream,
		wake: make(chan struct{}, 1), room: make(chan struct{}, roomPerSession),
	}
	c.begin(s)
	var wg sync.WaitGroup
	wg.Go(func() { c.write(s, drained) })
	wg.Go(func() { c.tick(s) })
	err = c.read(s)
	cancel(err)
	wg.Wait()
	return c.finish(s, err)
}

func (c *Client) dialOptions() []grpc.DialOption {
	return append([]grpc.DialOption{
		c.security.transport,
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceive)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	}, c.o.extra...)
}

// begin makes s the stream everything goes to. The first message must be the
// hello.
func (c *Client) begin(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
	s.beat = true
	s.nextBeat = c.o.Clock.Now().Add(c.heartbeat)
	s.room <- struct{}{}
	s.queue = append(s.queue, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_Hello{Hello: c.hello()}})
	s.wakeUp()
}

// finish ends detections, which the admin binds to the stream they were asked
// on, and takes back answers that may not have arrived.
func (c *Client) finish(s *session, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == s {
		c.session = nil
	}
	for _, d := range c.detections {
		if d.session == s {
			d.cancel(errStreamLost)
		}
	}
	flushed := s.half && isEnd(err)
	for id, r := range c.jobs {
		r.takeBack()
		switch {
		case r.sentOn != s:
		case flushed:
			// The admin reads in order and saw our end: it has the answer.
			delete(c.jobs, id)
		default:
			r.sentOn = nil
		}
	}
	if flushed {
		return nil
	}
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return c.explain(err)
}

// explain gives the end of a stream a kind and, where a person can help, a hint.
func (c *Client) explain(err error) error {
	doing := "talk to the admin " + c.target
	switch code := status.Code(err); {
	case isEnd(err):
		return fault.New(fault.Transient, doing+": it ended the stream")
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return fault.WithHint("compare [jwt.filer_signing] and [grpc.worker] of this worker's security.toml with the admin's",
			fault.Wrap(fault.Unsupported, doing, err))
	case fault.Of(err) == fault.Unknown:
		return fault.Wrap(fault.Transient, doing, err)
	default:
		return fault.In(doing, err)
	}
}

// read handles what the admin says until the stream ends.
func (c *Client) read(s *session) error {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return err
		}
		if err := c.handle(s, m); err != nil {
			return err
		}
	}
}

// write sends everything there is to send, one message at a time; a message
// counts as sent only after Send took it.
func (c *Client) write(s *session, drained <-chan struct{}) {
	for {
		// Asked before there is nothing to send: the last answer is there by then.
		last := isClosed(drained)
		m, sent := c.next(s)
		if m == nil {
			if last {
				c.halfClose(s)
				return
			}
			select {
			case <-s.wake:
			case <-drained:
			case <-s.ctx.Done():
				return
			}
			continue
		}
		m.WorkerId = c.o.ID
		m.SentAt = timestamppb.New(c.o.Clock.Now())
		if err := s.stream.Send(m); err != nil {
			// An end of the stream is io.EOF here and has its reason in Recv.
			if !isEnd(err) {
				s.cancel(fmt.Errorf("send to the admin: %w", err))
			}
			return
		}
		c.mu.Lock()
		sent()
		c.mu.Unlock()
	}
}

// halfClose tells the admin that nothing more comes. Its end of the stream, in
// answer, proves that it has read everything.
func (c *Client) halfClose(s *session) {
	c.mu.Lock()
	s.half = true
	c.mu.Unlock()
	if err := s.stream.CloseSend(); err != nil {
		s.cancel(err)
		return
	}
	if c.o.Clock.Sleep(s.ctx, flushWait) == nil {
		s.cancel(fault.New(fault.Transient, "wait for the admin to end the stream"))
	}
}

// tick makes the writer look again for progress that was held back and for the
// next heartbeat, and forgets answers that have arrived.
func (c *Client) tick(s *session) {
	for c.o.Clock.Sleep(s.ctx, progressEvery) == nil {
		c.mu.Lock()
		now := c.o.Clock.Now()
		if !now.Before(s.nextBeat) {
			s.beat = true
		}
		for id, r := range c.jobs {
			if r.sentOn == s && now.Sub(r.sentAt) >= confirmAfter {
				delete(c.jobs, id)
			}
		}
		c.mu.Unlock()
		s.wakeUp()
	}
}

// next picks the message to send now. The second result records, under mu, that
// it was sent.
func (c *Client) next(s *session) (*plugin_pb.WorkerToAdminMessage, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.queue) > 0 {
		return s.queue[0], func() {
			s.queue = s.queue[1:]
			<-s.room
		}
	}
	if s.beat {
		s.beat = false
		s.nextBeat = c.o.Clock.Now().Add(c.heartbeat)
		return &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_Heartbeat{Heartbeat: c.beat()}}, func() {}
	}
	for _, r := range c.jobs {
		if m, sent := c.nextOf(s, r); m != nil {
			return m, sent
		}
	}
	if n := min(len(c.observations), 200); n > 0 {
		batch := c.observations[:n:n]
		c.observations = c.observations[n:]
		return &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_Observations{
			Observations: &plugin_pb.WorkerObservations{JobType: JobType, Observations: batch}}}, func() {}
	}
	return nil, nil
}

// enqueue adds a message for this stream only. It waits while too many wait.
func (c *Client) enqueue(ctx context.Context, s *session, m *plugin_pb.WorkerToAdminMessage) error {
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return errStreamLost
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	s.queue = append(s.queue, m)
	c.mu.Unlock()
	s.wakeUp()
	return nil
}

// reply enqueues an answer to the admin; if the stream ends meanwhile nobody
// waits for it any more.
func (c *Client) reply(s *session, m *plugin_pb.WorkerToAdminMessage) { _ = c.enqueue(s.ctx, s, m) }

func (c *Client) acknowledge(s *session, requestID, message string) {
	c.reply(s, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_Acknowledge{
		Acknowledge: &plugin_pb.WorkerAcknowledge{RequestId: requestID, Accepted: true, Message: clip(message)}}})
}

func (c *Client) reject(s *session, requestID, message string) {
	c.reply(s, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_Acknowledge{
		Acknowledge: &plugin_pb.WorkerAcknowledge{RequestId: requestID, Message: clip(message)}}})
}

func (c *Client) hello() *plugin_pb.WorkerHello {
	return &plugin_pb.WorkerHello{
		WorkerId:         c.o.ID,
		WorkerInstanceId: c.instance,
		Address:          c.o.Address,
		WorkerVersion:    c.o.Version,
		ProtocolVersion:  "plugin.v1",
		Capabilities: []*plugin_pb.JobTypeCapability{{
			JobType:                 JobType,
			CanDetect:               true,
			CanExecute:              true,
			MaxDetectionConcurrency: int32(c.o.DetectionSlots),
			MaxExecutionConcurrency: int32(c.o.ExecutionSlots),
			DisplayName:             c.o.Descriptor.Title,
			Description:             c.o.Descriptor.About,
			// Above the built-in worker's 50: of two names the heavier shows.
			Weight: 60,
		}},
		Metadata: map[string]string{"runtime": "seaice", "job_types": JobType},
	}
}

// beat lists all work, finished jobs whose answer still waits among it: what
// the list leaves out twice the admin takes for lost.
func (c *Client) beat() *plugin_pb.WorkerHeartbeat {
	b := &plugin_pb.WorkerHeartbeat{
		WorkerId:            c.o.ID,
		DetectionSlotsTotal: int32(c.o.DetectionSlots),
		ExecutionSlotsTotal: int32(c.o.ExecutionSlots),
		Metadata:            map[string]string{"runtime": "seaice"},
	}
	for _, r := range c.jobs {
		if r.sentOn != nil {
			continue
		}
		if r.answer == nil {
			b.ExecutionSlotsUsed++
		}
		b.RunningWork = append(b.RunningWork, r.listed())
	}
	for id, d := range c.detections {
		state := plugin_pb.JobState_JOB_STATE_ASSIGNED
		if d.began {
			b.DetectionSlotsUsed++
			state = plugin_pb.JobState_JOB_STATE_RUNNING
		}
		b.RunningWork = append(b.RunningWork, &plugin_pb.RunningWork{
			WorkId: id, Kind: plugin_pb.WorkKind_WORK_KIND_DETECTION, JobType: JobType, State: state, Stage: "detecting"})
	}
	return b
}

// handle does what one message asks for. An error ends the stream.
func (c *Client) handle(s *session, m *plugin_pb.AdminToWorkerMessage) error {
	id := m.GetRequestId()
	switch body := m.GetBody().(type) {
	case *plugin_pb.AdminToWorkerMessage_Hello:
		return c.greet(s, body.Hello)
	case *plugin_pb.AdminToWorkerMessage_RequestConfigSchema:
		c.describe(s, id, body.RequestConfigSchema)
	case *plugin_pb.AdminToWorkerMessage_RunDetectionRequest:
		c.detect(s, id, body.RunDetectionRequest)
	case *plugin_pb.AdminToWorkerMessage_ExecuteJobRequest:
		c.execute(s, id, body.ExecuteJobRequest)
	case *plugin_pb.AdminToWorkerMessage_CancelRequest:
		c.cancelWork(s, id, body.CancelRequest)
	case *plugin_pb.AdminToWorkerMessage_Shutdown:
		// The admin goes, and will be back: jobs run on.
		c.o.Log.Info("the admin is shutting down", "reason", body.Shutdown.GetReason())
		c.acknowledge(s, id, "running jobs go on and are reported after a reconnect")
	case *plugin_pb.AdminToWorkerMessage_RequestObjectPreview:
		c.reply(s, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_ObjectPreviewResponse{
			ObjectPreviewResponse: &plugin_pb.ObjectPreviewResponse{RequestId: id, ErrorMessage: "this worker serves no previews"}}})
	default:
		c.reject(s, id, "this worker does not know the request")
	}
	return nil
}

func (c *Client) greet(s *session, h *plugin_pb.AdminHello) error {
	if !h.GetAccepted() {
		return fault.New(fault.Unsupported, fmt.Sprintf("the admin refused worker %s: %s", c.o.ID, clip(h.GetMessage())))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.greeted = true
	// The admin takes a worker for lost after 2 minutes without a sign.
	if n := time.Duration(h.GetHeartbeatIntervalSeconds()) * time.Second; c.o.Heartbeat <= 0 && n >= time.Second && n <= time.Minute {
		c.heartbeat = n
	}
	if n := time.Duration(h.GetReconnectDelaySeconds()) * time.Second; c.o.Reconnect <= 0 && n >= time.Second && n <= time.Minute {
		c.reconnect = n
	}
	c.o.Log.Info("connected to the admin", "admin", c.target, "worker", c.o.ID, "jobs", len(c.jobs))
	return nil
}

func (c *Client) describe(s *session, id string, r *plugin_pb.RequestConfigSchema) {
	out := &plugin_pb.ConfigSchemaResponse{RequestId: id, JobType: r.GetJobType()}
	if !ours(r.GetJobType()) {
		out.ErrorMessage = notOurs(r.GetJobType())
	} else {
		out.JobType, out.Success, out.JobTypeDescriptor = JobType, true, c.o.Descriptor.wire()
	}
	c.reply(s, &plugin_pb.WorkerToAdminMessage{Body: &plugin_pb.WorkerToAdminMessage_ConfigSchemaResponse{ConfigSchemaResponse: out}})
}

// ours accepts the job type and an empty one, as this worker has no other.
func ours(jobType string) bool {
	t := strings.TrimSpace(jobType)
	return t == "" || strings.EqualFold(t, JobType)
}

func notOurs(jobType string) string {
	return fmt.Sprintf("this worker serves the job type %s, not %q", JobType, clip(jobType))
}

// cancelWork ends detections and jobs by the id of their request, and jobs by
// their own.
func (c *Client) cancelWork(s *session, id string, r *plugin_pb.CancelRequest) {
	target := strings.TrimSpace(r.GetTargetId())
	cause := fault.New(fault.Canceled, "canceled by the admin: "+clip(r.GetReason()))
	found := 0
	c.mu.Lock()
	if d := c.detections[target]; d != nil {
		d.cancel(cause)
		found++
	}
	for requestID, j := range c.jobs {
		if target != "" && (requestID == target || j.job.ID == target) {
			j.cancel(cause)
			found++
		}
	}
	c.mu.Unlock()
	if found == 0 {
		c.reject(s, id, fmt.Sprintf("nothing here has the id %q", clip(target)))
		return
	}
	c.acknowledge(s, id, "canceling")
}
