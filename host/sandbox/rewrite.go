package sandbox

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// rewritten is a plugin after rewriting.
type rewritten struct {
	// Modules are its core modules: one, or those of a component by their IDs.
	Modules []rewrittenModule
	Digest  [sha256.Size]byte // of the rewritten plugin
	Source  [sha256.Size]byte // digest of the plugin file
	Size    int               // of the plugin file, in bytes
	// component is nil for a core module. Its modules are those of shell, which is the component with nothing of its
	// modules but the types of their imports and exports (rewrite.Declarations).
	component *component.Component
	shell     []byte
}

// rewrittenModule is a core module after rewriting. Wasm is nil if it comes from an outline.
type rewrittenModule struct {
	rewrite.Result
	Digest [sha256.Size]byte // of Wasm
	stub   []byte
}

// rewritePlugin rewrites a plugin file.
func rewritePlugin(original []byte) (*rewritten, error) {
	guest := &rewritten{Source: sha256.Sum256(original), Size: len(original)}
	if component.IsComponent(original) {
		return guest, guest.rewriteComponent(original)
	}
	module, err := rewriteModule(original, "", rewrite.MaxElements)
	if err != nil {
		return nil, err
	}
	guest.Modules, guest.Digest = []rewrittenModule{*module}, module.Digest
	return guest, nil
}

func (guest *rewritten) rewriteComponent(original []byte) error {
	decoded, err := component.Decode(original)
	if err != nil {
		return err
	}
	growth := rewrite.MaxElements / max(1, len(decoded.CoreModules()))
	guest.shell, err = component.RewriteModules(original, func(id int, source []byte) ([]byte, error) {
		module, err := rewriteModule(source, strconv.Itoa(id), growth)
		if err != nil {
			return nil, fmt.Errorf("core module %d: %w", id, err)
		}
		guest.Modules = append(guest.Modules, *module)
		return rewrite.Declarations(source)
	})
	if err != nil {
		return err
	}
	digest := sha256.New()
	digest.Write(guest.shell)
	for i := range guest.Modules {
		digest.Write(guest.Modules[i].Digest[:])
	}
	digest.Sum(guest.Digest[:0])
	guest.component, err = component.Decode(guest.shell)
	return err
}

// rewriteModule rewrites a core module, whose tables may grow by growth elements. A name that is not empty is its name
// in stack traces.
func rewriteModule(original []byte, name string, growth int) (*rewrittenModule, error) {
	result, err := rewrite.Module(original, quantum, growth)
	if err != nil {
		return nil, err
	}
	if name != "" {
		result.Wasm = rewrite.Named(result.Wasm, name)
	}
	stub, err := rewrite.Stub(result.Wasm)
	if err != nil {
		return nil, err
	}
	if name != "" {
		stub = rewrite.Named(stub, name)
	}
	return &rewrittenModule{*result, sha256.Sum256(result.Wasm), stub}, nil
}

func (p *Plugin) rewrite() (*rewritten, error) {
	original, err := p.spec.Wasm()
	if err != nil {
		return nil, fmt.Errorf("plugin %s: read: %w", p.spec.Name, err)
	}
	guest, err := rewritePlugin(original)
	if err != nil {
		return nil, p.unusable(err)
	}
	if reason := guest.unrestorable(); reason != "" {
		p.logger.Debug("each call gets a fresh instance", "reason", reason)
	}
	return guest, nil
}

// unrestorable returns why an instance cannot be restored, or "".
func (guest *rewritten) unrestorable() string {
	for i := range guest.Modules {
		if reason := guest.Modules[i].Unrestorable; reason != "" {
			return reason
		}
	}
	return ""
}

func (guest *rewritten) functions() (total int) {
	for i := range guest.Modules {
		total += guest.Modules[i].Functions
	}
	return total
}

// stubBytes is the size of the stubs, and of the rest of a component.
func (guest *rewritten) stubBytes() int {
	total := len(guest.shell)
	for i := range guest.Modules {
		total += len(guest.Modules[i].stub)
	}
	return total
}

func (guest *rewritten) operations() (total int) {
	for i := range guest.Modules {
		total += guest.Modules[i].Operations
	}
	return total
}
