package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const jobType = "iceberg_maintenance"

// admin is the HTTP API of weed admin.
type admin struct{ base string }

func (a admin) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(b))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// poll calls fn every half second until it is done or the time is up.
func poll(ctx context.Context, limit time.Duration, fn func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		done, err := fn()
		if done {
			return err
		}
		last = err
		select {
		case <-ctx.Done():
			if last != nil {
				return last
			}
			return fmt.Errorf("not within %s", limit)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// enable waits until the worker has registered the job type and switches it on.
func (a admin) enable(ctx context.Context) error {
	return poll(ctx, time.Minute, func() (bool, error) {
		var cfg map[string]any
		path := "/api/plugin/job-types/" + jobType + "/config"
		if err := a.call(ctx, http.MethodGet, path, nil, &cfg); err != nil {
			return false, err
		}
		inner := cfg
		if c, ok := cfg["config"].(map[string]any); ok {
			inner = c
		}
		runtime, _ := inner["admin_runtime"].(map[string]any)
		if runtime == nil {
			runtime = map[string]any{}
		}
		runtime["enabled"], runtime["detection_interval_minutes"] = true, 1
		inner["admin_runtime"] = runtime
		err := a.call(ctx, http.MethodPut, path, inner, nil)
		return err == nil, err
	})
}

// finished is a job at its end.
type finished struct {
	Table, State, Message string
	Activities            []string
}

// worst is the state of the jobs together: that of one that failed, if any did.
func worst(jobs []finished) string {
	state := ""
	for _, j := range jobs {
		if state == "" || j.State != "succeeded" {
			state = j.State
		}
	}
	return state
}

// jobs lists what the admin knows of the job type.
func (a admin) jobs(ctx context.Context) ([]map[string]any, error) {
	var list []map[string]any
	err := a.call(ctx, http.MethodGet, "/api/plugin/jobs?job_type="+jobType, nil, &list)
	return list, err
}

// follow waits for a job of each of the tables and returns those that ended.
func (a admin) follow(ctx context.Context, tables map[string]bool) ([]finished, error) {
	var done []finished
	seen := map[string]string{}
	err := poll(ctx, 3*time.Minute, func() (bool, error) {
		list, err := a.jobs(ctx)
		if err != nil {
			return false, err
		}
		for _, j := range list {
			table, _, _ := strings.Cut(fmt.Sprint(j["summary"]), ":")
			if !tables[table] {
				continue
			}
			state := strings.TrimPrefix(strings.ToLower(fmt.Sprint(j["state"])), "job_state_")
			if state == seen[table] || slices.ContainsFunc(done, func(f finished) bool { return f.Table == table }) {
				continue
			}
			seen[table] = state
			say("  job %v of %s: %s", j["job_id"], table, state)
			switch state {
			case "succeeded", "failed", "canceled", "cancelled":
				done = append(done, finished{Table: table, State: state, Message: fmt.Sprint(j["message"]), Activities: a.activities(ctx, fmt.Sprint(j["job_id"]))})
			}
		}
		return len(done) == len(tables), nil
	})
	return done, err
}

// activities are the lines that the admin's page of the job shows.
func (a admin) activities(ctx context.Context, id string) []string {
	var detail struct {
		Activities []struct {
			Stage   string         `json:"stage"`
			Message string         `json:"message"`
			Details map[string]any `json:"details"`
		} `json:"activities"`
	}
	if err := a.call(ctx, http.MethodGet, "/api/plugin/jobs/"+id+"/detail", nil, &detail); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, x := range detail.Activities {
		out = append(out, fmt.Sprintf("%s: %s", x.Stage, x.Message))
	}
	return out
}
