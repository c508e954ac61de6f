//go:build !race

package sandbox_test

// raceFactor is how much more memory a process takes under the race detector, at most.
const raceFactor = 1
