//go:build race

package sandbox_test

// raceFactor bounds the growth of a process's memory under the race detector.
const raceFactor = 3
