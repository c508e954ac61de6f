package extism_test

import (
	"strings"
	"testing"
)

// BenchmarkEcho is a call with a small and a large text, there and back.
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
