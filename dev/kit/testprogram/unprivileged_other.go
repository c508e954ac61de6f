//go:build !linux

package testprogram

import (
	"os"
	"testing"
)

// RunUnprivileged returns false unless file modes do not restrict the user, who is root or uses Windows. Then it skips
// the test.
func RunUnprivileged(t testing.TB) bool {
	t.Helper()
	if os.Getuid() <= 0 {
		t.Skip("file modes do not restrict this user")
	}
	return false
}
