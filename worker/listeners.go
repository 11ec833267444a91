package worker

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seaice/seaice/commit"
	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
)

// Logged writes events to log: a line at the end of each run that did anything
// or failed, and decisions at debug level.
func Logged(log *slog.Logger) Events {
	base := func(r ops.Result) []any {
		return []any{"table", r.Table.String(), "op", string(r.Operation), "run", r.Run}
	}
	return Events{
		Begin: func(r ops.Result) { log.Debug("run begins", base(r)...) },
		Planned: func(r ops.Result) {
			for _, x := range r.Reasons {
				log.Debug("left alone", append(base(r), "subject", x.Subject, "count", x.Count, "reason", x.Text)...)
			}
		},
		End: func(r ops.Result) {
			level, text := slog.LevelInfo, r.Message
			switch {
			case r.Status == ops.Failed && r.Kind == fault.Canceled, r.Status == ops.NothingToDo:
				level = slog.LevelDebug
			case r.Status == ops.Failed, r.Status == ops.PartlyDone, r.Status == ops.OutcomeUnknown:
				level, text = slog.LevelError, r.Error
			}
			args := append(base(r), "status", string(r.Status), "seconds", r.Ended.Sub(r.Started).Seconds())
			if r.Commit != nil {
				args = append(args, "snapshot", int64(r.Commit.Snapshot), "attempts", r.Commit.Attempts)
			}
			logAt(log, level, text, args)
			for _, w := range r.Warnings {
				log.Warn(w, base(r)...)
			}
		},
		Resolved: func(id iceberg.TableID, res journal.Resolution, err error) {
			args := []any{"table", id.String(), "run", res.Run, "phase", string(res.Phase), "outcome", string(res.Outcome)}
			if err != nil {
				log.Warn("an open run could not be brought on", append(args, "error", err.Error())...)
				return
			}
			log.Info("an open run was brought on", args...)
		},
		Purged: func(files int, bytes int64) {
			if files > 0 {
				log.Info("files were purged from the trash", "files", files, "bytes", bytes)
			}
		},
		Trouble: func(id iceberg.TableID, err error) {
			log.Warn("state that cannot be read", "table", id.String(), "error", err.Error())
		},
	}
}

// commitsOf are the commits that were tried.
func commitsOf(r ops.Result) []*commit.Result {
	var out []*commit.Result
	for _, p := range r.Parts {
		if p.Commit != nil {
			out = append(out, p.Commit)
		}
	}
	if len(r.Parts) == 0 && r.Commit != nil {
		out = append(out, r.Commit)
	}
	return out
}

func logAt(log *slog.Logger, level slog.Level, text string, args []any) {
	switch level {
	case slog.LevelDebug:
		log.Debug(text, args...)
	case slog.LevelError:
		log.Error(text, args...)
	default:
		log.Info(text, args...)
	}
}

// Measured counts events in reg as seaice_*. Tables are no labels: a cluster has
// too many.
func Measured(reg prometheus.Registerer) Events {
	f := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "seaice_" + name, Help: help}, labels)
	}
	runs := counter("runs_total", "Operations that ended, by operation and status.", "op", "status")
	attempts := counter("commit_attempts_total", "Swaps that were prepared, by operation.", "op")
	commits := counter("commits_total", "Commits by operation and outcome.", "op", "outcome")
	rebases := counter("rebases_total", "Attempts that were rebuilt on a head that had moved.", "op")
	read := counter("bytes_read_total", "Bytes of table files read.", "op")
	written := counter("bytes_written_total", "Bytes of table files written.", "op")
	removed := counter("removed_files_total", "Files moved to the trash or purged.", "op")
	removedBytes := counter("removed_bytes_total", "Bytes of files moved to the trash or purged.", "op")
	purged := f.NewCounter(prometheus.CounterOpts{Name: "seaice_purged_files_total", Help: "Files that went for good from the trash."})
	purgedBytes := f.NewCounter(prometheus.CounterOpts{Name: "seaice_purged_bytes_total", Help: "Bytes of files that went for good from the trash."})
	resolved := counter("resolved_runs_total", "Open runs of others that were brought on, by phase.", "phase")
	seconds := f.NewHistogramVec(prometheus.HistogramOpts{
		Name: "seaice_run_seconds", Help: "Time of operations that did something or failed.",
		Buckets: []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600},
	}, []string{"op"})
	active := f.NewGauge(prometheus.GaugeOpts{Name: "seaice_running", Help: "Operations at work."})
	return Events{
		Begin: func(ops.Result) { active.Inc() },
		End: func(r ops.Result) {
			active.Dec()
			op := string(r.Operation)
			runs.WithLabelValues(op, string(r.Status)).Inc()
			if r.Status != ops.NothingToDo {
				seconds.WithLabelValues(op).Observe(r.Ended.Sub(r.Started).Seconds())
			}
			for _, c := range commitsOf(r) {
				attempts.WithLabelValues(op).Add(float64(c.Attempts))
				rebases.WithLabelValues(op).Add(float64(c.Rebases))
				commits.WithLabelValues(op, c.Outcome.String()).Inc()
			}
			if a := r.Actual; a != nil {
				read.WithLabelValues(op).Add(float64(a.BytesRead))
				written.WithLabelValues(op).Add(float64(a.BytesWritten))
				removed.WithLabelValues(op).Add(float64(a.RemovedFiles))
				removedBytes.WithLabelValues(op).Add(float64(a.RemovedBytes))
			}
		},
		Purged: func(files int, bytes int64) {
			purged.Add(float64(files))
			purgedBytes.Add(float64(bytes))
		},
		Resolved: func(_ iceberg.TableID, res journal.Resolution, _ error) {
			resolved.WithLabelValues(string(res.Phase)).Inc()
		},
	}
}
