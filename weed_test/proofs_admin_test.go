package weed_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/plugin"
)

// startMaintenance keeps a worker that maintains tables through fl connected
// to the lake's admin, and lets the admin schedule it on the one table, as long
// as the test lasts.
func startMaintenance(t *testing.T, fl filer.Filer, p *proofTable) (*plugin.Client, adminAPI) {
	t.Helper()
	client, err := plugin.New(plugin.Options{
		Admin: strings.TrimPrefix(p.l.Admin, "http://"), Clock: clock.System(), Version: "test", Security: p.l.Security,
		Handler:   &plugin.Maintenance{Engine: engineOn(fl, runnerOn(fl, clock.System())), Filers: []string{p.l.Filer}},
		Reconnect: time.Second, Heartbeat: 2 * time.Second,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- client.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	api := adminAPI{t: t, base: p.l.Admin}
	var cfg map[string]any
	api.eventually("the configuration is there", func() bool {
		return client.Status().Connected && api.get(jobTypePath+"/config", &cfg) && cfg["admin_runtime"] != nil
	})
	runtime, ok := cfg["admin_runtime"].(map[string]any)
	require.True(t, ok)
	runtime["enabled"], runtime["detection_interval_minutes"] = true, 1
	values, ok := cfg["admin_config_values"].(map[string]any)
	if !ok {
		values = map[string]any{}
	}
	values["table_filter"] = map[string]any{"string_value": p.name}
	cfg["admin_config_values"] = values
	status, text := api.call(http.MethodPut, jobTypePath+"/config", cfg)
	require.Equal(t, http.StatusOK, status, "%s", text)
	return client, api
}

// jobDetail is a job with its activities as the admin's page shows it.
type jobDetail struct {
	Job struct {
		ID      string `json:"job_id"`
		State   string `json:"state"`
		Summary string `json:"summary"`
		Result  string `json:"result_summary"`
		Error   string `json:"error_message"`
	} `json:"job"`
	Activities []struct {
		Stage   string                    `json:"stage"`
		Message string                    `json:"message"`
		Details map[string]map[string]any `json:"details"`
	} `json:"activities"`
}

// jobsOf are the jobs of the table, found by their summary.
func (a adminAPI) jobsOf(p *proofTable) (ids []string) {
	a.t.Helper()
	var jobs []struct {
		ID      string `json:"job_id"`
		Summary string `json:"summary"`
	}
	if !a.get("/jobs", &jobs) {
		return nil
	}
	for _, j := range jobs {
		if strings.HasPrefix(j.Summary, p.id().String()+":") {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// succeeded waits for the one job of the table.
func (a adminAPI) succeeded(p *proofTable) (d jobDetail) {
	a.t.Helper()
	a.eventually("the job ends", func() bool {
		ids := a.jobsOf(p)
		if len(ids) == 0 {
			return false
		}
		d = jobDetail{}
		ok := a.get("/jobs/"+ids[0]+"/detail", &d)
		return ok && (d.Job.State == "job_state_succeeded" || d.Job.State == "job_state_failed")
	})
	require.Equal(a.t, "job_state_succeeded", d.Job.State, d.Job.Error)
	require.Len(a.t, a.jobsOf(p), 1)
	return d
}

// number is a number that an activity of the job shows for one operation.
func (d jobDetail) number(t *testing.T, operation, name string) string {
	t.Helper()
	for _, a := range d.Activities {
		if v, ok := a.Details[name]; ok && strings.HasPrefix(a.Message, operation+":") {
			n, ok := v["int64_value"]
			require.True(t, ok, "%v", v)
			s, ok := n.(string)
			require.True(t, ok, "protobuf writes int64 as text: %v", n)
			return s
		}
	}
	require.Failf(t, "no such number", "%s of %s in %+v", name, operation, d.Activities)
	return ""
}

// TestAdminShowsJobNumbers: what a job did is on the admin's page of it, before
// and after, and it is true.
func TestAdminShowsJobNumbers(t *testing.T) {
	l := proofLake(t)
	p := l.table(t, enough, expirable)
	rows := p.rows(icetable.MainBranch)
	p.settled()
	_, api := startMaintenance(t, l.fl, p)
	d := api.succeeded(p)

	require.Equal(t, rows, p.rows(icetable.MainBranch))
	require.Len(t, p.manifests(), 1)
	require.Len(t, p.load().Metadata().Snapshots(), 1)
	data, deletes := p.files()
	require.Equal(t, 1, data)
	require.Zero(t, deletes)
	require.Equal(t, "6", d.number(t, "compact", "data-files-before"))
	require.Equal(t, "1", d.number(t, "compact", "data-files-after"))
	require.Equal(t, "24", d.number(t, "compact", "rows-before"))
	require.Equal(t, "24", d.number(t, "compact", "rows-after"))
	// A manifest of which every file was replaced stays until manifests are
	// rewritten.
	require.Equal(t, "7", d.number(t, "rewrite_manifests", "manifests-before"))
	require.Equal(t, "1", d.number(t, "rewrite_manifests", "manifests-after"))
	require.Equal(t, "24", d.number(t, "rewrite_manifests", "rows-before"))
	require.Equal(t, "24", d.number(t, "rewrite_manifests", "rows-after"))
	require.Equal(t, "8", d.number(t, "expire_snapshots", "snapshots-before"))
	require.Equal(t, "1", d.number(t, "expire_snapshots", "snapshots-after"))
	require.NotEqual(t, "0", d.number(t, "expire_snapshots", "removed-files"))
	require.NotEqual(t, "0", d.number(t, "expire_snapshots", "removed-bytes"))
	require.Contains(t, d.Job.Result, "compact: ")
	require.Contains(t, d.Job.Result, "rewrite_manifests: ")
	require.Contains(t, d.Job.Result, "expire_snapshots: ")
}

// TestAdminRestartedMidJob: the admin goes away while a job is about to commit
// and comes back; the job ends once, and the admin knows how.
// savedAs reports whether the admin's file of jobs has the job in a state.
func savedAs(file []byte, job, state string) bool {
	var jobs []struct {
		ID    string `json:"job_id"`
		State string `json:"state"`
	}
	if json.Unmarshal(file, &jobs) != nil {
		return false // it is being written
	}
	for _, j := range jobs {
		if j.ID == job && strings.HasSuffix(strings.ToLower(j.State), state) {
			return true
		}
	}
	return false
}

func TestAdminRestartedMidJob(t *testing.T) {
	l := proofLake(t)
	p := l.table(t, enough, nil)
	rows := p.rows(icetable.MainBranch)
	reached, proceed := make(chan struct{}), make(chan struct{})
	client, api := startMaintenance(t, &atSwap{Filer: l.fl, before: sync.OnceFunc(func() {
		close(reached)
		<-proceed
	})}, p)
	select {
	case <-reached:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the job does not come to its commit")
	}
	// The admin saves its list of jobs every two seconds; a job it had not saved
	// it does not know after a restart.
	api.eventually("the admin has saved the job as running", func() bool {
		ids := api.jobsOf(p)
		saved, err := os.ReadFile(filepath.Join(l.dir, "admin", "plugin", "jobs", "tracked_jobs.json"))
		return err == nil && len(ids) == 1 && savedAs(saved, ids[0], "running")
	})
	require.NoError(t, l.RestartAdmin(t.Context()))
	api.eventually("the worker is back", func() bool {
		var workers []map[string]any
		return client.Status().Connected && api.get("/workers", &workers) && len(workers) == 1
	})
	require.Equal(t, 1, client.Status().Running)
	close(proceed)
	d := api.succeeded(p)
	require.Contains(t, d.Job.Result, "rewrite_manifests: ")

	require.Equal(t, rows, p.rows(icetable.MainBranch))
	require.Len(t, p.manifests(), 1)
	require.Len(t, p.load().Metadata().Snapshots(), enough+2, "one commit of compact and one of rewrite_manifests")
	var history struct {
		Successful []struct {
			Job string `json:"job_id"`
		} `json:"successful_runs"`
		Failed []struct {
			Job string `json:"job_id"`
		} `json:"error_runs"`
	}
	require.True(t, api.get(jobTypePath+"/runs", &history))
	runs := 0
	for _, r := range history.Successful {
		if r.Job == d.Job.ID {
			runs++
		}
	}
	require.Equal(t, 1, runs)
	for _, r := range history.Failed {
		require.NotEqual(t, d.Job.ID, r.Job)
	}
}
