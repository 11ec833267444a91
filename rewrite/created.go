package rewrite

// CreatedBy is what files written by this program name as their writer.
func CreatedBy() string { return createdBy() }
