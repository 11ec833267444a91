package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seaice/seaice/fault"
)

const orders = "lake/sales/orders"

func maintenance(t *testing.T, bucket, table string) *MaintenanceConfig {
	t.Helper()
	m, err := ParseMaintenance([]byte(bucket), []byte(table))
	require.NoError(t, err)
	return m
}

func rules(t *testing.T, text string) []Rule {
	t.Helper()
	r, err := ParseRules(text)
	require.NoError(t, err)
	return r
}

func problems(t *testing.T, err error) []Problem {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, fault.Unsupported, fault.Of(err))
	require.NotEmpty(t, fault.Hints(err))
	return e.Problems
}

func TestPrecedenceOfEveryLayer(t *testing.T) {
	const compaction = `{"icebergCompaction":{"status":"enabled","settings":{"icebergCompaction":{"targetFileSizeMB":64}}}}`
	all := Layers{
		Form:        map[string]string{"target_file_size_mb": "16"},
		Rules:       rules(t, "lake/*/* target_file_size_mb=32"),
		Maintenance: maintenance(t, "", compaction),
		Properties:  map[string]string{"write.target-file-size-bytes": "134217728"},
		Flags:       map[string]string{"target_file_size_mb": "512"},
	}
	swapped := all
	swapped.Form = map[string]string{"target_file_size_mb": "16", "table_properties_override": "false"}
	without := func(l Layers, drop ...Source) Layers {
		for _, s := range drop {
			switch s {
			case FromForm:
				l.Form = nil
			case FromRule:
				l.Rules = nil
			case FromMaintenance:
				l.Maintenance = nil
			case FromProperty:
				l.Properties = nil
			case FromFlag:
				l.Flags = nil
			}
		}
		return l
	}
	for _, c := range []struct {
		name   string
		layers Layers
		mb     int64
		origin string
	}{
		{"flags win", all, 512, "flag"},
		{"then properties", without(all, FromFlag), 128, "table property write.target-file-size-bytes"},
		{"then maintenance", without(all, FromFlag, FromProperty), 64, "maintenance configuration targetFileSizeMB of the table"},
		{"then rules", without(all, FromFlag, FromProperty, FromMaintenance), 32, "rule line 1"},
		{"then the form", without(all, FromFlag, FromProperty, FromMaintenance, FromRule), 16, "form"},
		{"then the default", Layers{}, 256, "default"},
		{"swapped: flags win", swapped, 512, "flag"},
		{"swapped: then maintenance", without(swapped, FromFlag), 64, "maintenance configuration targetFileSizeMB of the table"},
		{"swapped: then properties", without(swapped, FromFlag, FromMaintenance), 128, "table property write.target-file-size-bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Resolve(c.layers, orders)
			require.NoError(t, err)
			require.Equal(t, c.mb<<20, s.TargetFileBytes)
			require.Equal(t, c.origin, s.origin("target_file_size_mb").String())
		})
	}
}

func TestOverrideMayComeFromARuleOrAFlag(t *testing.T) {
	l := Layers{
		Rules:       rules(t, "lake/sales/* table_properties_override=false"),
		Maintenance: maintenance(t, `{"icebergSnapshotManagement":{"status":"enabled","settings":{"icebergSnapshotManagement":{"maxSnapshotAgeHours":48}}}}`, ""),
		Properties:  map[string]string{"history.expire.max-snapshot-age-ms": "3600000"},
	}
	s, err := Resolve(l, orders)
	require.NoError(t, err)
	require.Equal(t, 48*time.Hour, s.SnapshotRetention)

	l.Flags = map[string]string{"table_properties_override": "true"}
	s, err = Resolve(l, orders)
	require.NoError(t, err)
	require.Equal(t, time.Hour, s.SnapshotRetention)
}

