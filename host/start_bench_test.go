package host_test

import (
	"fmt"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host"
)

func BenchmarkLoad50(b *testing.B) {
	var shipped []host.Shipped
	for i := range 50 {
		n := fmt.Sprint(i)
		shipped = append(shipped,
			host.Shipped{File: n + ".wasm",
				Wasm: guesttest.Bytes(plugin(b, "p"+n, "name: greet", "name: greet"+n, "name: wait", "name: wait"+n,
					"name: look",
					"name: look"+n))})
	}
	dir := b.TempDir()
	for b.Loop() {
		h, err := host.New(&host.Options{Shipped: shipped, CacheDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
