package host_test

import (
	"testing"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// TestUpstreamInTheWay: a plugin that comes while an upstream server has its name, or one of its tools, is told what to
// do, and joins once the server has gone. A server that comes later finds the plugin.
func TestUpstreamInTheWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ server, tool, reason string }{
		"its name": {"hello", "other", "a connected upstream server: rename one of them"},
		"its tool": {"far", "greet", "tool greet is offered by both far and hello: remove one of them, or give one a prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			m, err := manifest.Parse([]byte("name: x\nversion: 1.0.0\ndescription: d\ntools:\n  - {name: " + test.tool +
				", description: d, inputSchema: {type: object}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			server := catalog.Source{Name: test.server, Upstream: true}
			if err := w.Catalog().Put(server, m); err != nil {
				t.Fatal(err)
			}
			w.put("hello.wasm", plugin(t, "hello"))
			w.approve("hello.wasm", nil)
			for range 2 {
				w.load()
				w.expect("hello.wasm", host.Conflict, test.reason)
			}
			w.Catalog().Remove(test.server)
			w.load()
			w.expect("hello.wasm", host.Active, "")
			if err := w.Catalog().Put(server, m); err == nil {
				t.Error("the server displaced the plugin")
			}
			w.load()
			w.expect("hello.wasm", host.Active, "")
		})
	}
}