func TestUnitsOfProperties(t *testing.T) {
	s, err := Resolve(Layers{Properties: map[string]string{
		"write.target-file-size-bytes":         "1000",
		"write.delete.target-file-size-bytes":  " 2000 ",
		"commit.manifest.target-size-bytes":    "3000",
		"history.expire.max-snapshot-age-ms":   "90000",
		"history.expire.min-snapshots-to-keep": "7",
		"commit.retry.num-retries":             "100",
		"maintenance.min-input-files":          "9",
		"maintenance.max-rows-per-file":        "11",
		"maintenance.branch":                   "audit",
		"maintenance.verify":                   "ROWS",
		"maintenance.sort-order":               "zorder(a, b)",
		"maintenance.operations":               "rewrite_manifests, compact",
	}}, orders)
	require.NoError(t, err)
	require.Equal(t, int64(1000), s.TargetFileBytes)
	require.Equal(t, int64(2000), s.DeleteTargetFileBytes)
	require.Equal(t, int64(3000), s.ManifestTargetBytes)
	require.Equal(t, 90*time.Second, s.SnapshotRetention)
	require.Equal(t, 7, s.MaxSnapshotsToKeep)
	require.Equal(t, 100, s.MaxCommitRetries)
	require.Equal(t, 9, s.MinInputFiles)
	require.Equal(t, int64(11), s.MaxRowsPerFile)
	require.Equal(t, "audit", s.Branch)
	require.Equal(t, VerifyRows, s.Verify)
	require.Equal(t, "zorder(a, b)", s.SortOrder)
	require.Equal(t, []Operation{Compact, RewriteManifests}, s.Operations)
	require.False(t, s.AllOperations)
}

// Long.MAX_VALUE milliseconds is how engines write "never".
func TestAgeBeyondADurationIsForever(t *testing.T) {
	s, err := Resolve(Layers{Properties: map[string]string{"history.expire.max-snapshot-age-ms": fmt.Sprint(int64(math.MaxInt64))}}, orders)
	require.NoError(t, err)
	require.Equal(t, Forever, s.SnapshotRetention)
	require.Equal(t, "forever", s.text("snapshot_retention_hours"))
}

func TestUnreferencedAndNoncurrentDaysAreTwoSteps(t *testing.T) {
	s, err := Resolve(Layers{Maintenance: maintenance(t,
		`{"icebergUnreferencedFileRemoval":{"status":"enabled","settings":{"icebergUnreferencedFileRemoval":{"unreferencedDays":4,"nonCurrentDays":11}}}}`, "")}, orders)
	require.NoError(t, err)
	require.Equal(t, 4*24*time.Hour, s.OrphanOlderThan)
	require.Equal(t, 11*24*time.Hour, s.TrashRetention)
}

func TestMaintenanceOfTheTableLiesOverTheBuckets(t *testing.T) {
	bucket := `{"icebergCompaction":{"status":"enabled","settings":{"icebergCompaction":{"targetFileSizeMB":64,"strategy":"sort"}}},
		"icebergUnreferencedFileRemoval":{"status":"disabled"}}`
	table := `{"icebergCompaction":{"status":"enabled","settings":{"icebergCompaction":{"strategy":"auto"}}}}`
	s, err := Resolve(Layers{Maintenance: maintenance(t, bucket, table)}, orders)
	require.NoError(t, err)
	require.Equal(t, Auto, s.RewriteStrategy)
	require.Equal(t, int64(256<<20), s.TargetFileBytes, "a type is replaced as a whole, as the catalog merges it")
	require.False(t, s.Runs(RemoveOrphans))
}

func TestDisabledTypeStaysDisabled(t *testing.T) {
	off := maintenance(t, `{"icebergCompaction":{"status":"disabled","settings":{"icebergCompaction":{"targetFileSizeMB":1}}}}`, "")
	for _, l := range []Layers{
		{Maintenance: off},
		{Maintenance: off, Properties: map[string]string{"maintenance.operations": "all", "maintenance.enabled": "true"}},
		{Maintenance: off, Form: map[string]string{"table_properties_override": "true", "operations": "all"}},
		{Maintenance: off, Flags: map[string]string{"operations": "compact,expire_snapshots,remove_orphans,rewrite_manifests"}},
	} {
		s, err := Resolve(l, orders)
		require.NoError(t, err)
		require.Equal(t, []Operation{ExpireSnapshots, RemoveOrphans}, s.Operations)
		require.Equal(t, int64(256<<20), s.TargetFileBytes, "values of a disabled type are not used")
		for _, skip := range s.Skipped {
			require.Equal(t, "icebergCompaction is disabled in the maintenance configuration", skip.Reason)
			require.Equal(t, "maintenance configuration icebergCompaction of the bucket", skip.Origin.String())
		}
	}
}

func TestMaintenanceThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{
		`{`, `[]`, `{"icebergCompaction":{"status":"DISABLED"}}`, `{"icebergCompaction":{"status":1}}`,
		`{"icebergCompaction":{"settings":[]}}`, strings.Repeat(" ", maxMaintenanceBytes) + "{}",
	} {
		_, err := ParseMaintenance(nil, []byte(text))
		require.Error(t, err, text)
		require.Equal(t, fault.Unsupported, fault.Of(err))
		require.Contains(t, err.Error(), "of the table")
	}
	m := maintenance(t, `{"icebergCompaction":null,"icebergFuture":{"status":"enabled"}}`, " ")
	require.False(t, m.Disabled(Compact))
	var none *MaintenanceConfig
	require.False(t, none.Disabled(Compact))
}

func TestBadMaintenanceValueConcernsOneTable(t *testing.T) {
	for _, c := range []struct{ text, reason string }{
		{`{"targetFileSizeMB":-3}`, "allowed is 1 to 2147483647 MB"},
		{`{"targetFileSizeMB":2147483648}`, "allowed is 1 to 2147483647 MB"},
		{`{"targetFileSizeMB":"many"}`, "is not a whole number"},
		{`{"targetFileSizeMB":{}}`, "is not a whole number"},
		{`{"strategy":"fastest"}`, "must be one of binpack, sort, zorder, auto"},
	} {
		m := maintenance(t, "", `{"icebergCompaction":{"status":"enabled","settings":{"icebergCompaction":`+c.text+`}}}`)
		_, err := Resolve(Layers{Maintenance: m}, orders)
		ps := problems(t, err)
		require.Len(t, ps, 1, c.text)
		require.Contains(t, ps[0].Reason, c.reason)
		require.Equal(t, FromMaintenance, ps[0].Origin.Source)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.TableOnly())
	}
	m := maintenance(t, "", `{"icebergCompaction":{"status":"enabled","settings":{"icebergCompaction":{"strategy":"z-order","targetFileSizeMB":null}}}}`)
	s, err := Resolve(Layers{Maintenance: m}, orders)
	require.NoError(t, err)
	require.Equal(t, ZOrder, s.RewriteStrategy)
}

func TestObeyedWhateverElseIsSet(t *testing.T) {
	l := Layers{
		Form:       map[string]string{"table_properties_override": "false"},
		Flags:      map[string]string{"operations": "compact,expire_snapshots,remove_orphans"},
		Properties: map[string]string{"gc.enabled": "false"},
	}
	s, err := Resolve(l, orders)
	require.NoError(t, err)
	require.False(t, s.GCEnabled)
	require.Equal(t, []Operation{Compact}, s.Operations)
	require.Equal(t, []Operation{ExpireSnapshots, RemoveOrphans}, []Operation{s.Skipped[0].Operation, s.Skipped[1].Operation})
	require.Equal(t, "the table has gc.enabled=false", s.Skipped[0].Reason)

	l.Properties["maintenance.enabled"] = "FALSE"
	s, err = Resolve(l, orders)
	require.NoError(t, err)
	require.Empty(t, s.Operations)
	require.Len(t, s.Skipped, 3)

	l.Properties = map[string]string{"maintenance.enabled": "maybe", "gc.enabled": "-"}
	_, err = Resolve(l, orders)
	require.Len(t, problems(t, err), 2)
}

