package ops

// Totals are the numbers of a table at one snapshot. Files and bytes count
// live entries; Snapshots counts the table's.
type Totals struct {
	DataFiles   int64 `json:"data-files"`
	DeleteFiles int64 `json:"delete-files"`
	Rows        int64 `json:"rows"`
	Bytes       int64 `json:"bytes"`
	Manifests   int64 `json:"manifests"`
	Snapshots   int64 `json:"snapshots"`
}

// Effects are what an operation does to a table: predicted in a plan, measured
// in a result.
type Effects struct {
	Before Totals `json:"before"`
	After  Totals `json:"after"`
	// RowsExact is false when After.Rows is an upper bound, because equality or
	// partition-scoped deletes apply.
	RowsExact bool `json:"rows-exact"`
	// BytesRead and BytesWritten are of table files, metadata included.
	BytesRead    int64 `json:"bytes-read"`
	BytesWritten int64 `json:"bytes-written"`
	// PeakMemoryBytes bounds what the run needs beyond an idle process.
	PeakMemoryBytes int64 `json:"peak-memory-bytes"`
	// RemovedFiles and RemovedBytes are what is removed now: to the trash, or
	// for good where its retention is 0.
	RemovedFiles int64 `json:"removed-files"`
	RemovedBytes int64 `json:"removed-bytes"`
	// FreedLaterBytes is what other operations can remove once snapshots that
	// still hold it have expired.
	FreedLaterBytes int64 `json:"freed-later-bytes"`
}

// Reason says why something was looked at and left alone.
type Reason struct {
	// Code is a stable name for programs: "too-young", "below-min-input-files".
	Code string `json:"code"`
	// Subject is what was left: a path, a snapshot, a partition, or a kind of
	// them when Count is more than one.
	Subject string `json:"subject"`
	// Count is how many of them there are.
	Count int64 `json:"count"`
	// Text is the reason for people, with the numbers that decided.
	Text string `json:"text"`
	// Setting is the setting that decided, if one did.
	Setting string `json:"setting,omitempty"`
}
