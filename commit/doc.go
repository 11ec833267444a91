// Package commit moves a table's pointer, and is the only code that does.
//
// A Change is a pending transition as data: the state it was planned on, the
// requirements that must hold on whatever the head is by now, and Rebuild,
// which makes the next metadata on that head. Commit runs the loop: load the
// head, check the requirements, rebuild, write the metadata file, fence, swap.
// A lost swap is tried again on the new head; nothing that depends on the
// parent outlives an attempt.
//
// A commit ends in one of three outcomes. Committed is final: whatever fails
// afterwards is a warning. Refused means that it did not happen and cannot
// happen any more, and only then may staged files go. Everything else is
// Unknown: every staged file stays and the journal stays open for whoever
// resolves it.
package commit
