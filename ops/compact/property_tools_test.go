package compact

// trialTools is the engine that random tables are compacted with.
func trialTools() tools { return realTools() }
