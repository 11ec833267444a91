package plugin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
)

func detectRequest(limitSeconds, maxResults int32) *plugin_pb.AdminToWorkerMessage {
	return &plugin_pb.AdminToWorkerMessage{Body: &plugin_pb.AdminToWorkerMessage_RunDetectionRequest{RunDetectionRequest: &plugin_pb.RunDetectionRequest{
		JobType: JobType, MaxResults: maxResults,
		AdminRuntime:      &plugin_pb.AdminRuntimeConfig{DetectionTimeoutSeconds: limitSeconds},
		AdminConfigValues: wireValues(map[string]Value{"bucket_filter": Text("prod-*")}),
		ClusterContext:    &plugin_pb.ClusterContext{FilerAddresses: []string{"f:8888.18888"}, MasterGrpcAddresses: []string{"m:19333"}},
		LastSuccessfulRun: &timestamppb.Timestamp{Seconds: 1000},
	}}}
}

// detected waits for the end of a detection and returns its proposals.
func detected(p *peer) (*plugin_pb.DetectionComplete, []*plugin_pb.JobProposal) {
	p.t.Helper()
	m, before := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionComplete() != nil })
	return m.GetDetectionComplete(), proposals(before)
}

func proposals(ms []*plugin_pb.WorkerToAdminMessage) (out []*plugin_pb.JobProposal) {
	for _, m := range ms {
		out = append(out, m.GetDetectionProposals().GetProposals()...)
	}
	return out
}

func activities(ms []*plugin_pb.WorkerToAdminMessage) (out []string) {
	for _, m := range ms {
		for _, a := range m.GetJobProgressUpdate().GetActivities() {
			out = append(out, a.GetStage()+": "+a.GetMessage())
		}
	}
	return out
}

func tableNo(i int) iceberg.TableID {
	return iceberg.TableID{Bucket: "lake", Namespace: "sales.eu", Name: fmt.Sprintf("t%d", i)}
}

func TestDetectionStreamsWhatItFinds(t *testing.T) {
	var got DetectRequest
	seen := make(chan struct{})
	w := newWorld(t, &fakeHandler{detect: func(_ context.Context, r DetectRequest, f Findings) (DetectSummary, error) {
		got = r
		if err := f.Propose(Proposal{Table: tableNo(0), Summary: "compact: 412 files, 98.1 MB", Filer: "f:18888",
			EstimatedRuntime: 90 * time.Second, ResourceGroup: "lake", Priority: PriorityHigh, Parameters: map[string]Value{"operations": Text("compact")}}); err != nil {
			return DetectSummary{}, err
		}
		<-seen
		if err := f.Note(Activity{Stage: "settings", Message: "lake/a/b: bad property"}); err != nil {
			return DetectSummary{}, err
		}
		for i := range 25 {
			if err := f.Propose(Proposal{Table: tableNo(i + 1)}); err != nil {
				return DetectSummary{}, err
			}
		}
		return DetectSummary{HasMore: true}, nil
	}})
	p := w.accept(t)
	p.send("d1", detectRequest(300, 0))
	require.True(t, p.ack("d1").GetAccepted())
	first := p.take(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionProposals() != nil })
	close(seen) // the first proposal arrived while detection was going on
	require.Equal(t, "d1", first.GetDetectionProposals().GetRequestId())
	pr := first.GetDetectionProposals().GetProposals()[0]
	require.Equal(t, "iceberg_maintenance:lake/sales.eu/t0", pr.GetDedupeKey(), "as the built-in worker has it")
	params := readValues(pr.GetParameters())
	require.Equal(t, map[string]Value{
		"bucket_name": Text("lake"), "namespace": Text("sales.eu"), "table_name": Text("t0"), "table_path": Text("sales.eu/t0"),
		"filer_address": Text("f:18888"), "estimated_runtime_seconds": Int(90), "resource_group": Text("lake"), "operations": Text("compact"),
	}, params)
	require.Equal(t, plugin_pb.JobPriority_JOB_PRIORITY_HIGH, pr.GetPriority())
	id, err := Job{Parameters: params}.Table()
	require.NoError(t, err)
	require.Equal(t, tableNo(0), id)

	m, before := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionComplete() != nil })
	done := m.GetDetectionComplete()
	require.True(t, done.GetSuccess())
	require.Equal(t, int32(26), done.GetTotalProposals())
	rest := proposals(before)
	require.Len(t, rest, 25)
	ids := map[string]bool{pr.GetProposalId(): true}
	for i, q := range rest {
		require.Equal(t, tableNo(i+1).Name, q.GetLabels()["table"], "in the order they were found")
		ids[q.GetProposalId()] = true
	}
	require.Len(t, ids, 26)
	require.Contains(t, activities(before), "settings: lake/a/b: bad property")
	require.Equal(t, map[string]string{"bucket_filter": "prod-*"}, got.Settings.Admin)
	require.Equal(t, Cluster{Filers: []string{"f:8888.18888"}, Masters: []string{"m:19333"}}, got.Cluster)
	require.Equal(t, 280*time.Second, got.TimeLimit)
	require.Equal(t, int64(1000), got.LastSuccess.Unix())
	p.kept = append(before, p.kept...)
	p.beat(func(b *plugin_pb.WorkerHeartbeat) bool {
		return b.GetDetectionSlotsUsed() == 0 && len(b.GetRunningWork()) == 0
	})
	require.Equal(t, 26, w.client.Status().LastDetection.Proposals)
	w.close(p)
}

