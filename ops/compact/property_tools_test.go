package compact

import "github.com/seaice/seaice/rewrite"

// trialTools is the engine that random tables are compacted with.
func trialTools() tools {
	t := fakeTools()
	t.merge = rewrite.Merge
	return t
}
