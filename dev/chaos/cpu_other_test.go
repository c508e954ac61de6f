//go:build unix && !linux

package chaos

import "testing"

// limitCPU is for Linux alone.
func limitCPU(t *testing.T, _ int, _ float64) {
	t.Helper()
	t.Fatal("shares of a core are for Linux: leave -chaos.cpu out")
}
