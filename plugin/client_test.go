package plugin

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

var orders = iceberg.TableID{Bucket: "lake", Namespace: "sales", Name: "orders"}

// gate is an Execute that reports it began and ends when told.
type gate struct {
	began   chan Job
	proceed chan struct{}
}

func newGate() *gate { return &gate{began: make(chan Job, 16), proceed: make(chan struct{})} }

func (g *gate) execute(ctx context.Context, j Job, r Reporter) (JobResult, error) {
	r.Progress(Progress{Percent: 10, Stage: "compact", Message: "reading"})
	g.began <- j
	select {
	case <-g.proceed:
		return JobResult{Summary: "compact: 4 -> 1 files", Outputs: map[string]Value{"files": Int(4)}}, nil
	case <-ctx.Done():
		return JobResult{}, ctx.Err()
	}
}

func TestHelloAndHeartbeat(t *testing.T) {
	w := newWorld(t, &fakeHandler{}, func(o *Options) { o.ExecutionSlots, o.DetectionSlots = 3, 2 })
	p := w.accept(t)
	require.Equal(t, "w1", p.hello.GetWorkerId())
	require.Equal(t, "plugin.v1", p.hello.GetProtocolVersion())
	require.Equal(t, "1.2.3", p.hello.GetWorkerVersion())
	require.Equal(t, "host1", p.hello.GetAddress())
	require.Len(t, p.hello.GetCapabilities(), 1)
	capability := p.hello.GetCapabilities()[0]
	require.Equal(t, "iceberg_maintenance", capability.GetJobType())
	require.True(t, capability.GetCanDetect() && capability.GetCanExecute())
	require.Equal(t, int32(3), capability.GetMaxExecutionConcurrency())
	first := p.beat(func(*plugin_pb.WorkerHeartbeat) bool { return true })
	require.Equal(t, int32(3), first.GetExecutionSlotsTotal())
	require.Empty(t, first.GetRunningWork())
	// The admin asks for 30 s; the first beat may have been before it did.
	for range 16 {
		w.clock.fire(progressEvery)
	}
	p.beat(func(*plugin_pb.WorkerHeartbeat) bool { return true })
	for !w.client.Status().Connected {
		runtime.Gosched()
	}
	for _, m := range w.close(p) {
		require.NotNil(t, m.GetHeartbeat(), "an idle worker says nothing else")
	}
	require.False(t, w.client.Status().Connected)
}

func TestSchema(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := w.accept(t)
	ask := func(jobType string) *plugin_pb.ConfigSchemaResponse {
		p.send("s-"+jobType, &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_RequestConfigSchema{RequestConfigSchema: &plugin_pb.RequestConfigSchema{JobType: jobType}}})
		m, _ := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetConfigSchemaResponse() != nil })
		require.Equal(t, "s-"+jobType, m.GetConfigSchemaResponse().GetRequestId())
		return m.GetConfigSchemaResponse()
	}
	no := ask("vacuum")
	require.False(t, no.GetSuccess())
	require.Contains(t, no.GetErrorMessage(), "iceberg_maintenance")

	d := ask("iceberg_maintenance").GetJobTypeDescriptor()
	require.GreaterOrEqual(t, d.GetDescriptorVersion(), uint32(10))
	require.Equal(t, "iceberg_maintenance", d.GetJobType())
	require.False(t, d.GetAdminRuntimeDefaults().GetEnabled())
	fields := map[string]*plugin_pb.ConfigField{}
	for _, form := range []*plugin_pb.ConfigForm{d.GetWorkerConfigForm(), d.GetAdminConfigForm()} {
		for _, s := range form.GetSections() {
			for _, f := range s.GetFields() {
				require.Contains(t, form.GetDefaultValues(), f.GetName(), "the admin fills fields without a value from here")
				fields[f.GetName()] = f
			}
		}
	}
	strategy := fields["rewrite_strategy"]
	require.Equal(t, plugin_pb.ConfigWidget_CONFIG_WIDGET_SELECT, strategy.GetWidget())
	require.Len(t, strategy.GetOptions(), 4)
	require.Empty(t, strategy.GetVisibleWhenField())
	require.Equal(t, plugin_pb.ConfigWidget_CONFIG_WIDGET_TEXTAREA, fields["rules"].GetWidget())
	require.Equal(t, plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_INT64, fields["target_file_size_mb"].GetFieldType())
	require.Equal(t, plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_DOUBLE, fields["delete_ratio_threshold"].GetFieldType())
	require.Equal(t, "advanced", fields["max_rewrite_mb"].GetVisibleWhenField())
	require.True(t, fields["max_rewrite_mb"].GetVisibleWhenEquals().GetBoolValue())
	require.Equal(t, plugin_pb.ConfigFieldType_CONFIG_FIELD_TYPE_BOOL, fields["advanced"].GetFieldType())
	require.Contains(t, fields, "bucket_filter")

	// What the form begins with must come back as valid settings.
	_, err := config.ReadForm(readTexts(d.GetWorkerDefaultValues()))
	require.NoError(t, err)
	_, err = config.ResolveScope(readTexts(d.GetAdminConfigForm().GetDefaultValues()), nil)
	require.NoError(t, err)
	w.close(p)
}

