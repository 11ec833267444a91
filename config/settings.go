package config

import (
	"math"
	"time"
)

// Strategy says in which order a rewrite puts rows.
type Strategy string

// The strategies.
const (
	Binpack Strategy = "binpack"
	Sort    Strategy = "sort"
	ZOrder  Strategy = "zorder"
	// Auto sorts tables that declare an order and bin-packs the others.
	Auto Strategy = "auto"
)

// Verify says how a result is proved before it is committed.
type Verify string

// The proofs, see docs/design: content proves the bytes, counts only adds up,
// rows reads back, keys checks distinctness after deduplicate.
const (
	VerifyContent Verify = "content"
	VerifyCounts  Verify = "counts"
	VerifyRows    Verify = "rows"
	VerifyKeys    Verify = "keys"
)

// PrefixMismatch says what happens to an unreferenced file whose path is
// referenced under another scheme or authority.
type PrefixMismatch string

// The modes, named as Iceberg's remove_orphan_files has them.
const (
	MismatchError  PrefixMismatch = "error"
	MismatchIgnore PrefixMismatch = "ignore"
	MismatchDelete PrefixMismatch = "delete"
)

// Forever is a duration no age reaches. Properties use it for "never expire",
// often as the largest long in milliseconds.
const Forever = time.Duration(math.MaxInt64)

// Skip is an operation that was asked for and will not run, with the reason.
type Skip struct {
	Operation Operation `json:"operation"`
	Reason    string    `json:"reason"`
	Origin    Origin    `json:"origin"`
}

// Settings are the values that hold for one table. Sizes are bytes, counts
// plain numbers; a limit of 0 is no limit unless said otherwise. They are
// made by Resolve and not changed afterwards.
type Settings struct {
	// Table is "bucket/namespace/table"; empty for a check without a table.
	Table string
	// Operations will run, in this order.
	Operations []Operation
	// Skipped were asked for and will not run.
	Skipped []Skip
	// AllOperations: nobody chose single operations.
	AllOperations bool
	// Where is the partition predicate, empty for the whole table.
	Where                   string
	TablePropertiesOverride bool
	DryRun                  bool
	Branch                  string
	MaxCommitRetries        int
	Verify                  Verify
	// GCEnabled is false if the table forbids removing any file of it.
	GCEnabled bool

	SnapshotRetention    time.Duration
	MaxSnapshotsToKeep   int
	CleanExpiredMetadata bool
	KeepChangelog        bool
	OrphanOlderThan      time.Duration
	// TrashRetention 0 purges at once.
	TrashRetention   time.Duration
	FullScanInterval time.Duration
	MaxPinLifetime   time.Duration

	TargetFileBytes     int64
	MinInputFiles       int
	MinFileSizePercent  int
	MaxFileSizePercent  int
	RewriteAll          bool
	RewriteOldSpecs     bool
	Recompress          bool
	MaxRowsPerFile      int64
	MinManifests        int
	ManifestTargetBytes int64

	ApplyDeletes          bool
	DeleteFileThreshold   int
	DeleteRatioThreshold  float64
	DeleteTargetFileBytes int64
	DeleteMinInputFiles   int
	DeleteMaxGroupBytes   int64
	DeleteMaxOutputFiles  int

	ConvertEqualityDeletes bool
	RepairDeletionVectors  bool

	RewriteStrategy Strategy
	// SortOrder is an order or zorder(...); empty is the table's own.
	SortOrder           string
	SortMinOverlapDepth int
	SortBufferRows      int64
	// SortSpillDir empty is the system's temporary directory.
	SortSpillDir string
	// SortSpillMaxBytes 0 is what the disk has free.
	SortSpillMaxBytes int64
	SortMaxInputBytes int64

	MaxDeleteFiles     int64
	MaxDeletePercent   int
	PrefixMismatchMode PrefixMismatch
	JournalLease       time.Duration

	MemoryBudgetBytes        int64
	ThroughputBytesPerSecond int64
	MaxRewriteBytes          int64
	MaxFiles                 int64
	MaxPartitions            int64

	Keys            []string
	OrderBy         []string
	FullRepartition bool

	asked  OperationSet
	layers map[string][]Layer
	notes  []string
}

// Runs reports whether the operation is among those that will run.
func (s *Settings) Runs(op Operation) bool {
	for _, o := range s.Operations {
		if o == op {
			return true
		}
	}
	return false
}

// Notes are things read and left aside: form fields and properties below
// maintenance. that no setting has.
func (s *Settings) Notes() []string { return append([]string(nil), s.notes...) }