func TestBadPropertyNamesItselfAndSparesOtherTables(t *testing.T) {
	form := map[string]string{"target_file_size_mb": "128"}
	_, err := Resolve(Layers{Form: form, Properties: map[string]string{"write.target-file-size-bytes": "512MB"}}, orders)
	require.ErrorContains(t, err, "settings of lake/sales/orders")
	require.ErrorContains(t, err, "write.target-file-size-bytes")
	require.ErrorContains(t, err, `"512MB"`)
	require.ErrorContains(t, err, "1 to 2251799812636672 bytes")
	_, err = Resolve(Layers{Form: form}, "lake/sales/other")
	require.NoError(t, err)
}

func TestAllProblemsInOneError(t *testing.T) {
	_, err := Resolve(Layers{
		Form: map[string]string{
			"target_file_size_mb": "-5", "min_input_files": "1", "rewrite_strategy": "best", "dry_run": "perhaps",
			"delete_ratio_threshold": "NaN", "operations": "compact,vacuum", "sort_buffer_rows": "12",
			"max_commit_retries": "21", "branch": "a b", "where": "a = '\x00'", "max_delete_percent": "0",
		},
		Properties: map[string]string{"history.expire.min-snapshots-to-keep": "-1"},
		Flags:      map[string]string{"target_file_sise_mb": "1"},
	}, orders)
	ps := problems(t, err)
	var names []string
	for _, p := range ps {
		names = append(names, p.Setting)
		require.NotEmpty(t, p.Reason)
	}
	require.ElementsMatch(t, []string{
		"target_file_sise_mb", "operations", "where", "dry_run", "branch", "max_commit_retries", "max_snapshots_to_keep",
		"target_file_size_mb", "min_input_files", "delete_ratio_threshold", "rewrite_strategy", "sort_buffer_rows",
		"max_delete_percent",
	}, names)
	require.ErrorContains(t, err, `target_file_size_mb (form) = "-5" is out of range; allowed is 1 to 2147483647 MB, or 0 for the default of 256`)
	require.ErrorContains(t, err, "did you mean target_file_size_mb?")
	require.ErrorContains(t, err, "deduplicate, compact, rewrite_position_delete_files")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.False(t, e.TableOnly())
}

func TestEmptyAndZeroSayNothingWhereTheBuiltInWorkerReadsThemSo(t *testing.T) {
	zero := []string{
		"snapshot_retention_hours", "max_snapshots_to_keep", "orphan_older_than_hours", "max_commit_retries",
		"target_file_size_mb", "min_input_files", "delete_target_file_size_mb", "delete_min_input_files",
		"delete_max_file_group_size_mb", "delete_max_output_files", "sort_buffer_rows",
	}
	form := map[string]string{"operations": " ", "rewrite_strategy": "", "where": ""}
	for _, name := range zero {
		form[name] = "0"
	}
	s, err := Resolve(Layers{Form: form, Properties: map[string]string{"history.expire.max-snapshot-age-ms": "0", "write.target-file-size-bytes": ""}}, orders)
	require.NoError(t, err)
	for _, l := range s.Explain() {
		require.Equal(t, FromDefault, l.Origin.Source, l.Setting)
	}
	require.Equal(t, 168*time.Hour, s.SnapshotRetention)
	require.Equal(t, int64(262144), s.SortBufferRows)

	// The built-in worker reads 0 here as 2, not as the default.
	_, err = Resolve(Layers{Form: map[string]string{"min_manifests_to_rewrite": "0"}}, orders)
	require.ErrorContains(t, err, "min_manifests_to_rewrite")
}

func TestUnsafeAge(t *testing.T) {
	l := Layers{Flags: map[string]string{"orphan_older_than_hours": "2"}}
	_, err := Resolve(l, orders)
	require.ErrorContains(t, err, "24 to")
	l.UnsafeAge = true
	s, err := Resolve(l, orders)
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, s.OrphanOlderThan)
}