func TestDetectionStopsAtMaxResults(t *testing.T) {
	w := newWorld(t, &fakeHandler{detect: func(_ context.Context, _ DetectRequest, f Findings) (DetectSummary, error) {
		for i := 0; ; i++ {
			if err := f.Propose(Proposal{Table: tableNo(i)}); errors.Is(err, ErrEnough) {
				return DetectSummary{HasMore: true}, nil
			}
		}
	}})
	p := w.accept(t)
	p.send("d1", detectRequest(0, 13))
	m, before := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionComplete() != nil })
	require.True(t, m.GetDetectionComplete().GetSuccess())
	require.Len(t, proposals(before), 13)
	require.True(t, before[len(before)-1].GetDetectionProposals().GetHasMore())
	w.close(p)
}

// findThen proposes n tables and then waits for the end of ctx.
func findThen(n int, end func(context.Context) error) func(context.Context, DetectRequest, Findings) (DetectSummary, error) {
	return func(ctx context.Context, _ DetectRequest, f Findings) (DetectSummary, error) {
		for i := range n {
			if err := f.Propose(Proposal{Table: tableNo(i)}); err != nil {
				return DetectSummary{}, err
			}
		}
		return DetectSummary{}, end(ctx)
	}
}

func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTimeLimitKeepsWhatWasFound(t *testing.T) {
	for _, n := range []int{0, 3} {
		found := make(chan struct{})
		w := newWorld(t, &fakeHandler{detect: findThen(n, func(ctx context.Context) error {
			close(found)
			return untilEnd(ctx)
		})})
		p := w.accept(t)
		p.send("d1", detectRequest(45, 0))
		<-found
		w.clock.fire(timeLimit(45 * time.Second))
		m, before := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionComplete() != nil })
		require.True(t, m.GetDetectionComplete().GetSuccess(), "a failure would make the admin drop the proposals")
		require.Contains(t, activities(before), fmt.Sprintf("time_limit: stopped at the time limit of 40.5s after %d proposals; the rest follows next time", n))
		require.Len(t, proposals(before), n)
		w.close(p)
	}
}

func TestTimeLimitIsBelowTheAdmins(t *testing.T) {
	require.Equal(t, timeLimit(45*time.Second), timeLimit(0), "the admin's own default")
	for _, s := range []int{1, 2, 5, 45, 300, 3600} {
		admin := time.Duration(s) * time.Second
		got := timeLimit(admin)
		require.Positive(t, got)
		require.Less(t, got, admin)
		require.GreaterOrEqual(t, got, admin/2)
	}
}

