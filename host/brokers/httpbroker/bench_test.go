package httpbroker

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// BenchmarkGet measures a small GET through the broker, answered by a server on the loopback or by the cache, and the
// same with net/http's client for comparison.
func BenchmarkGet(b *testing.B) {
	s := serve(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, `{"temperature": 15}`)
	})
	for name, size := range map[string]int64{"cached": 0, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			on := newBroker(b, &Options{CacheBytes: size}, everything(s.URL))
			b.ReportAllocs()
			for b.Loop() {
				benchmarkGet(b, on, s.URL)
			}
		})
	}
	b.Run("net-http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := http.Get(s.URL)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

func benchmarkGet(b *testing.B, on *Broker, url string) {
	call := &broker.Call{Plugin: "weather"}
	resp, err := on.Do(b.Context(), call, &abi.HTTPRequest{URL: url}, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	_ = call.Close()
}
