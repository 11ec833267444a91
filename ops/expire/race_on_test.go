//go:build race

package expire_test

const raceDetector = true
