package worker

import (
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/journal"
	"github.com/seaice/seaice/ops"
)

// Events are told what runs do. Every function may be nil. Logging, metrics and
// the admin's activities are listeners; engine code has no other way to speak.
type Events struct {
	// Begin is called before an operation is planned.
	Begin func(ops.Result)
	// Planned is called with the prediction and the reasons.
	Planned func(ops.Result)
	// End is called with the final result.
	End func(ops.Result)
	// Resolved is called for a run of somebody else that was brought on.
	Resolved func(iceberg.TableID, journal.Resolution, error)
	// Purged is called with the files and bytes that went for good.
	Purged func(files int, bytes int64)
	// Trouble is called for state of a table that cannot be read, and that the
	// run goes on without.
	Trouble func(iceberg.TableID, error)
}

func (e Events) begin(r ops.Result) {
	if e.Begin != nil {
		e.Begin(r)
	}
}

func (e Events) planned(r ops.Result) {
	if e.Planned != nil {
		e.Planned(r)
	}
}

func (e Events) end(r ops.Result) {
	if e.End != nil {
		e.End(r)
	}
}

func (e Events) resolved(id iceberg.TableID, r journal.Resolution, err error) {
	if e.Resolved != nil {
		e.Resolved(id, r, err)
	}
}

func (e Events) purged(files int, bytes int64) {
	if e.Purged != nil {
		e.Purged(files, bytes)
	}
}

func (e Events) trouble(id iceberg.TableID, err error) {
	if e.Trouble != nil {
		e.Trouble(id, err)
	}
}

// Listeners joins several listeners into one; each is called in turn.
func Listeners(all ...Events) Events {
	return Events{
		Begin: func(r ops.Result) {
			for _, e := range all {
				e.begin(r)
			}
		},
		Planned: func(r ops.Result) {
			for _, e := range all {
				e.planned(r)
			}
		},
		End: func(r ops.Result) {
			for _, e := range all {
				e.end(r)
			}
		},
		Resolved: func(id iceberg.TableID, res journal.Resolution, err error) {
			for _, e := range all {
				e.resolved(id, res, err)
			}
		},
		Purged: func(files int, bytes int64) {
			for _, e := range all {
				e.purged(files, bytes)
			}
		},
		Trouble: func(id iceberg.TableID, err error) {
			for _, e := range all {
				e.trouble(id, err)
			}
		},
	}
}
