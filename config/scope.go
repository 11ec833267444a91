package config

import "fmt"

// GroupBy is what makes tables one resource group.
type GroupBy string

// The groupings.
const (
	GroupNone            GroupBy = "none"
	GroupBucket          GroupBy = "bucket"
	GroupNamespace       GroupBy = "namespace"
	GroupBucketNamespace GroupBy = "bucket_namespace"
)

// Scope is the admin's own form: which tables are looked at and how they share
// a worker.
type Scope struct {
	// Buckets, Namespaces and Tables are wildcard patterns; empty is all.
	Buckets    []string
	Namespaces []string
	Tables     []string
	GroupBy    GroupBy
	// MaxTablesPerGroup bounds one detection; 0 is no bound.
	MaxTablesPerGroup int
	// GroupQuotaBytesPerHour bounds the input of a group; 0 is no bound.
	GroupQuotaBytesPerHour int64
	// Pools is the number of tables worked on at once, by pool.
	Pools map[string]int64
	// PoolBudgetBytes is the memory of each pool; 0 is no bound of its own.
	PoolBudgetBytes map[string]int64
}

// ResolveScope reads the admin's own form, and flags above it. Both may be
// nil. Fields it does not know are ignored, as the admin keeps values of other
// versions' forms.
func ResolveScope(form, flags map[string]string) (*Scope, error) {
	s := &Scope{}
	r := &resolver{}
	for i := range table {
		d := &table[i]
		if d.tie == nil {
			continue
		}
		candidates := []candidate{
			{Origin{Source: FromDefault}, d.home(), d.Default},
			{Origin{Source: FromForm}, d.home(), form[d.Name]},
			{Origin{Source: FromFlag}, d.home(), flags[d.Name]},
		}
		v, _ := r.pick(d, candidates)
		d.tie(s, v)
	}
	if s.GroupBy == GroupNone {
		need := func(setting string, n int64) {
			if n > 0 {
				r.problems = append(r.problems, Problem{Setting: setting, Origin: Origin{Source: FromForm}, Value: fmt.Sprint(n),
					Reason: "needs resource_group_by to be bucket, namespace or bucket_namespace"})
			}
		}
		need("max_tables_per_resource_group", int64(s.MaxTablesPerGroup))
		need("group_quota_mb_per_hour", s.GroupQuotaBytesPerHour>>20)
	}
	if err := refuse("", r.problems); err != nil {
		return nil, err
	}
	return s, nil
}

// Includes reports whether the table is to be looked at.
func (s *Scope) Includes(bucket, namespace, name string) bool {
	return s.IncludesBucket(bucket) && s.IncludesNamespace(namespace) && anyGlob(s.Tables, name)
}

// IncludesBucket reports whether any table of the bucket may be included.
func (s *Scope) IncludesBucket(bucket string) bool { return anyGlob(s.Buckets, bucket) }

// IncludesNamespace reports whether tables of a namespace of this name may be
// included.
func (s *Scope) IncludesNamespace(namespace string) bool { return anyGlob(s.Namespaces, namespace) }

// Group is the resource group of a table; empty without grouping.
func (s *Scope) Group(bucket, namespace string) string {
	switch s.GroupBy {
	case GroupBucket:
		return bucket
	case GroupNamespace:
		return namespace
	case GroupBucketNamespace:
		return bucket + "/" + namespace
	default:
		return ""
	}
}

func anyGlob(patterns []string, s string) bool {
	for _, p := range patterns {
		if glob(p, s) {
			return true
		}
	}
	return len(patterns) == 0
}
