package plugin

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"github.com/stretchr/testify/require"
)

func lists(jobs ...string) func(*plugin_pb.WorkerHeartbeat) bool {
	return func(b *plugin_pb.WorkerHeartbeat) bool {
		if len(b.GetRunningWork()) != len(jobs) {
			return false
		}
		for i, w := range b.GetRunningWork() {
			if w.GetWorkId() != jobs[i] || w.GetKind() != plugin_pb.WorkKind_WORK_KIND_EXECUTION {
				return false
			}
		}
		return true
	}
}

func answers(ms []*plugin_pb.WorkerToAdminMessage) (ids []string) {
	for _, m := range ms {
		if c := m.GetJobCompleted(); c != nil {
			ids = append(ids, c.GetRequestId())
		}
	}
	return ids
}

// breaks are the ways a stream ends under a running job.
var breaks = map[string]func(*world, *peer){
	"the admin ends the stream": func(_ *world, p *peer) { close(p.finish) },
	"the connection is cut":     func(w *world, _ *peer) { w.cut() },
	"the admin restarts": func(w *world, _ *peer) {
		w.admin.stop()
		w.admin.start()
	},
}

func TestJobSurvivesABrokenStream(t *testing.T) {
	for name, breakStream := range breaks {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			w := newWorld(t, &fakeHandler{execute: g.execute})
			p := w.accept(t)
			p.execute("r1", "j1")
			<-g.began
			breakStream(w, p)
			for m := range p.in {
				require.Nil(t, m.GetJobCompleted())
			}
			w.clock.fire(5 * time.Second)

			second := w.accept(t)
			require.Equal(t, p.hello.GetWorkerInstanceId(), second.hello.GetWorkerInstanceId(), "it is the same process")
			m, before := second.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetHeartbeat() != nil })
			require.True(t, lists("j1")(m.GetHeartbeat()), "the first heartbeat must list the job: %v", m)
			require.Equal(t, int32(1), m.GetHeartbeat().GetExecutionSlotsUsed())
			require.Empty(t, answers(before))
			require.Equal(t, 1, w.client.Status().Running)

			close(g.proceed)
			done := second.completed()
			require.Equal(t, "r1", done.GetRequestId())
			require.True(t, done.GetSuccess())
			require.Empty(t, answers(w.close(second)), "exactly one answer")
			require.Empty(t, g.began, "the job ran once")
		})
	}
}

func TestJobThatEndsWhileTheAdminIsAwayIsAnsweredLater(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-g.began
	w.cut()
	w.disconnected()
	close(g.proceed)
	w.client.work.Wait()
	require.Equal(t, 1, w.client.Status().Unanswered)
	w.clock.fire(5 * time.Second)

	second := w.accept(t)
	m, _ := second.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetHeartbeat() != nil })
	require.True(t, lists("j1")(m.GetHeartbeat()), "a job whose answer waits is listed, or the admin fails it")
	require.Zero(t, m.GetHeartbeat().GetExecutionSlotsUsed())
	require.Equal(t, "r1", second.completed().GetRequestId())
	second.beat(lists())
	require.Empty(t, answers(w.close(second)))
}

// The answer was written to a connection that broke before the admin had it.
func TestAnswerThatWasLostIsSentAgain(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-g.began
	close(p.hold)
	close(g.proceed)
	sent := func() bool {
		s := w.client.Status()
		return s.Running == 0 && s.Unanswered == 0
	}
	for !sent() {
		runtime.Gosched()
	}
	w.cut()
	p.drain()
	w.clock.fire(5 * time.Second)
	second := w.accept(t)
	require.Equal(t, "r1", second.completed().GetRequestId())
	require.Empty(t, answers(w.close(second)))
}

// An answer that stood on a living stream for long enough is not repeated.
func TestConfirmedAnswerIsForgotten(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-g.began
	close(g.proceed)
	p.completed()
	p.beat(lists())
	w.clock.advance(confirmAfter)
	w.clock.fire(progressEvery)
	p.beat(lists()) // the time of the next one has come, too
	close(p.finish)
	p.drain()
	w.clock.fire(5 * time.Second)
	second := w.accept(t)
	second.beat(lists())
	require.Empty(t, answers(w.close(second)))
}

