package weed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/config"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/internal/cluster"
	"github.com/seaice/seaice/plugin"
)

// adminAPI asks the admin's HTTP interface.
type adminAPI struct {
	t    *testing.T
	base string
}

// call returns the status and body; what cannot be reached is status 0.
func (a adminAPI) call(method, path string, body any) (int, []byte) {
	a.t.Helper()
	var r io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(a.t, err)
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.base+"/api/plugin"+path, r)
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, text
}

// get decodes an answer; false if there is none yet.
func (a adminAPI) get(path string, into any) bool {
	a.t.Helper()
	status, text := a.call(http.MethodGet, path, nil)
	return status == http.StatusOK && json.Unmarshal(text, into) == nil
}

func (a adminAPI) eventually(what string, ok func() bool) {
	a.t.Helper()
	require.Eventually(a.t, ok, 2*time.Minute, 200*time.Millisecond, what)
}

const jobTypePath = "/job-types/iceberg_maintenance"

// wireHandler proposes one table once and executes when told.
type wireHandler struct {
	detected atomic.Int32
	executed atomic.Int32
	began    chan plugin.Job
	proceed  chan struct{}
	ended    chan error
}

func (h *wireHandler) Detect(_ context.Context, req plugin.DetectRequest, out plugin.Findings) (plugin.DetectSummary, error) {
	if _, err := config.ReadForm(req.Settings.Worker); err != nil {
		return plugin.DetectSummary{}, err
	}
	if _, err := config.ResolveScope(req.Settings.Admin, nil); err != nil {
		return plugin.DetectSummary{}, err
	}
	if len(req.Cluster.Filers) == 0 || h.detected.Add(1) > 1 {
		return plugin.DetectSummary{}, out.Note(plugin.Activity{Stage: "idle", Message: "nothing more to propose"})
	}
	out.Observe(plugin.Observation{Table: iceberg.TableID{Bucket: "lake", Namespace: "a.b", Name: "t"}, Attributes: map[string]plugin.Value{"rows": plugin.Int(42)}})
	return plugin.DetectSummary{}, out.Propose(plugin.Proposal{
		Table: iceberg.TableID{Bucket: "lake", Namespace: "a.b", Name: "t"}, Summary: "compact: 3 files", EstimatedRuntime: time.Hour,
	})
}

func (h *wireHandler) Execute(ctx context.Context, job plugin.Job, out plugin.Reporter) (plugin.JobResult, error) {
	h.executed.Add(1)
	out.Progress(plugin.Progress{Percent: 30, Stage: "compact", Message: "1 of 3 files"})
	out.Note(plugin.Activity{Stage: "compact", Message: "a note from the job", Details: map[string]plugin.Value{"files": plugin.Int(3)}})
	h.began <- job
	select {
	case <-h.proceed:
		return plugin.JobResult{Summary: "compact: 3 -> 1 files", Outputs: map[string]plugin.Value{"files": plugin.Int(3)}}, nil
	case <-ctx.Done():
		h.ended <- context.Cause(ctx)
		return plugin.JobResult{}, ctx.Err()
	}
}