func TestFailedDetectionKeepsWhatWasFound(t *testing.T) {
	bad := func(context.Context) error { return fault.New(fault.Transient, "list bucket lake") }
	for n, want := range map[int]bool{0: false, 2: true} {
		w := newWorld(t, &fakeHandler{detect: findThen(n, bad)})
		p := w.accept(t)
		p.send("d1", detectRequest(0, 0))
		m, before := p.until(func(m *plugin_pb.WorkerToAdminMessage) bool { return m.GetDetectionComplete() != nil })
		require.Equal(t, want, m.GetDetectionComplete().GetSuccess())
		require.Len(t, proposals(before), n)
		if want {
			require.Contains(t, activities(before), "ended_early: ended after 2 proposals: list bucket lake")
		} else {
			require.Equal(t, "list bucket lake", m.GetDetectionComplete().GetErrorMessage())
		}
		w.close(p)
	}
}

func TestDetectionIsCanceled(t *testing.T) {
	w := newWorld(t, &fakeHandler{detect: findThen(1, untilEnd)})
	p := w.accept(t)
	p.send("d1", detectRequest(0, 0))
	p.beat(func(b *plugin_pb.WorkerHeartbeat) bool {
		return len(b.GetRunningWork()) == 1 && b.GetRunningWork()[0].GetWorkId() == "d1"
	})
	p.cancel("c1", "d1")
	done, _ := detected(p)
	require.False(t, done.GetSuccess())
	require.Equal(t, "canceled by the admin: time is up", done.GetErrorMessage())
	w.close(p)
}

// The admin takes the answer only on the stream it asked on.
func TestDetectionEndsWithItsStream(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	w := newWorld(t, &fakeHandler{detect: func(ctx context.Context, _ DetectRequest, f Findings) (DetectSummary, error) {
		close(began)
		<-ctx.Done()
		ended <- f.Propose(Proposal{Table: tableNo(1)})
		return DetectSummary{}, ctx.Err()
	}})
	p := w.accept(t)
	p.send("d1", detectRequest(0, 0))
	<-began
	w.cut()
	require.Error(t, <-ended)
	w.clock.fire(5 * time.Second)
	second := w.accept(t)
	second.beat(func(b *plugin_pb.WorkerHeartbeat) bool { return len(b.GetRunningWork()) == 0 })
	for _, m := range w.close(second) {
		require.Nil(t, m.GetDetectionComplete())
		require.Nil(t, m.GetDetectionProposals())
	}
}

func TestDetectionsWaitForASlot(t *testing.T) {
	began, proceed := make(chan string, 3), make(chan struct{})
	w := newWorld(t, &fakeHandler{detect: func(_ context.Context, r DetectRequest, _ Findings) (DetectSummary, error) {
		began <- r.RequestID
		<-proceed
		return DetectSummary{SkippedReason: "nothing to look at"}, nil
	}}, func(o *Options) { o.DetectionSlots = 1 })
	p := w.accept(t)
	p.send("d1", detectRequest(0, 0))
	require.Equal(t, "d1", <-began)
	p.send("d1", detectRequest(0, 0))
	p.send("d2", detectRequest(0, 0))
	p.beat(func(b *plugin_pb.WorkerHeartbeat) bool {
		return b.GetDetectionSlotsUsed() == 1 && len(b.GetRunningWork()) == 2
	})
	close(proceed)
	for range 2 {
		done, _ := detected(p)
		require.Equal(t, "nothing to look at", done.GetSkippedReason())
	}
	require.Equal(t, "d2", <-began)
	require.Empty(t, began)
	w.close(p)
}

func TestDetectionOfAnotherJobType(t *testing.T) {
	w := newWorld(t, &fakeHandler{})
	p := w.accept(t)
	m := detectRequest(0, 0)
	m.GetRunDetectionRequest().JobType = "vacuum"
	p.send("d1", m)
	done, _ := detected(p)
	require.Contains(t, done.GetErrorMessage(), "not \"vacuum\"")
	w.close(p)
}
