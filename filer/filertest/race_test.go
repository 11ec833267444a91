//go:build race

package filertest_test

const raceEnabled = true
