package sandbox_test

import (
	"encoding/json"
	"testing"

	"github.com/hako-run/hako/dev/kit/guesttest"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

func BenchmarkCall(b *testing.B) {
	engine, err := sandbox.New(&sandbox.Options{CacheDir: guesttest.CacheDir(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	plugin := engine.Load(sandbox.Spec{Name: "probe", Wasm: probe(b), Modules: []brokerModule{deniedHTTP},
		Limits: manifest.Limits{Rate: 1 << 40}})
	defer plugin.Close()
	if err := plugin.Prepare(b.Context()); err != nil { // calls before that are interpreted
		b.Fatal(err)
	}
	for _, test := range []struct{ name, tool, arguments string }{
		{"echo", "echo", `{"text":"hello"}`},
		{"structured", "structured", `{"text":"hello"}`},
		{"grow", "eat_memory", `{"n":8}`},
		{"fib", "recurse", `{"n":25}`},
	} {
		request := &abi.Request{Method: abi.CallTool, Name: test.tool, Arguments: json.RawMessage(test.arguments)}
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := plugin.Call(b.Context(), &catalog.Invocation{Request: request}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(test.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := plugin.Call(b.Context(), &catalog.Invocation{Request: request}); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
