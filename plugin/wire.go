package plugin

import (
	"math"
	"strings"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/plugin_pb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seaice/seaice/fault"
)

// Names of parameters that the built-in worker and the admin read.
const (
	paramBucket    = "bucket_name"
	paramNamespace = "namespace"
	paramTable     = "table_name"
	paramPath      = "table_path"
	paramFiler     = "filer_address"
	paramGroup     = "resource_group"
	paramRuntime   = "estimated_runtime_seconds"
)

// maxMessage bounds a text that the admin shows in a table.
const maxMessage = 4 << 10

func clip(s string) string {
	s = valid(s)
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}

var priorities = map[Priority]plugin_pb.JobPriority{
	PriorityNormal:   plugin_pb.JobPriority_JOB_PRIORITY_NORMAL,
	PriorityLow:      plugin_pb.JobPriority_JOB_PRIORITY_LOW,
	PriorityHigh:     plugin_pb.JobPriority_JOB_PRIORITY_HIGH,
	PriorityCritical: plugin_pb.JobPriority_JOB_PRIORITY_CRITICAL,
}

// wire is the proposal under the names the built-in worker uses. The key under
// which the admin recognises work already queued is that worker's as well.
func (p Proposal) wire(id string) *plugin_pb.JobProposal {
	params := wireValues(p.Parameters)
	if params == nil {
		params = map[string]*plugin_pb.ConfigValue{}
	}
	set := func(name string, v Value) { params[name] = v.wire() }
	set(paramBucket, Text(p.Table.Bucket))
	set(paramNamespace, Text(p.Table.Namespace))
	set(paramTable, Text(p.Table.Name))
	set(paramPath, Text(p.Table.Namespace+"/"+p.Table.Name))
	set(paramFiler, Text(p.Filer))
	labels := map[string]string{"bucket": valid(p.Table.Bucket), "namespace": valid(p.Table.Namespace), "table": valid(p.Table.Name)}
	if p.ResourceGroup != "" {
		set(paramGroup, Text(p.ResourceGroup))
		labels[paramGroup] = valid(p.ResourceGroup)
	}
	if p.EstimatedRuntime > 0 {
		set(paramRuntime, Int(int64(math.Ceil(p.EstimatedRuntime.Seconds()))))
	}
	return &plugin_pb.JobProposal{
		ProposalId: id,
		DedupeKey:  JobType + ":" + valid(p.Table.String()),
		JobType:    JobType,
		Priority:   priorities[p.Priority],
		Summary:    clip(p.Summary),
		Detail:     clip(p.Detail),
		Parameters: params,
		Labels:     labels,
	}
}

func (a Activity) wire(source plugin_pb.ActivitySource, now time.Time) *plugin_pb.ActivityEvent {
	return &plugin_pb.ActivityEvent{
		Source:    source,
		Stage:     clip(a.Stage),
		Message:   clip(a.Message),
		Details:   wireValues(a.Details),
		CreatedAt: timestamppb.New(now),
	}
}

func (o Observation) wire(now time.Time) *plugin_pb.ObjectObservation {
	id := append([]string{valid(o.Table.Bucket)}, strings.Split(valid(o.Table.Namespace), ".")...)
	return &plugin_pb.ObjectObservation{
		ObjectId:   append(id, valid(o.Table.Name)),
		ObjectKind: "table",
		Format:     "ICEBERG",
		Attributes: wireValues(o.Attributes),
		ObservedAt: timestamppb.New(now),
	}
}

func readCluster(c *plugin_pb.ClusterContext) Cluster {
	return Cluster{
		Filers:  append([]string(nil), c.GetFilerAddresses()...),
		Masters: append([]string(nil), c.GetMasterGrpcAddresses()...),
	}
}

func readJob(requestID string, r *plugin_pb.ExecuteJobRequest) Job {
	j := Job{
		ID:         r.GetJob().GetJobId(),
		RequestID:  requestID,
		Attempt:    max(1, int(r.GetAttempt())),
		Summary:    r.GetJob().GetSummary(),
		Parameters: readValues(r.GetJob().GetParameters()),
		Settings:   Settings{Worker: readTexts(r.GetWorkerConfigValues()), Admin: readTexts(r.GetAdminConfigValues())},
		Cluster:    readCluster(r.GetClusterContext()),
	}
	if t := r.GetJob().GetCreatedAt(); t.IsValid() {
		j.CreatedAt = t.AsTime()
	}
	return j
}

// completion is the answer to a job. The admin drops summary and outputs of a
// failed job, so they go into its message and an activity as well.
func completion(j Job, res JobResult, err error, now time.Time) *plugin_pb.JobCompleted {
	done := &plugin_pb.JobCompleted{
		RequestId:   j.RequestID,
		JobId:       j.ID,
		JobType:     JobType,
		Success:     err == nil,
		CompletedAt: timestamppb.New(now),
		Result:      &plugin_pb.JobResult{Summary: clip(res.Summary), OutputValues: wireValues(res.Outputs)},
	}
	last := Activity{Stage: "completed", Message: res.Summary, Details: res.Outputs}
	if err != nil {
		message := strings.ReplaceAll(fault.Message(err), "\nhint: ", "; hint: ")
		if res.Summary != "" {
			message += " (done before: " + res.Summary + ")"
		}
		done.ErrorMessage = clip(message)
		last = Activity{Stage: "failed", Message: message, Details: map[string]Value{"kind": Text(fault.Of(err).String())}}
		for k, v := range res.Outputs {
			last.Details[k] = v
		}
	}
	done.Activities = []*plugin_pb.ActivityEvent{last.wire(plugin_pb.ActivitySource_ACTIVITY_SOURCE_EXECUTOR, now)}
	return done
}
