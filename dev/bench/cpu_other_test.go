//go:build !unix

package bench

import (
	"testing"
	"time"
)

// cpuTime is not supported here.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	return 0
}
