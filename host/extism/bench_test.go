package extism_test

import (
	"strings"
	"testing"
)

// BenchmarkEcho calls a tool that returns a small or a large text.
func BenchmarkEcho(b *testing.B) {
	for name, size := range map[string]int{"small": 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			plugin := load(b, setup{wasm: guest(b)})
			arguments := object{"text": strings.Repeat("x", size)}
			text(b, plugin, "echo", arguments)
			for b.Loop() {
				text(b, plugin, "echo", arguments)
			}
		})
	}
}
