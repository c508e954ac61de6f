package tool

import (
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// ParseManifest parses the manifest of a plugin file. That of a component gets its tools, except if the component lists
// them itself (Adapter.Lists).
func ParseManifest(module *wasmfile.Module) (*manifest.Manifest, error) {
	m, err := manifest.ParseModule(module)
	if err != nil || module.Component == nil {
		return m, err
	}
	adapter, err := New(module.Component, m)
	if err != nil || adapter.Lists() {
		return m, err
	}
	m, _, err = adapter.Complete(nil)
	return m, err
}
