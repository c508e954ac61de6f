package sandbox_test

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// memoryPeaks returns the peak memory of this process and of its largest child, in bytes. The kernel counts for a child
// also what this process had when it started the child.
func memoryPeaks(t *testing.T) (self, child int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	match := highWater.FindSubmatch(status)
	if match == nil {
		t.Fatal("the kernel does not tell")
	}
	self, err = strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		t.Fatal(err)
	}
	return self << 10, usage.Maxrss << 10
}
