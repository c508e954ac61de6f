package testprogram

import (
	"os"
	"path/filepath"
	"strings"
)

// Environment prepares the environment of a TestMain whose tests run hako: what the developer has set does not decide
// them, compiled code is kept between runs, and guests have time, because they may run in the interpreter, under the race
// detector, on a busy machine.
func Environment() {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "HAKO_") || name == "MOCK_MODE" {
			os.Unsetenv(name)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	os.Setenv("HAKO_CACHE", filepath.Join(cache, "hako-test"))
	os.Setenv("HAKO_LIMITS_TIME", "10m")
	os.Setenv("HAKO_CHAT_LIMITS_TOOL_TIMEOUT", "10m")
}
