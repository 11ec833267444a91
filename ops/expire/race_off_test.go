//go:build !race

package expire_test

const raceDetector = false
