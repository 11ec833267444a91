// Package manifests reads and writes manifest lists, data manifests and delete
// manifests without losing a field, as streams, at the scale of millions of
// entries, and decides which delete applies to which file.
//
// Reading tolerates what real writers produce; writing follows the spec. An
// entry that is carried keeps every byte this package does not have to change.
package manifests
