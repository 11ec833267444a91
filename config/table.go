package config

import "time"

// prop is a table property in the given unit, bounded below by 1.
func prop(name string, u Unit, most int64) []Place {
	return []Place{{Name: name, Unit: u, Min: 1, Max: most}}
}

// field is a field of the maintenance configuration; the S3 Tables API bounds
// all of them by 1 and 2^31-1.
func field(kind, name string, u Unit) *Place {
	return &Place{Name: name, Unit: u, Min: 1, Max: maxCount, Type: kind}
}

func count(to func(*Settings) *int) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = int(v.i) }
}

func whole(to func(*Settings) *int64) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = v.i }
}

func span(to func(*Settings) *time.Duration) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = time.Duration(v.i) }
}

func flag(to func(*Settings) *bool) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = v.b }
}

func text(to func(*Settings) *string) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = v.s }
}

func list(to func(*Settings) *[]string) func(*Settings, value) {
	return func(s *Settings, v value) { *to(s) = v.list }
}

const maxBytes = int64(maxMB) << 20

// table is the single source of all settings, in the order of the documents.
var table = []Definition{
	// What runs.
	{
		Name: "operations", Kind: KindOperations, Default: "all", Where: InForm, Section: SectionRuns,
		Properties: []Place{{Name: "maintenance.operations"}},
		Label:      "Operations", Placeholder: "all, or compact, expire_snapshots, ...",
		Help: "Operations to run, separated by commas: compact, rewrite_position_delete_files, rewrite_manifests, expire_snapshots, remove_orphans; or all.",
		bind: func(s *Settings, v value) { s.asked = v.ops },
	},
	{
		Name: "where", Kind: KindText, Where: InForm, Section: SectionRuns,
		Properties: []Place{{Name: "maintenance.where"}},
		Label:      "Only where", Placeholder: "region = 'us' AND dt >= '2026-03-15'",
		Help: "A condition on the partition. It restricts the rewrites; expire_snapshots and remove_orphans are left out, and naming them beside it is an error.",
		bind: text(func(s *Settings) *string { return &s.Where }),
	},
	{
		Name: "rules", Kind: KindRules, Where: InForm | WorkerWide, Section: SectionRuns, New: true,
		Label: "Rules for single tables", Placeholder: "lake/sales/* target_file_size_mb=512 rewrite_strategy=sort",
		Help: "One rule a line: bucket/namespace/table with * and ?, then setting=value. The first matching rule that names a setting decides it. # begins a comment.",
	},
	{
		Name: "dry_run", Kind: KindBool, Default: "false", Where: InForm | OwnFlag, Section: SectionRuns, New: true,
		Label: "Dry run", Help: "Plan and report, change nothing.",
		bind: flag(func(s *Settings) *bool { return &s.DryRun }),
	},
	{
		Name: "table_properties_override", Kind: KindBool, Default: "true", Where: InForm, Section: SectionRuns,
		Label: "Table properties win",
		Help:  "A table's own properties win over its S3 Tables maintenance configuration. Untick to have it the other way round.",
		bind:  flag(func(s *Settings) *bool { return &s.TablePropertiesOverride }),
	},
	{
		Name: "advanced", Kind: KindBool, Default: "false", Where: InForm | FormOnly | WorkerWide, Section: SectionRuns, New: true,
		Label: "Show advanced settings",
		Help:  "Shows the other settings. Saving while this is not ticked returns all of them to their defaults.",
	},
	{
		Name: "branch", Kind: KindName, Default: "main", Where: InForm, Section: SectionRuns, Advanced: true, New: true,
		Properties: []Place{{Name: "maintenance.branch"}},
		Label:      "Branch", Help: "The branch whose files are rewritten.",
		bind: text(func(s *Settings) *string { return &s.Branch }),
	},
	{
		Name: "max_commit_retries", Kind: KindInt, Default: "5", Min: 1, Max: 20, ZeroIsDefault: true, Where: InForm, Section: SectionRuns,
		// The property is the writers' and has no upper bound of its own.
		Properties: prop("commit.retry.num-retries", UnitNone, maxCount),
		Label:      "Commit attempts after a conflict", Help: "How often a commit is tried again on a new head. Finished work is rebased, not done again.",
		bind: count(func(s *Settings) *int { return &s.MaxCommitRetries }),
	},

	// When things expire.
	{
		Name: "snapshot_retention_hours", Kind: KindSpan, Unit: UnitHours, Default: "168", Min: 1, Max: maxHours, ZeroIsDefault: true, Where: InForm, Section: SectionExpiry,
		Properties:  prop("history.expire.max-snapshot-age-ms", UnitMillis, maxInt64),
		Maintenance: field(TypeSnapshots, "maxSnapshotAgeHours", UnitHours),
		Label:       "Keep snapshots for (hours)", Help: "Snapshots younger than this are kept. Branches and tags with their own retention follow that.",
		bind: span(func(s *Settings) *time.Duration { return &s.SnapshotRetention }),
	},
	{
		Name: "max_snapshots_to_keep", Kind: KindInt, Default: "5", Min: 1, Max: maxCount, ZeroIsDefault: true, Where: InForm, Section: SectionExpiry,
		Properties:  prop("history.expire.min-snapshots-to-keep", UnitNone, maxCount),
		Maintenance: field(TypeSnapshots, "minSnapshotsToKeep", UnitNone),
		Label:       "Snapshots always kept", Help: "This many of the latest snapshots of every branch are kept whatever their age.",
		bind: count(func(s *Settings) *int { return &s.MaxSnapshotsToKeep }),
	},
	{
		Name: "orphan_older_than_hours", Kind: KindSpan, Unit: UnitHours, Default: "72", Min: 24, Max: maxHours, ZeroIsDefault: true, Where: InForm, Section: SectionExpiry,
		Maintenance: field(TypeOrphans, "unreferencedDays", UnitDays),
		Label:       "Unreferenced files are safe for (hours)", Help: "An unreferenced file is removed only when it is older than this. Less than 24 hours would endanger files of running writers and is refused; the command line allows it with --unsafe-age.",
		bind: span(func(s *Settings) *time.Duration { return &s.OrphanOlderThan }),
	},
	{
		Name: "trash_retention_hours", Kind: KindSpan, Unit: UnitHours, Default: "240", Min: 0, Max: maxHours, Where: InForm, Section: SectionExpiry, New: true,
		Maintenance: field(TypeOrphans, "nonCurrentDays", UnitDays),
		Label:       "Keep the trash for (hours)", Help: "Removed files stay in the bucket's trash this long and can be restored. 0 purges at once.",
		bind: span(func(s *Settings) *time.Duration { return &s.TrashRetention }),
	},
	{
		Name: "clean_expired_metadata", Kind: KindBool, Default: "false", Where: InForm, Section: SectionExpiry, Advanced: true, New: true,
		Label: "Remove unused schemas and specs", Help: "With expired snapshots, also drop schemas and partition specs that nothing uses any more.",
		bind: flag(func(s *Settings) *bool { return &s.CleanExpiredMetadata }),
	},
	{
		Name: "keep_changelog", Kind: KindBool, Default: "false", Where: InForm, Section: SectionExpiry, Advanced: true, New: true,
		Label: "Keep files a changelog needs", Help: "Keep files that a retained snapshot deleted, so that changes can be read from the oldest retained snapshot on.",
		bind: flag(func(s *Settings) *bool { return &s.KeepChangelog }),
	},
	{
		Name: "full_scan_interval_hours", Kind: KindSpan, Unit: UnitHours, Default: "168", Min: 1, Max: maxHours, Where: InForm, Section: SectionExpiry, Advanced: true, New: true,
		Label: "Full orphan scan every (hours)", Help: "In between, only files the filer's change feed names are looked at.",
		bind: span(func(s *Settings) *time.Duration { return &s.FullScanInterval }),
	},
	{
		Name: "max_pin_lifetime_hours", Kind: KindSpan, Unit: UnitHours, Default: "720", Min: 1, Max: maxHours, Where: InForm, Section: SectionExpiry, Advanced: true, New: true,
		Label: "Longest life of a pin (hours)", Help: "A pin keeps the history a long job needs. It cannot be renewed beyond this.",
		bind: span(func(s *Settings) *time.Duration { return &s.MaxPinLifetime }),
	},

	// File sizes.
	{
		Name: "target_file_size_mb", Kind: KindSize, Unit: UnitMB, Default: "256", Min: 1, Max: maxMB, ZeroIsDefault: true, Where: InForm, Section: SectionSizes,
		Properties:  prop("write.target-file-size-bytes", UnitBytes, maxBytes),
		Maintenance: field(TypeCompaction, "targetFileSizeMB", UnitMB),
		Label:       "Target file size (MB)", Help: "The size of new data files.",
		bind: whole(func(s *Settings) *int64 { return &s.TargetFileBytes }),
	},
	{
		Name: "min_input_files", Kind: KindInt, Unit: UnitFiles, Default: "5", Min: 2, Max: maxCount, ZeroIsDefault: true, Where: InForm, Section: SectionSizes,
		Properties: []Place{{Name: "maintenance.min-input-files", Unit: UnitFiles, Min: 2, Max: maxCount}},
		Label:      "Fewest files worth a rewrite", Help: "A group of small files is rewritten when it has at least this many, or when its deletes ask for it.",
		bind: count(func(s *Settings) *int { return &s.MinInputFiles }),
	},
	{
		Name: "min_file_size_percent", Kind: KindInt, Unit: UnitPercent, Default: "75", Min: 1, Max: 99, Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Label: "Small below (% of target)", Help: "A file below this share of the target size is a candidate.",
		bind: count(func(s *Settings) *int { return &s.MinFileSizePercent }),
	},
	{
		Name: "max_file_size_percent", Kind: KindInt, Unit: UnitPercent, Default: "180", Min: 101, Max: 10000, Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Label: "Oversized above (% of target)", Help: "A file above this share of the target size is split.",
		bind: count(func(s *Settings) *int { return &s.MaxFileSizePercent }),
	},
	{
		Name: "rewrite_all", Kind: KindBool, Default: "false", Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Label: "Rewrite every file", Help: "Every data file is a candidate, whatever its size.",
		bind: flag(func(s *Settings) *bool { return &s.RewriteAll }),
	},
	{
		Name: "rewrite_old_specs", Kind: KindBool, Default: "false", Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Label: "Rewrite files of old partition specs", Help: "Files written under an earlier partition spec are rewritten into the current one.",
		bind: flag(func(s *Settings) *bool { return &s.RewriteOldSpecs }),
	},
	{
		Name: "recompress", Kind: KindBool, Default: "false", Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Label: "Recompress to the table's level", Help: "Files in another compression level are candidates and are recompressed.",
		bind: flag(func(s *Settings) *bool { return &s.Recompress }),
	},
	{
		Name: "max_rows_per_file", Kind: KindInt, Unit: UnitRows, Default: "0", Min: 0, Max: maxInt64, Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Properties: prop("maintenance.max-rows-per-file", UnitRows, maxInt64),
		Label:      "Most rows of a file", Help: "A hard limit for new data files. 0 is none.",
		bind: whole(func(s *Settings) *int64 { return &s.MaxRowsPerFile }),
	},
	{
		Name: "min_manifests_to_rewrite", Kind: KindInt, Default: "5", Min: 2, Max: maxCount, Where: InForm, Section: SectionSizes,
		Label: "Fewest manifests worth a rewrite", Help: "Manifests are merged when at least this many are worth it.",
		bind: count(func(s *Settings) *int { return &s.MinManifests }),
	},
	{
		Name: "manifest_target_size_mb", Kind: KindSize, Unit: UnitMB, Default: "8", Min: 1, Max: 2048, ZeroIsDefault: true, Where: InForm, Section: SectionSizes, Advanced: true, New: true,
		Properties: prop("commit.manifest.target-size-bytes", UnitBytes, maxBytes),
		Label:      "Target manifest size (MB)", Help: "The size of new manifests.",
		bind: whole(func(s *Settings) *int64 { return &s.ManifestTargetBytes }),
	},

	// Deletes.
	{
		Name: "apply_deletes", Kind: KindBool, Default: "true", Where: InForm, Section: SectionDeletes,
		Label: "Apply deletes", Help: "Compaction applies deletes to the files it rewrites. Unticked, files with deletes are left alone.",
		bind: flag(func(s *Settings) *bool { return &s.ApplyDeletes }),
	},
	{
		Name: "delete_file_threshold", Kind: KindInt, Unit: UnitFiles, Default: "5", Min: 1, Max: maxCount, Where: InForm, Section: SectionDeletes, Advanced: true, New: true,
		Label: "Deletes that make a file a candidate", Help: "A data file with at least this many delete files is rewritten whatever its size.",
		bind: count(func(s *Settings) *int { return &s.DeleteFileThreshold }),
	},
	{
		Name: "delete_ratio_threshold", Kind: KindRatio, Default: "0.3", Min: 1, Max: 1000, Where: InForm, Section: SectionDeletes, Advanced: true, New: true,
		Label: "Deleted share that makes a file a candidate", Help: "A data file is rewritten when this share of its rows is deleted; 1 is all rows.",
		bind: func(s *Settings, v value) { s.DeleteRatioThreshold = v.f },
	},
	{
		Name: "delete_target_file_size_mb", Kind: KindSize, Unit: UnitMB, Default: "64", Min: 1, Max: maxMB, ZeroIsDefault: true, Where: InForm, Section: SectionDeletes,
		Properties: prop("write.delete.target-file-size-bytes", UnitBytes, maxBytes),
		Label:      "Target size of delete files (MB)", Help: "The size of new position delete files.",
		bind: whole(func(s *Settings) *int64 { return &s.DeleteTargetFileBytes }),
	},
	{
		Name: "delete_min_input_files", Kind: KindInt, Unit: UnitFiles, Default: "2", Min: 2, Max: maxCount, ZeroIsDefault: true, Where: InForm, Section: SectionDeletes,
		Label: "Fewest delete files worth a rewrite", Help: "Delete files are merged when a group has at least this many and fewer come out.",
		bind: count(func(s *Settings) *int { return &s.DeleteMinInputFiles }),
	},
	{
		Name: "delete_max_file_group_size_mb", Kind: KindSize, Unit: UnitMB, Default: "256", Min: 1, Max: maxMB, ZeroIsDefault: true, Where: InForm, Section: SectionDeletes,
		Label: "Largest group of delete files (MB)", Help: "Delete files are merged in groups of at most this size.",
		bind: whole(func(s *Settings) *int64 { return &s.DeleteMaxGroupBytes }),
	},
	{
		Name: "delete_max_output_files", Kind: KindInt, Unit: UnitFiles, Default: "8", Min: 1, Max: maxCount, ZeroIsDefault: true, Where: InForm, Section: SectionDeletes,
		Label: "Most new delete files of a group", Help: "A group that would need more new delete files than this is left alone.",
		bind: count(func(s *Settings) *int { return &s.DeleteMaxOutputFiles }),
	},
	{
		Name: "convert_equality_deletes", Kind: KindBool, Default: "false", Where: InForm, Section: SectionDeletes, Advanced: true, New: true,
		Label: "Convert equality deletes", Help: "Turn equality deletes into position deletes or deletion vectors, which readers apply faster.",
		bind: flag(func(s *Settings) *bool { return &s.ConvertEqualityDeletes }),
	},
	{
		Name: "repair_deletion_vectors", Kind: KindBool, Default: "false", Where: InForm, Section: SectionDeletes, Advanced: true, New: true,
		Label: "Repair deletion vectors", Help: "Rewrite deletion vectors whose metadata contradicts their content, where the content is certain.",
		bind: flag(func(s *Settings) *bool { return &s.RepairDeletionVectors }),
	},

	// Layout.
	{
		Name: "rewrite_strategy", Kind: KindEnum, Default: "binpack", Where: InForm, Section: SectionLayout,
		Options: []Option{
			{Value: string(Binpack), Label: "binpack: keep the order of rows"},
			{Value: string(Sort), Label: "sort: by the sort order"},
			{Value: string(ZOrder), Label: "zorder: interleave several columns"},
			{Value: string(Auto), Label: "auto: sort tables that declare an order"},
		},
		Maintenance: &Place{Name: "strategy", Type: TypeCompaction},
		Label:       "Strategy", Help: "How compaction orders rows.",
		bind: func(s *Settings, v value) { s.RewriteStrategy = Strategy(v.s) },
	},
	{
		Name: "sort_order", Kind: KindText, Where: InForm, Section: SectionLayout, New: true,
		Properties: []Place{{Name: "maintenance.sort-order"}},
		Label:      "Sort order", Placeholder: "a ASC NULLS LAST, bucket(8, b)   or   zorder(a, b)",
		Help: "The order to sort by. Empty is the table's own.",
		bind: text(func(s *Settings) *string { return &s.SortOrder }),
	},
	{
		Name: "sort_min_overlap_depth", Kind: KindInt, Unit: UnitFiles, Default: "4", Min: 1, Max: maxCount, Where: InForm, Section: SectionLayout, Advanced: true, New: true,
		Label: "Overlap worth a sort", Help: "Files are sorted again where a point lookup would have to open at least this many.",
		bind: count(func(s *Settings) *int { return &s.SortMinOverlapDepth }),
	},
	{
		Name: "sort_buffer_rows", Kind: KindInt, Unit: UnitRows, Default: "262144", Min: 1024, Max: maxCount, ZeroIsDefault: true, Where: InForm, Section: SectionLayout,
		Label: "Rows sorted in memory", Help: "At most this many rows are sorted in memory before a run is spilled; the memory budget holds as well.",
		bind: whole(func(s *Settings) *int64 { return &s.SortBufferRows }),
	},
	{
		Name: "sort_spill_dir", Kind: KindText, Where: InForm, Section: SectionLayout,
		Label: "Spill directory", Help: "Where a sort puts its temporary runs. Empty is the system's temporary directory.",
		bind: text(func(s *Settings) *string { return &s.SortSpillDir }),
	},
	{
		Name: "sort_max_input_mb", Kind: KindSize, Unit: UnitMB, Default: "0", Min: 0, Max: maxMB, Where: InForm, Section: SectionLayout,
		Label: "Largest sort (MB)", Help: "The most input of one sort. 0 is no limit of its own.",
		bind: whole(func(s *Settings) *int64 { return &s.SortMaxInputBytes }),
	},
	{
		Name: "sort_spill_max_mb", Kind: KindSize, Unit: UnitMB, Default: "0", Min: 0, Max: maxMB, Where: InForm | OwnFlag, Section: SectionLayout, Advanced: true, New: true,
		Label: "Most spilled (MB)", Help: "The most disk space a sort may use. 0 is what the disk has free.",
		bind: whole(func(s *Settings) *int64 { return &s.SortSpillMaxBytes }),
	},

	// Safety.
	{
		Name: "verify", Kind: KindEnum, Default: "content", Where: InForm, Section: SectionSafety, New: true,
		Options: []Option{
			{Value: string(VerifyContent), Label: "content: every value, without reading back"},
			{Value: string(VerifyCounts), Label: "counts: rows and deletes add up"},
			{Value: string(VerifyRows), Label: "rows: read the stored files back and compare"},
			{Value: string(VerifyKeys), Label: "keys: scan for full distinctness after deduplicate", CommandLineOnly: true},
		},
		Properties: []Place{{Name: "maintenance.verify"}},
		Label:      "Proof before commit", Help: "What is proved of every result before it is committed.",
		bind: func(s *Settings, v value) { s.Verify = Verify(v.s) },
	},
	{
		Name: "max_delete_files", Kind: KindInt, Unit: UnitFiles, Default: "0", Min: 0, Max: maxInt64, Where: InForm | OwnFlag, Section: SectionSafety, New: true,
		Label: "Most files removed per run", Help: "remove_orphans stops at this many files of a table. 0 is no limit.",
		bind: whole(func(s *Settings) *int64 { return &s.MaxDeleteFiles }),
	},
	{
		Name: "max_delete_percent", Kind: KindInt, Unit: UnitPercent, Default: "20", Min: 1, Max: 100, Where: InForm | OwnFlag, Section: SectionSafety, New: true,
		Label: "Most of a table's files removed per run (%)", Help: "remove_orphans refuses to remove a larger share of the files found.",
		bind: count(func(s *Settings) *int { return &s.MaxDeletePercent }),
	},
	{
		Name: "prefix_mismatch_mode", Kind: KindEnum, Default: "error", Where: InForm | OwnFlag, Section: SectionSafety, Advanced: true, New: true,
		Options: []Option{
			{Value: string(MismatchError), Label: "error: stop"},
			{Value: string(MismatchIgnore), Label: "ignore: keep the file"},
			{Value: string(MismatchDelete), Label: "delete: remove the file"},
		},
		Label: "Same path under another scheme", Help: "What to do with an unreferenced file whose path is referenced under another scheme or authority.",
		bind: func(s *Settings, v value) { s.PrefixMismatchMode = PrefixMismatch(v.s) },
	},
	{
		Name: "journal_lease_minutes", Kind: KindSpan, Unit: UnitMinutes, Default: "10", Min: 1, Max: 1440, Where: OwnFlag, Section: SectionSafety, New: true,
		Label: "Journal lease (minutes)", Help: "How long a run's journal is its own without being renewed.",
		bind: span(func(s *Settings) *time.Duration { return &s.JournalLease }),
	},

	// Resources.
	{
		Name: "memory_budget_mb", Kind: KindSize, Unit: UnitMB, Default: "256", Min: 16, Max: maxMB, ZeroIsDefault: true, Where: InForm | OwnFlag | WorkerWide, Section: SectionResources, New: true,
		Label: "Memory budget (MB)", Help: "The most memory the work of one worker may take.",
		bind: whole(func(s *Settings) *int64 { return &s.MemoryBudgetBytes }),
	},
	{
		Name: "throughput_mb_per_second", Kind: KindSize, Unit: UnitMBPerSecond, Default: "0", Min: 0, Max: maxCount, Where: InForm | OwnFlag | WorkerWide, Section: SectionResources, New: true,
		Label: "Throughput (MB/s)", Help: "The most bytes a worker reads and writes a second. 0 is no limit.",
		bind: whole(func(s *Settings) *int64 { return &s.ThroughputBytesPerSecond }),
	},
	{
		Name: "max_rewrite_mb", Kind: KindSize, Unit: UnitMB, Default: "0", Min: 0, Max: maxMB, Where: InForm, Section: SectionResources, Advanced: true, New: true,
		Label: "Most rewritten per run (MB)", Help: "The most input of one run on a table; the rest follows in the next. 0 is no limit.",
		bind: whole(func(s *Settings) *int64 { return &s.MaxRewriteBytes }),
	},
	{
		Name: "max_files", Kind: KindInt, Unit: UnitFiles, Default: "0", Min: 0, Max: maxCount, Where: InForm, Section: SectionResources, Advanced: true, New: true,
		Label: "Most files per run", Help: "The most input files of one run on a table. 0 is no limit.",
		bind: whole(func(s *Settings) *int64 { return &s.MaxFiles }),
	},
	{
		Name: "max_partitions", Kind: KindInt, Default: "0", Min: 0, Max: maxCount, Where: InForm, Section: SectionResources, Advanced: true, New: true,
		Label: "Most partitions per run", Help: "The most partitions of one run on a table. 0 is no limit.",
		bind: whole(func(s *Settings) *int64 { return &s.MaxPartitions }),
	},

	// The admin's own form: which tables, and how they share.
	{
		Name: "bucket_filter", Kind: KindList, Where: InAdminForm, Section: SectionScope,
		Label: "Buckets", Placeholder: "prod-*, staging-*", Help: "Table buckets to look at, with * and ?, separated by commas. Empty is all.",
		tie: func(s *Scope, v value) { s.Buckets = v.list },
	},
	{
		Name: "namespace_filter", Kind: KindList, Where: InAdminForm, Section: SectionScope,
		Label: "Namespaces", Placeholder: "analytics, events-*", Help: "Namespaces to look at, with * and ?, separated by commas. Empty is all.",
		tie: func(s *Scope, v value) { s.Namespaces = v.list },
	},
	{
		Name: "table_filter", Kind: KindList, Where: InAdminForm, Section: SectionScope,
		Label: "Tables", Placeholder: "clicks, orders-*", Help: "Tables to look at, with * and ?, separated by commas. Empty is all.",
		tie: func(s *Scope, v value) { s.Tables = v.list },
	},
	{
		Name: "resource_group_by", Kind: KindEnum, Default: "none", Where: InAdminForm, Section: SectionGroups,
		Options: []Option{
			{Value: string(GroupNone), Label: "none"},
			{Value: string(GroupBucket), Label: "bucket"},
			{Value: string(GroupNamespace), Label: "namespace"},
			{Value: string(GroupBucketNamespace), Label: "bucket and namespace"},
		},
		Label: "Share work between", Help: "Groups take turns, so that one busy bucket or namespace does not hold up the others.",
		tie: func(s *Scope, v value) { s.GroupBy = GroupBy(v.s) },
	},
	{
		Name: "max_tables_per_resource_group", Kind: KindInt, Default: "0", Min: 0, Max: maxCount, Where: InAdminForm, Section: SectionGroups,
		Label: "Most tables of a group per detection", Help: "0 is no limit. Needs a grouping.",
		tie: func(s *Scope, v value) { s.MaxTablesPerGroup = int(v.i) },
	},
	{
		Name: "group_quota_mb_per_hour", Kind: KindSize, Unit: UnitMBPerHour, Default: "0", Min: 0, Max: maxMB, Where: InAdminForm | OwnFlag, Section: SectionGroups, New: true,
		Label: "Quota of a group (MB per hour)", Help: "The most input rewritten for one group in an hour. 0 is no limit. Needs a grouping.",
		tie: func(s *Scope, v value) { s.GroupQuotaBytesPerHour = v.i },
	},
	{
		Name: "pools", Kind: KindPools, Default: "metadata=2,light=2,heavy=1", Min: 1, Max: 256, Where: InAdminForm | OwnFlag, Section: SectionGroups, New: true,
		Label: "Pool sizes", Help: "How many tables a worker works on at once: metadata (manifests, expiry, orphans), light (small rewrites), heavy (large ones and sorts).",
		tie: func(s *Scope, v value) { s.Pools = v.pools },
	},
	{
		Name: "pool_budgets_mb", Kind: KindPools, Default: "metadata=0,light=0,heavy=0", Min: 0, Max: maxMB, Unit: UnitMB, Where: InAdminForm | OwnFlag, Section: SectionGroups, New: true,
		Label: "Pool memory (MB)", Help: "The most memory of a pool within the worker's budget. 0 is no limit of its own.",
		tie: func(s *Scope, v value) { s.PoolBudgetBytes = v.pools },
	},

	// The command line only.
	{
		Name: "keys", Kind: KindList, Where: OwnFlag, Section: SectionDeduplicate, New: true,
		Label: "Keys", Help: "The columns whose equal values make two rows the same, separated by commas.",
		bind: list(func(s *Settings) *[]string { return &s.Keys }),
	},
	{
		Name: "order_by", Kind: KindList, Where: OwnFlag, Section: SectionDeduplicate, New: true,
		Label: "Order", Help: "Which of equal rows stays: the first in this order. Empty is partition, file path and row.",
		bind: list(func(s *Settings) *[]string { return &s.OrderBy }),
	},
	{
		Name: "full_repartition", Kind: KindBool, Default: "false", Where: OwnFlag, Section: SectionDeduplicate, New: true,
		Label: "Over partitions", Help: "Also find equal rows in different partitions.",
		bind: flag(func(s *Settings) *bool { return &s.FullRepartition }),
	},
}