func TestExecute(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: func(ctx context.Context, j Job, r Reporter) (JobResult, error) {
		r.Note(Activity{Stage: "compact", Message: "4 files", Details: map[string]Value{"files": Int(4), "path": Text("a\xffb")}})
		r.Observe(Observation{Table: iceberg.TableID{Bucket: "lake", Namespace: "a.b", Name: "t"}, Attributes: map[string]Value{"rows": Int(7)}})
		return g.execute(ctx, j, r)
	}})
	p := w.accept(t)
	p.execute("r1", "j1")
	require.True(t, p.ack("r1").GetAccepted())
	j := <-g.began
	require.Equal(t, "j1", j.ID)
	require.Equal(t, 2, j.Attempt)
	require.Equal(t, map[string]string{"target_file_size_mb": "512", "dry_run": "true", "delete_ratio_threshold": "0.25"}, j.Settings.Worker)
	require.Equal(t, []string{"127.0.0.1:8888.18888"}, j.Cluster.Filers)
	id, err := j.Table()
	require.NoError(t, err)
	require.Equal(t, orders, id)
	_, err = config.ReadForm(j.Settings.Worker)
	require.NoError(t, err)

	seen := map[string]bool{}
	for !seen["progress"] || !seen["note"] || !seen["observation"] {
		m := <-p.in
		if u := m.GetJobProgressUpdate(); u != nil {
			require.Equal(t, "r1", u.GetRequestId())
			require.Equal(t, "j1", u.GetJobId())
			seen["progress"] = seen["progress"] || u.GetStage() == "compact" && u.GetProgressPercent() == 10
			for _, a := range u.GetActivities() {
				require.Equal(t, int64(4), a.GetDetails()["files"].GetInt64Value())
				require.Equal(t, "a\uFFFDb", a.GetDetails()["path"].GetStringValue())
				seen["note"] = true
			}
		}
		for _, o := range m.GetObservations().GetObservations() {
			require.Equal(t, []string{"lake", "a", "b", "t"}, o.GetObjectId())
			require.Equal(t, "ICEBERG", o.GetFormat())
			seen["observation"] = true
		}
		if m.GetHeartbeat() == nil && m.GetJobProgressUpdate() == nil && m.GetObservations() == nil {
			require.Fail(t, "unexpected message", "%v", m)
		}
		// Held back by the spacing of updates, it comes with the next tick.
		if len(p.in) == 0 && (!seen["progress"] || !seen["note"]) {
			w.clock.fire(progressEvery)
		}
	}
	close(g.proceed)
	done := p.completed()
	require.True(t, done.GetSuccess())
	require.Equal(t, "compact: 4 -> 1 files", done.GetResult().GetSummary())
	require.Equal(t, int64(4), done.GetResult().GetOutputValues()["files"].GetInt64Value())
	p.beat(func(b *plugin_pb.WorkerHeartbeat) bool {
		return len(b.GetRunningWork()) == 0 && b.GetExecutionSlotsUsed() == 0
	})
	w.close(p)
}

// The admin drops the results of a failed job, and shows one message.
func TestFailedJobKeepsItsNumbers(t *testing.T) {
	w := newWorld(t, &fakeHandler{execute: func(context.Context, Job, Reporter) (JobResult, error) {
		return JobResult{Summary: "compact: 4 -> 1 files", Outputs: map[string]Value{"files": Int(4)}},
			fault.WithHint("run seaice check", fault.New(fault.Corrupt, "read manifest m.avro"))
	}})
	p := w.accept(t)
	p.execute("r1", "j1")
	done := p.completed()
	require.False(t, done.GetSuccess())
	require.Equal(t, "read manifest m.avro; hint: run seaice check (done before: compact: 4 -> 1 files)", done.GetErrorMessage())
	last := done.GetActivities()[len(done.GetActivities())-1]
	require.Equal(t, int64(4), last.GetDetails()["files"].GetInt64Value())
	require.Equal(t, "corrupt", last.GetDetails()["kind"].GetStringValue())
	w.close(p)
}