func TestWhereWithOperations(t *testing.T) {
	s, err := Resolve(Layers{Form: map[string]string{"where": "day >= '2026-01-01'"}}, orders)
	require.NoError(t, err)
	require.Equal(t, []Operation{Compact, RewritePositionDeleteFiles, RewriteManifests}, s.Operations)
	require.Len(t, s.Skipped, 2)
	require.Equal(t, FromForm, s.Skipped[0].Origin.Source)

	for _, ops := range []string{"expire_snapshots", "compact, remove_orphans"} {
		_, err = Resolve(Layers{Form: map[string]string{"where": "a = 1", "operations": ops}}, orders)
		require.ErrorContains(t, err, "where (form)", ops)
	}
	// A flag with an empty text takes the condition away.
	s, err = Resolve(Layers{Properties: map[string]string{"maintenance.where": "a = 1"}, Flags: map[string]string{"where": ""}}, orders)
	require.NoError(t, err)
	require.Empty(t, s.Where)
	require.Equal(t, AllOperations(), s.Operations)
}

func TestDeduplicateIsForTheCommandLine(t *testing.T) {
	s, err := Resolve(Layers{Flags: map[string]string{"operations": "deduplicate", "keys": "id, region", "order_by": "ts DESC", "verify": "keys", "full_repartition": "true"}}, orders)
	require.NoError(t, err)
	require.Equal(t, []Operation{Deduplicate}, s.Operations)
	require.Equal(t, []string{"id", "region"}, s.Keys)
	require.True(t, s.FullRepartition)

	for _, l := range []Layers{
		{Form: map[string]string{"operations": "deduplicate"}, Flags: map[string]string{"keys": "id"}},
		{Properties: map[string]string{"maintenance.operations": "deduplicate"}, Flags: map[string]string{"keys": "id"}},
		{Flags: map[string]string{"operations": "deduplicate"}},
		{Flags: map[string]string{"keys": "id"}},
		{Flags: map[string]string{"verify": "keys"}},
	} {
		_, err = Resolve(l, orders)
		require.Error(t, err)
	}
	require.NotContains(t, AllOperations(), Deduplicate)
}

