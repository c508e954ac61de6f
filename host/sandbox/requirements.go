package sandbox

import (
	"fmt"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasmfile"
)

// CheckStart returns an error if instances of a plugin cannot start within its limits: with more linear memory than
// limits.Memory, where zero means the default, or for a component that cannot be linked, whatever is granted. The
// memories of all core instances of a component count. Nothing is compiled, so that the plugin can be refused before
// anybody consents to it.
func CheckStart(m *wasmfile.Module, limits manifest.Limits) error {
	var need int64
	switch {
	case m.Component != nil:
		var err error
		if need, err = link.Check(m.Component); err != nil {
			return fmt.Errorf("the component cannot be used: %w", err)
		}
	case m.Memory != nil:
		need = int64(m.Memory.Min) * page
	}
	return checkStartMemory(need, limits.Or(manifest.DefaultLimits).Memory)
}

func checkStartMemory(need, most int64) error {
	if need <= most {
		return nil
	}
	return fmt.Errorf("it starts with %s of linear memory, and limits.memory is %s: build it with less memory, or raise "+
		"limits.memory in its manifest or for the plugin in hako.yaml", limit.Bytes(need), limit.Bytes(most))
}
