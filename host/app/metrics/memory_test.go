package metrics_test

import (
	"regexp"
	"runtime"
	"strconv"
	"testing"
)

// TestMemoryKinds scrapes the memory of this process by kind.
func TestMemoryKinds(t *testing.T) {
	t.Parallel()
	text := scrape(t, filled(t))
	got := map[string]float64{}
	for _, match := range regexp.MustCompile(`(?m)^hako_memory_bytes\{kind="(\w+)"\} (\S+)$`).FindAllStringSubmatch(text, -1) {
		bytes, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		got[match[1]] = bytes
	}
	const mib = 1 << 20
	if got["heap"] < mib || got["runtime"] < mib || got["heap"] > 1024*mib {
		t.Errorf("bytes by kind: %v", got)
	}
	kinds := 4
	if runtime.GOOS == "linux" {
		kinds = 5
		if got["program"] < mib {
			t.Errorf("the program has %v resident bytes", got["program"])
		}
	}
	if len(got) != kinds {
		t.Errorf("%d kinds, want %d: %v", len(got), kinds, got)
	}
}