func TestParseOperations(t *testing.T) {
	for text, want := range map[string]string{
		"":      "all",
		" ALL ": "all",
		"remove_orphans,compact, compact ,,rewrite_manifests": "compact,rewrite_manifests,remove_orphans",
		"expire_snapshots": "expire_snapshots",
		"remove_orphans,expire_snapshots,rewrite_manifests":          "rewrite_manifests,expire_snapshots,remove_orphans",
		"compact,deduplicate":                                        "deduplicate,compact",
		"Rewrite_Position_Delete_Files":                              "rewrite_position_delete_files",
		"compact,rewrite_position_delete_files,expire_snapshots":     "compact,rewrite_position_delete_files,expire_snapshots",
		"rewrite_manifests,expire_snapshots,remove_orphans,compact ": "compact,rewrite_manifests,expire_snapshots,remove_orphans",
	} {
		got, err := ParseOperations(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String(), text)
		again, err := ParseOperations(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
	for _, text := range []string{",", "all,compact", "all, deduplicate", "vacuum", "compact expire_snapshots"} {
		_, err := ParseOperations(text)
		require.Error(t, err, text)
	}
}

func TestScope(t *testing.T) {
	s, err := ResolveScope(map[string]string{
		"bucket_filter": "prod-*, staging", "table_filter": "orders_??", "resource_group_by": "BUCKET_NAMESPACE",
		"max_tables_per_resource_group": "3", "pools": "heavy=2", "left_over": "x",
	}, map[string]string{"pool_budgets_mb": "heavy=100", "group_quota_mb_per_hour": "5"})
	require.NoError(t, err)
	require.True(t, s.Includes("prod-1", "any", "orders_eu"))
	require.False(t, s.Includes("prod-1", "any", "orders_eu2"))
	require.False(t, s.Includes("dev", "any", "orders_eu"))
	require.Equal(t, "prod-1/a.b", s.Group("prod-1", "a.b"))
	require.Equal(t, 3, s.MaxTablesPerGroup)
	require.Equal(t, map[string]int64{"metadata": 2, "light": 2, "heavy": 2}, s.Pools)
	require.Equal(t, map[string]int64{"metadata": 0, "light": 0, "heavy": 100 << 20}, s.PoolBudgetBytes)
	require.Equal(t, int64(5<<20), s.GroupQuotaBytesPerHour)

	_, err = ResolveScope(map[string]string{"max_tables_per_resource_group": "3", "pools": "heavy=0,fast=1"}, nil)
	require.Len(t, problems(t, err), 2)
	_, err = ResolveScope(map[string]string{"resource_group_by": "table"}, nil)
	require.ErrorContains(t, err, "none, bucket, namespace, bucket_namespace")
}

func TestNotesNameWhatWasLeftAside(t *testing.T) {
	s, err := Resolve(Layers{
		Form:       map[string]string{"from_another_version": "1", "advanced": "true", "rules": ""},
		Properties: map[string]string{"maintenance.min-input-file": "3", "maintenance.enabled": "true", "owner": "x"},
	}, orders)
	require.NoError(t, err)
	require.Len(t, s.Notes(), 2)
	require.Contains(t, s.Notes()[0], "from_another_version")
	require.Contains(t, s.Notes()[1], "maintenance.min-input-file")
}

func TestReadFormGathersFormAndRules(t *testing.T) {
	_, err := ReadForm(map[string]string{"min_input_files": "1", "rules": "lake/a branch=x\nlake/*/* dry_run=2"})
	require.Len(t, problems(t, err), 3)
	l, err := ReadForm(map[string]string{"rules": "lake/*/* dry_run=1"})
	require.NoError(t, err)
	require.Len(t, l.Rules, 1)
}

func TestTableIDIsChecked(t *testing.T) {
	for _, id := range []string{"orders", "sales/orders", "a/b/c/d", "/b/c"} {
		_, err := Resolve(Layers{}, id)
		require.ErrorContains(t, err, "bucket/namespace/table", id)
	}
}

func TestExplain(t *testing.T) {
	s, err := Resolve(Layers{
		Form:       map[string]string{"target_file_size_mb": "512"},
		Properties: map[string]string{"write.target-file-size-bytes": "1572864"},
	}, orders)
	require.NoError(t, err)
	lines := map[string]Line{}
	for _, l := range s.Explain() {
		lines[l.Setting] = l
	}
	require.Equal(t, "target_file_size_mb = 1.5 MB, from table property write.target-file-size-bytes (over 512 from form, 256 from default)", lines["target_file_size_mb"].String())
	require.Equal(t, `where = "", from default`, lines["where"].String())
	require.NotContains(t, lines, "bucket_filter")
	j, err := json.Marshal(lines["target_file_size_mb"])
	require.NoError(t, err)
	require.JSONEq(t, `{"setting":"target_file_size_mb","value":"1.5","unit":"MB","origin":{"source":"table property","name":"write.target-file-size-bytes"},
		"overridden":[{"origin":{"source":"default"},"value":"256"},{"origin":{"source":"form"},"value":"512"}]}`, string(j))
}

// Whatever the layers hold, the answer is settings within their bounds or an
// error that names a problem; never a clamped value.
func TestResolveNeverClamps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.SampledFrom(Definitions()).Draw(rt, "setting")
		if d.bind == nil || d.Kind != KindInt && d.Kind != KindSize {
			rt.Skip("not a plain number")
		}
		n := rapid.Int64().Draw(rt, "n")
		layer := rapid.SampledFrom([]Source{FromForm, FromFlag}).Draw(rt, "layer")
		l := Layers{Form: map[string]string{d.Name: fmt.Sprint(n)}}
		if layer == FromFlag || !d.Has(InForm) {
			l = Layers{Flags: map[string]string{d.Name: fmt.Sprint(n)}}
		}
		s, err := Resolve(l, orders)
		inside := n >= d.Min && n <= d.Max || n == 0 && d.ZeroIsDefault
		if !inside {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Setting != d.Name {
				rt.Fatalf("%s=%d: %v", d.Name, n, err)
			}
			return
		}
		if err != nil {
			rt.Fatalf("%s=%d: %v", d.Name, n, err)
		}
		want := fmt.Sprint(n)
		if n == 0 && d.ZeroIsDefault {
			want = d.Default
		}
		if got := s.text(d.Name); got != want {
			rt.Fatalf("%s=%d became %s", d.Name, n, got)
		}
	})
}
