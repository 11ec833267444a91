//go:build !race

package rewritemanifests_test

const raced = false
