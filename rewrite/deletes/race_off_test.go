//go:build !race

package deletes_test

const raceDetector = false