func startWire(t *testing.T, c *cluster.Cluster) (*wireHandler, *plugin.Client) {
	t.Helper()
	h := &wireHandler{began: make(chan plugin.Job, 8), proceed: make(chan struct{}), ended: make(chan error, 8)}
	client, err := plugin.New(plugin.Options{
		Admin: strings.TrimPrefix(c.Admin, "http://"), Handler: h, Clock: clock.System(), Version: "test",
		Security: c.Security, Reconnect: time.Second, Heartbeat: 2 * time.Second,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- client.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return h, client
}

// The whole way through the real admin: descriptor, forms, scheduled detection,
// a job over which the admin restarts, one run recorded, and a cancel.
func TestJobSurvivesARestartOfTheRealAdmin(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake"})
	h, client := startWire(t, c)
	api := adminAPI{t: t, base: c.Admin}

	var descriptor struct {
		Version int `json:"descriptor_version"`
		Form    struct {
			Sections []struct {
				Fields []struct {
					Name string `json:"name"`
				} `json:"fields"`
			} `json:"sections"`
		} `json:"worker_config_form"`
	}
	api.eventually("the descriptor arrives", func() bool { return api.get(jobTypePath+"/descriptor", &descriptor) })
	require.Equal(t, plugin.Version, descriptor.Version)
	require.Len(t, descriptor.Form.Sections, len(config.WorkerForm().Sections))

	var saved map[string]any
	api.eventually("the configuration is there", func() bool { return api.get(jobTypePath+"/config", &saved) && saved["admin_runtime"] != nil })
	runtime, ok := saved["admin_runtime"].(map[string]any)
	require.True(t, ok)
	require.NotEqual(t, true, runtime["enabled"], "off until somebody enables it")
	runtime["enabled"], runtime["detection_interval_minutes"] = true, 1
	status, text := api.call(http.MethodPut, jobTypePath+"/config", saved)
	require.Equal(t, http.StatusOK, status, "%s", text)

	job := <-h.began
	id, err := job.Table()
	require.NoError(t, err)
	require.Equal(t, "lake/a.b/t", id.String())
	require.NotEmpty(t, job.Cluster.Filers)
	_, err = config.ReadForm(job.Settings.Worker)
	require.NoError(t, err)
	var observed []map[string]any
	api.eventually("the observation arrives", func() bool { return api.get("/observations", &observed) && len(observed) == 1 })
	require.Equal(t, []any{"lake", "a", "b", "t"}, observed[0]["object_id"])

	// The admin saves its list of jobs every few seconds.
	var jobs []map[string]any
	api.eventually("the job is shown with its progress", func() bool {
		return api.get("/jobs", &jobs) && len(jobs) == 1 && jobs[0]["message"] == "1 of 3 files"
	})
	require.NoError(t, c.RestartAdmin(t.Context()))
	api.eventually("the worker is back", func() bool {
		var workers []map[string]any
		return client.Status().Connected && api.get("/workers", &workers) && len(workers) == 1
	})
	require.Equal(t, 1, client.Status().Running)
	require.Empty(t, h.ended, "the job must not be canceled")
	close(h.proceed)
	api.eventually("the job has succeeded", func() bool {
		return api.get("/jobs", &jobs) && len(jobs) == 1 && jobs[0]["state"] == "job_state_succeeded"
	})
	require.Equal(t, "compact: 3 -> 1 files", jobs[0]["result_summary"])
	require.Equal(t, int32(1), h.executed.Load())
	var history struct {
		Successful []map[string]any `json:"successful_runs"`
		Failed     []map[string]any `json:"error_runs"`
	}
	require.True(t, api.get(jobTypePath+"/runs", &history))
	require.Len(t, history.Successful, 1)
	require.Empty(t, history.Failed)
	var activities []map[string]any
	require.True(t, api.get("/activities?limit=500", &activities))
	// Notes from before the restart may be lost with the admin that had them.
	require.Contains(t, fmt.Sprint(activities), "files:map[int64_value:3]", "the numbers are an activity")
}

func TestExpiringAJobInTheRealAdminCancelsIt(t *testing.T) {
	c := startCluster(t, cluster.Options{Bucket: "lake", TLS: true, JWT: true})
	h, client := startWire(t, c)
	api := adminAPI{t: t, base: c.Admin}
	api.eventually("the worker connects", func() bool { return client.Status().Connected })
	answered := make(chan string, 1)
	go func() {
		_, text := api.call(http.MethodPost, "/jobs/execute", map[string]any{"job": map[string]any{
			"job_id": "by-hand", "job_type": plugin.JobType,
			"parameters": map[string]any{"bucket_name": map[string]string{"string_value": "lake"}},
		}})
		answered <- string(text)
	}()
	require.Equal(t, "by-hand", (<-h.began).ID)
	status, text := api.call(http.MethodPost, "/jobs/by-hand/expire", map[string]string{"reason": "by the test"})
	require.Equal(t, http.StatusOK, status, "%s", text)
	require.ErrorContains(t, <-h.ended, "canceled by the admin")
	<-answered
	api.eventually("the slot is free", func() bool { return client.Status().Running == 0 })
}