func TestPanicFailsOneJobAsHalt(t *testing.T) {
	w := newWorld(t, &fakeHandler{
		execute: func(context.Context, Job, Reporter) (JobResult, error) { panic("index out of range") },
		detect:  func(context.Context, DetectRequest, Findings) (DetectSummary, error) { panic("nil map") },
	})
	p := w.accept(t)
	for _, id := range []string{"r1", "r2"} {
		p.execute(id, "j-"+id)
		done := p.completed()
		require.Contains(t, done.GetErrorMessage(), "internal error: index out of range")
		require.Equal(t, "halt", done.GetActivities()[0].GetDetails()["kind"].GetStringValue())
	}
	p.send("d1", detectRequest(0, 0))
	done, _ := detected(p)
	require.False(t, done.GetSuccess())
	require.Contains(t, done.GetErrorMessage(), "internal error: nil map")
	w.close(p)
}

func TestAtCapacity(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute}, func(o *Options) { o.ExecutionSlots = 1 })
	p := w.accept(t)
	p.execute("r1", "j1")
	require.Equal(t, "job accepted", p.ack("r1").GetMessage())
	<-g.began
	p.execute("r2", "j2")
	done := p.completed()
	require.Equal(t, "r2", done.GetRequestId())
	require.Equal(t, "executor is at capacity", done.GetErrorMessage(), "the admin looks for this very text")
	p.execute("r1", "j1")
	require.Equal(t, "this request is being executed", p.ack("r1").GetMessage())
	close(g.proceed)
	require.Equal(t, "r1", p.completed().GetRequestId())
	p.execute("r3", "j3")
	require.True(t, p.completed().GetSuccess(), "the slot is free again")
	require.Len(t, g.began, 1)
	w.close(p)
}

func TestRequestsThatCannotBeServed(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := w.accept(t)
	p.send("r1", &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_ExecuteJobRequest{}})
	require.Contains(t, p.completed().GetErrorMessage(), "no job id")
	m := executeRequest("j1")
	m.GetExecuteJobRequest().Job.JobType = "vacuum"
	p.send("r2", m)
	require.Contains(t, p.completed().GetErrorMessage(), "serves the job type iceberg_maintenance")
	p.send("r3", &plugin_pb.AdminToWorkerMessage{})
	require.False(t, p.ack("r3").GetAccepted())
	p.send("r4", &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_RequestObjectPreview{}})
	got, _ := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetObjectPreviewResponse() != nil })
	require.Equal(t, "r4", got.GetObjectPreviewResponse().GetRequestId())
	require.False(t, got.GetObjectPreviewResponse().GetSuccess())
	p.cancel("r5", "nobody")
	require.False(t, p.ack("r5").GetAccepted())
	p.cancel("r6", " ")
	require.False(t, p.ack("r6").GetAccepted())
	w.close(p)
}

func TestCancelByEitherID(t *testing.T) {
	for _, target := range []string{"r1", "j1"} {
		t.Run(target, func(t *testing.T) {
			g := newGate()
			w := newWorld(t, &fakeHandler{execute: g.execute})
			p := w.accept(t)
			p.execute("r1", "j1")
			p.execute("r2", "j2")
			<-g.began
			<-g.began
			p.cancel("c1", target)
			require.True(t, p.ack("c1").GetAccepted())
			done := p.completed()
			require.Equal(t, "r1", done.GetRequestId())
			require.Equal(t, "run job j1: canceled by the admin: time is up", done.GetErrorMessage())
			require.Equal(t, "canceled", done.GetActivities()[len(done.GetActivities())-1].GetDetails()["kind"].GetStringValue())
			require.Equal(t, 1, w.client.Status().Running, "the other job runs on")
			close(g.proceed)
			require.True(t, p.completed().GetSuccess())
			w.close(p)
		})
	}
}

func TestStopCancelsAndHandsOver(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-g.began
	var answers []string
	for _, m := range w.close(p) {
		if c := m.GetJobCompleted(); c != nil {
			answers = append(answers, c.GetErrorMessage())
		}
	}
	require.Equal(t, []string{"run job j1: the worker is stopping"}, answers)
	require.Zero(t, w.client.Status().Unanswered)
}

func TestStopTakesNoNewWork(t *testing.T) {
	hold := make(chan struct{})
	began := make(chan struct{})
	w := newWorld(t, &fakeHandler{
		execute: func(context.Context, Job, Reporter) (JobResult, error) {
			close(began)
			<-hold
			return JobResult{}, nil
		},
	})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-began
	w.stop()
	// The worker sees the stop at some time; from then on it has no slots.
	var done *plugin_pb.JobCompleted
	for done.GetErrorMessage() != atCapacity {
		w.client.mu.Lock()
		draining := w.client.draining
		w.client.mu.Unlock()
		if !draining {
			runtime.Gosched()
			continue
		}
		p.execute("r2", "j2")
		done = p.completed()
	}
	p.send("d1", detectRequest(0, 0))
	end, _ := detected(p)
	require.Contains(t, end.GetErrorMessage(), "the worker is stopping")
	close(hold)
	require.True(t, p.completed().GetSuccess())
	w.close(p)
}

