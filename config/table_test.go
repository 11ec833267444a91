package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every default must be a valid value of its own setting, or refusing instead
// of clamping would refuse an untouched form.
func TestDefinitionsAreConsistent(t *testing.T) {
	seen := map[string]bool{}
	places := map[string]string{}
	for _, d := range Definitions() {
		require.False(t, seen[d.Name], "setting %s stands twice in the table", d.Name)
		seen[d.Name] = true
		require.NotEmpty(t, d.Label, d.Name)
		require.NotEmpty(t, d.Help, d.Name)
		require.True(t, strings.HasSuffix(d.Help, "."), "help of %s must be a sentence", d.Name)
		require.LessOrEqual(t, d.Min, d.Max, d.Name)
		v, said, reason := d.parse(d.Default, d.home())
		require.Empty(t, reason, "default of %s", d.Name)
		require.Equal(t, d.Default != "", said, "default of %s", d.Name)
		if said {
			require.Equal(t, d.Default, d.show(d.full(v)), "the default of %s must survive being read and shown", d.Name)
		}
		require.False(t, d.Kind == KindEnum && len(d.Options) == 0, d.Name)
		consumers := 0
		for _, used := range []bool{d.bind != nil, d.tie != nil, d.Kind == KindRules, d.Has(FormOnly)} {
			if used {
				consumers++
			}
		}
		require.Equal(t, 1, consumers, "setting %s must be read by exactly one reader", d.Name)
		require.Equal(t, d.tie != nil, d.Has(InAdminForm), d.Name)
		if d.Advanced {
			require.True(t, d.New, "%s: a field of the built-in worker may not be hidden, see WorkerForm", d.Name)
		}
		all := d.Properties
		if d.Maintenance != nil {
			all = append(append([]Place(nil), all...), *d.Maintenance)
		}
		for _, p := range all {
			require.Empty(t, places[p.Type+p.Name], "%s sets two settings", p.Name)
			places[p.Type+p.Name] = d.Name
		}
	}
}

// The built-in worker's forms, read from its source: names and defaults must
// go on meaning the same, or a saved configuration changes under its owner.
func TestBuiltInNamesAndDefaultsAreKept(t *testing.T) {
	worker := map[string]string{
		"target_file_size_mb": "256", "min_input_files": "5", "delete_target_file_size_mb": "64",
		"delete_min_input_files": "2", "delete_max_file_group_size_mb": "256", "delete_max_output_files": "8",
		"min_manifests_to_rewrite": "5", "snapshot_retention_hours": "168", "max_snapshots_to_keep": "5",
		"orphan_older_than_hours": "72", "max_commit_retries": "5", "operations": "all", "apply_deletes": "true",
		"table_properties_override": "true", "rewrite_strategy": "binpack", "sort_max_input_mb": "0",
		"sort_buffer_rows": "262144", "sort_spill_dir": "", "where": "",
	}
	admin := map[string]string{
		"bucket_filter": "", "namespace_filter": "", "table_filter": "", "resource_group_by": "none",
		"max_tables_per_resource_group": "0",
	}
	check := func(form Form, want map[string]string) {
		got := map[string]string{}
		for _, sec := range form.Sections {
			for _, f := range sec.Fields {
				if d, _ := Lookup(f.Name); !d.New {
					require.False(t, f.Advanced, "%s must not be hidden", f.Name)
					got[f.Name] = f.Default
				}
			}
		}
		require.Equal(t, want, got)
	}
	check(WorkerForm(), worker)
	check(AdminForm(), admin)
}

func TestFormsBeginValid(t *testing.T) {
	form := map[string]string{}
	for _, sec := range WorkerForm().Sections {
		for _, f := range sec.Fields {
			form[f.Name] = f.Default
		}
	}
	l, err := ReadForm(form)
	require.NoError(t, err)
	s, err := Resolve(l, "lake/sales/orders")
	require.NoError(t, err)
	d := Defaults()
	require.Equal(t, d.TargetFileBytes, s.TargetFileBytes)
	require.Equal(t, AllOperations(), s.Operations)
	require.Empty(t, s.Notes())

	admin := map[string]string{}
	for _, sec := range AdminForm().Sections {
		for _, f := range sec.Fields {
			admin[f.Name] = f.Default
		}
	}
	_, err = ResolveScope(admin, nil)
	require.NoError(t, err)
}

func TestFormsOfferChoicesForEveryEnumeration(t *testing.T) {
	for _, form := range []Form{WorkerForm(), AdminForm()} {
		for _, sec := range form.Sections {
			for _, f := range sec.Fields {
				require.Equal(t, f.Kind == KindEnum, len(f.Options) > 0, f.Name)
			}
		}
	}
}

func TestFlagsAreTheSettingsMarkedSo(t *testing.T) {
	got := map[string]bool{}
	for _, f := range Flags() {
		require.NotContains(t, f.Name, "_")
		d, ok := Lookup(f.Setting)
		require.True(t, ok)
		require.Equal(t, d.tie != nil, f.Worker)
		got[f.Setting] = true
	}
	for _, name := range []string{
		"dry_run", "memory_budget_mb", "throughput_mb_per_second", "sort_spill_max_mb", "max_delete_files",
		"max_delete_percent", "prefix_mismatch_mode", "keys", "order_by", "full_repartition", "journal_lease_minutes",
		"group_quota_mb_per_hour", "pools", "pool_budgets_mb",
	} {
		require.True(t, got[name], name)
		delete(got, name)
	}
	require.Empty(t, got)
}

func TestGoldenDocument(t *testing.T) {
	const path = "../docs/settings.md"
	got := Document()
	if os.Getenv("SEAICE_GOLDEN") == "rewrite" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the page and the table of settings differ: SEAICE_GOLDEN=rewrite go test ./config")
}
