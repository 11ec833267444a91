package config

import (
	"fmt"
	"slices"
	"strings"
)

// Operation is the wire name of an operation, Iceberg's own procedure name.
type Operation string

// The operations.
const (
	Deduplicate                Operation = "deduplicate"
	Compact                    Operation = "compact"
	RewritePositionDeleteFiles Operation = "rewrite_position_delete_files"
	RewriteManifests           Operation = "rewrite_manifests"
	ExpireSnapshots            Operation = "expire_snapshots"
	RemoveOrphans              Operation = "remove_orphans"
)

// AllOperations is what "all" means, in the order of execution. Rewrites come
// first so that what they replace can expire, and orphans last.
func AllOperations() []Operation {
	return []Operation{Compact, RewritePositionDeleteFiles, RewriteManifests, ExpireSnapshots, RemoveOrphans}
}

// executionOrder also has the operation that "all" leaves out.
func executionOrder() []Operation { return append([]Operation{Deduplicate}, AllOperations()...) }

// maintenanceType is the maintenance type that can switch the operation off.
func (o Operation) maintenanceType() string {
	switch o {
	case ExpireSnapshots:
		return TypeSnapshots
	case RemoveOrphans:
		return TypeOrphans
	default:
		// All rewrites go with compaction, as the built-in worker has it.
		return TypeCompaction
	}
}

// Removes reports whether the operation exists to remove files.
func (o Operation) Removes() bool { return o == ExpireSnapshots || o == RemoveOrphans }

// OperationSet is a parsed list of operations.
type OperationSet struct {
	// Operations are in the order of execution, without repetition.
	Operations []Operation
	// All: the list was "all", so an operation that cannot run is left out
	// instead of being an error.
	All bool
}

// ParseOperations reads "all" or names separated by commas. An empty text is
// "all". Case does not matter.
func ParseOperations(text string) (OperationSet, error) {
	set, reason := parseOperations(text)
	if reason != "" {
		return OperationSet{}, refuse("", []Problem{{Setting: "operations", Value: text, Reason: reason}})
	}
	return set, nil
}

func parseOperations(text string) (set OperationSet, reason string) {
	names := splitList(strings.ToLower(text))
	if len(names) == 0 && strings.TrimSpace(text) != "" {
		return set, "names no operation; " + operationNames()
	}
	if len(names) == 0 || len(names) == 1 && names[0] == "all" {
		return OperationSet{Operations: AllOperations(), All: true}, ""
	}
	var unknown []string
	asked := map[Operation]bool{}
	for _, n := range names {
		switch op := Operation(n); {
		case n == "all":
			return set, "all stands alone; leave out the other names"
		case slices.Contains(executionOrder(), op):
			asked[op] = true
		default:
			unknown = append(unknown, fmt.Sprintf("%q", n))
		}
	}
	if len(unknown) > 0 {
		return set, fmt.Sprintf("unknown operation %s; %s", strings.Join(unknown, ", "), operationNames())
	}
	for _, op := range executionOrder() {
		if asked[op] {
			set.Operations = append(set.Operations, op)
		}
	}
	return set, ""
}

func operationNames() string {
	names := []string{"all"}
	for _, op := range executionOrder() {
		names = append(names, string(op))
	}
	return "allowed are " + strings.Join(names, ", ")
}

// String is the text ParseOperations reads.
func (s OperationSet) String() string {
	if s.All {
		return "all"
	}
	names := make([]string, len(s.Operations))
	for i, op := range s.Operations {
		names[i] = string(op)
	}
	return strings.Join(names, ",")
}

// splitList splits at commas and drops white space and empty elements.
func splitList(text string) []string {
	var out []string
	for _, p := range strings.Split(text, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