func TestJobThatDoesNotStop(t *testing.T) {
	hold := make(chan struct{})
	began := make(chan struct{})
	w := newWorld(t, &fakeHandler{execute: func(context.Context, Job, Reporter) (JobResult, error) {
		close(began)
		<-hold
		return JobResult{}, nil
	}}, func(o *Options) { o.Grace = 77 * time.Second })
	p := w.accept(t)
	p.execute("r1", "j1")
	<-began
	w.stop()
	w.clock.fire(77 * time.Second)
	p.drain()
	close(p.finish)
	err := <-w.result
	require.ErrorContains(t, err, "j1")
	require.Equal(t, fault.Unknown, fault.Of(err))
	close(hold)
	w.client.work.Wait()
}

func TestJobTableRefusesNamesThatLeaveTheirDirectory(t *testing.T) {
	good := map[string]Value{"bucket_name": Text("lake"), "namespace": Text("a.b"), "table_name": Text("t")}
	for name := range good {
		for _, bad := range []string{"", ".", "..", "a/b", `a\b`, "a\x00", "a..b"} {
			params := map[string]Value{}
			for k, v := range good {
				params[k] = v
			}
			params[name] = Text(bad)
			_, err := Job{Parameters: params}.Table()
			require.Equal(t, fault.Unsupported, fault.Of(err), "%s=%q", name, bad)
			require.ErrorContains(t, err, name)
		}
	}
	id, err := Job{Parameters: good}.Table()
	require.NoError(t, err)
	require.Equal(t, iceberg.TableID{Bucket: "lake", Namespace: "a.b", Name: "t"}, id)
}

func TestGRPCTarget(t *testing.T) {
	for in, want := range map[string]string{
		"localhost:23646": "localhost:33646", "127.0.0.1:12535.4444": "127.0.0.1:4444", "[::1]:8080": "[::1]:18080", " a.b:1 ": "a.b:10001",
	} {
		got, err := grpcTarget(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "localhost", ":80", "a:0", "a:x", "a:60000", "a:80.0", "a:80.99999", "http://a:80/"} {
		_, err := grpcTarget(in)
		require.Error(t, err, in)
		require.NotEmpty(t, fault.Hints(err))
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Options{Admin: "a:80"})
	require.Error(t, err)
	_, err = New(Options{Admin: "a:80", Handler: &fakeHandler{}, Clock: newStepClock(), Descriptor: Descriptor{Version: 9}})
	require.ErrorContains(t, err, "below 10")
	_, err = New(Options{Admin: "a:80", Handler: &fakeHandler{}, Clock: newStepClock(), Security: "/does/not/exist.toml"})
	require.ErrorContains(t, err, "/does/not/exist.toml")
}

func TestRefusedHelloIsReported(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := <-w.peers
	p.t = t
	p.send("", &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_Hello{Hello: &plugin_pb.AdminHello{Message: "too old"}}})
	p.drain()
	w.clock.fire(5 * time.Second)
	p = w.accept(t)
	require.ErrorContains(t, w.client.Status().Err, "refused worker w1: too old")
	w.close(p)
}

func TestValueTexts(t *testing.T) {
	require.Equal(t, "a,b", Texts("a", "b").String())
	require.Equal(t, "0.5", Float(0.5).String())
	require.Equal(t, "512", Float(512).String())
	require.Equal(t, "", Value{}.String())
	for _, v := range []Value{Int(-5), Float(1.5), Text("x"), True, False, Texts("a", "b"), {}} {
		require.Equal(t, v, readValue(v.wire()))
	}
	n, ok := Text("12").Int64()
	require.True(t, ok)
	require.Equal(t, int64(12), n)
	for _, v := range []Value{Text("x"), Float(1.5), Float(1e300), True, Texts()} {
		_, ok = v.Int64()
		require.False(t, ok)
	}
	odd := readValue(&plugin_pb.ConfigValue{Kind: &plugin_pb.ConfigValue_MapValue{MapValue: &plugin_pb.ValueMap{}}})
	require.Contains(t, odd.String(), "map")
	require.Equal(t, "", readValue(nil).String())
}

func TestErrorKinds(t *testing.T) {
	c := &Client{target: "a:1"}
	require.Equal(t, fault.Transient, fault.Of(c.explain(errors.New("boom"))))
	require.Equal(t, fault.Unsupported, fault.Of(c.explain(fault.New(fault.Unsupported, "no"))))
}
