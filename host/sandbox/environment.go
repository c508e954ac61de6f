package sandbox

import (
	"fmt"

	"github.com/hako-run/hako/host/manifest"
)

// delayedGOGC delays the first garbage collection of a Go guest until its heap has 16 MiB instead of 4. Most calls end
// before that, and the next one starts clean.
const delayedGOGC = 400

// setting is an environment variable.
type setting struct{ name, value string }

// environment returns a guest's environment variables, all of which are settings of Go's runtime. A guest whose state
// lasts keeps its garbage too, so its collections are not delayed.
func (p *Plugin) environment(code *code) []setting {
	limit := p.spec.Limits.Memory
	// Static data is not part of Go's limit, and an eighth is left for fragmentation.
	heap := max(limit-limit/8-code.startMemory(nil), limit/4)
	settings := []setting{
		{"GOMEMLIMIT", fmt.Sprint(heap)},
		// A concurrent collection runs in goroutines of its own. They do not run while a handler computes without
		// waiting, so the collection would not end before the memory is used up.
		{"GODEBUG", "gcstoptheworld=1"},
	}
	if p.spec.State == "" || p.spec.State == manifest.StateCall {
		settings = append(settings, setting{"GOGC", fmt.Sprint(delayedGOGC)})
	}
	return settings
}
