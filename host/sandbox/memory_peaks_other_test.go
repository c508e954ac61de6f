//go:build !linux

package sandbox_test

import "testing"

func memoryPeaks(*testing.T) (self, child int64) { return 0, 0 }
