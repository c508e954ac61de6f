package host

import (
	"errors"
	"fmt"

	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
)

// source is the origin of a plugin: a file in a folder, or the program itself.
type source struct {
	path string
	// wasm and module come from a Shipped, else they are nil.
	wasm   func() ([]byte, error)
	module *wasmfile.Module
}

func (s source) shipped() bool { return s.wasm != nil }

// pluginFile is the content of a plugin's file, read without running it.
type pluginFile struct {
	// wasm is the file with its manifest embedded. It is nil if the rest is known from the index or a Shipped.
	wasm       []byte
	module     *wasmfile.Module
	manifest   *manifest.Manifest
	recordings *httpbroker.Recordings
}

// read reads a plugin and checks it without running it: the Wasm format, the manifest, the ABI, and
// that it imports only what its manifest asks for.
func (s source) read(maxSize int64) (*pluginFile, error) {
	read := s.wasm
	if !s.shipped() {
		read = func() ([]byte, error) { return manifest.ReadFile(s.path, maxSize) }
	}
	wasm, err := read()
	if err != nil {
		return nil, err
	}
	return parse(wasm)
}

// parse parses a plugin's bytes.
func parse(wasm []byte) (*pluginFile, error) {
	module, err := wasmfile.Read(wasm)
	if err != nil {
		return nil, err
	}
	return checkModule(module, wasm, tool.ParseManifest)
}

// checkModule checks the manifest, the ABI and the imports of a module. wasm may be nil.
func checkModule(module *wasmfile.Module, wasm []byte,
	parse func(*wasmfile.Module) (*manifest.Manifest, error)) (*pluginFile, error) {
	if err := module.CheckABI(); err != nil {
		return nil, err
	}
	if module.Manifest == nil {
		return nil, errNoManifest
	}
	p := &pluginFile{wasm: wasm, module: module}
	var err error
	if p.manifest, err = parse(module); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := manifest.CheckImports(module, p.manifest.Permissions); err != nil {
		return nil, err
	}
	if module.IsExtism() {
		if err := extism.Check(module, p.manifest.Tools); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// CheckFile returns why a plugin that is in none of the folders would be Broken in one, without running it.
func (h *Host) CheckFile(m *manifest.Manifest, module *wasmfile.Module) error {
	if err := sandbox.CheckStart(module, h.limitsInForce(m)); err != nil {
		return err
	}
	_, err := checkModule(module, nil, func(*wasmfile.Module) (*manifest.Manifest, error) { return m, nil })
	return err
}

// fixedConfig reports whether the guest has one configuration for all tenants.
func (p *pluginFile) fixedConfig() bool { return p.module.Component != nil || p.module.IsExtism() }

// readRecordings parses the plugin's recordings, which may be large and are only needed for replay. Those of a shipped
// plugin are in its file, which is not validated again. A plugin that makes no requests has none.
func (p *pluginFile) readRecordings(from source) (err error) {
	p.recordings = new(httpbroker.Recordings)
	recordings := p.module.Recordings
	if p.module == from.module && len(p.manifest.Permissions.HTTP) > 0 {
		wasm, err := from.wasm()
		if err != nil {
			return err
		}
		if recordings, err = wasmfile.Recordings(wasm); err != nil {
			return err
		}
	}
	if recordings != nil {
		p.recordings, err = httpbroker.ParseRecordings(recordings)
	}
	return err
}

var errNoManifest = errors.New("it has no manifest: put NAME.yaml beside NAME.wasm, or pack it with hako plugin pack")