func TestShutdownOfTheAdminLeavesJobsRunning(t *testing.T) {
	g := newGate()
	w := newWorld(t, &fakeHandler{execute: g.execute})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-g.began
	p.send("x", &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_Shutdown{Shutdown: &plugin_pb.AdminShutdown{Reason: "upgrade"}}})
	require.True(t, p.ack("x").GetAccepted())
	close(p.finish)
	p.drain()
	w.clock.fire(5 * time.Second)
	second := w.accept(t)
	second.beat(lists("j1"))
	close(g.proceed)
	require.True(t, second.completed().GetSuccess())
	w.close(second)
}

// Notes that nobody could take are kept up to a bound, and the loss is said.
func TestNotesWhileTheAdminIsAway(t *testing.T) {
	began, proceed := make(chan struct{}), make(chan struct{})
	w := newWorld(t, &fakeHandler{execute: func(_ context.Context, _ Job, r Reporter) (JobResult, error) {
		close(began)
		<-proceed
		for i := range maxPendingNotes + 10 {
			r.Note(Activity{Message: fmt.Sprint(i)})
		}
		return JobResult{}, nil
	}})
	p := w.accept(t)
	p.execute("r1", "j1")
	<-began
	w.cut()
	w.disconnected()
	close(proceed)
	w.client.work.Wait()
	w.clock.fire(5 * time.Second)
	second := w.accept(t)
	got := second.completed().GetActivities()
	require.Len(t, got, maxPendingNotes+2)
	require.Equal(t, "10 activities were lost while the admin could not be reached", got[0].GetMessage())
	require.Equal(t, "10", got[1].GetMessage())
	w.close(second)
}

func TestReconnectBacksOff(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := w.accept(t)
	close(p.finish)
	for _, d := range []time.Duration{5, 10, 20, 40, 60, 60} {
		w.clock.fire(d * time.Second) // waits for a sleep of exactly this length
		p = <-w.peers
		p.t = t
		close(p.finish)
	}
	w.clock.fire(60 * time.Second)
	p = w.accept(t)
	// A stream that lasted starts the count anew.
	p.beat(lists())
	w.clock.advance(2 * time.Minute)
	close(p.finish)
	w.clock.fire(5 * time.Second)
	w.close(w.accept(t))
}

func TestStopWhileDisconnected(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := w.accept(t)
	w.admin.stop()
	p.drain()
	w.stop()
	require.NoError(t, <-w.result)
}

func TestProgressIsMonotoneAndSpaced(t *testing.T) {
	steps, done := make(chan Progress), make(chan struct{})
	w := newWorld(t, &fakeHandler{execute: func(_ context.Context, _ Job, r Reporter) (JobResult, error) {
		for p := range steps {
			r.Progress(p)
			done <- struct{}{}
		}
		return JobResult{}, nil
	}})
	p := w.accept(t)
	p.execute("r1", "j1")
	step := func(percent float64, stage string) {
		steps <- Progress{Percent: percent, Stage: stage, Message: fmt.Sprint(percent)}
		<-done
	}
	next := func() *plugin_pb.JobProgressUpdate {
		m, _ := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetJobProgressUpdate() != nil })
		return m.GetJobProgressUpdate()
	}
	step(20, "a")
	require.Equal(t, 20.0, next().GetProgressPercent())
	step(30, "a")
	step(40, "a")
	step(10, "a")
	w.clock.fire(progressEvery)
	got := next()
	require.Equal(t, 40.0, got.GetProgressPercent(), "several steps become one update, and none goes back")
	require.Equal(t, "10", got.GetMessage())
	step(100, "b")
	require.Equal(t, 99.0, next().GetProgressPercent(), "a new stage is shown at once; 100 is for the answer")
	close(steps)
	require.True(t, p.completed().GetSuccess())
	w.close(p)
}
