//go:build !race

package sandbox_test

// raceFactor is how much more memory a process uses under the race detector, at most.
const raceFactor = 1
