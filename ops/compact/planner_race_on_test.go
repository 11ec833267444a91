//go:build race

package compact_test

const raced = true
