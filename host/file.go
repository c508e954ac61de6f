package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	httpbroker "github.com/hako-run/hako/host/broker/http"
	"github.com/hako-run/hako/host/manifest"
)

// source is where a plugin comes from: a file in a folder, or the program itself.
type source struct {
	path string
	wasm []byte // not nil: shipped
}

func (s source) shipped() bool { return s.wasm != nil }

// beside is the path of a manifest that is not inside its plugin: NAME.yaml next to NAME.wasm.
func beside(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".yaml" }

// pluginFile is what a plugin's file holds, read without running it.
type pluginFile struct {
	// wasm is the file, with the manifest inside also where it lies beside. It is nil where the rest is known from the index.
	wasm       []byte
	module     *manifest.Module
	manifest   *manifest.Manifest
	recordings *httpbroker.Recordings
}

// read reads a plugin and checks everything that can be known without running it: that it is Wasm, its manifest, the ABI that it
// speaks, and that it imports only what its manifest asks for.
func (s source) read(maxSize int64) (*pluginFile, error) {
	wasm := s.wasm
	if !s.shipped() {
		var err error
		if wasm, err = manifest.ReadFile(s.path, maxSize); err != nil {
			return nil, err
		}
	}
	return parse(wasm)
}

// parse reads a plugin's bytes.
func parse(wasm []byte) (*pluginFile, error) {
	module, err := manifest.Read(wasm)
	if err != nil {
		return nil, err
	}
	return interpret(module, wasm)
}

// interpret checks what a module says about itself. wasm may be nil.
func interpret(module *manifest.Module, wasm []byte) (*pluginFile, error) {
	if _, err := module.ABI(); err != nil && !errors.Is(err, manifest.ErrExtism) {
		return nil, err
	}
	if module.Manifest == nil {
		return nil, errNoManifest
	}
	p := &pluginFile{wasm: wasm, module: module}
	var err error
	if p.manifest, err = module.ParseManifest(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := module.CheckImports(p.manifest.Permissions); err != nil {
		return nil, err
	}
	return p, nil
}

// readRecordings reads the plugin's recordings, which may be large, for a host that replays them.
func (p *pluginFile) readRecordings() (err error) {
	p.recordings = new(httpbroker.Recordings)
	if p.module.Recordings != nil {
		p.recordings, err = httpbroker.ParseRecordings(p.module.Recordings)
	}
	return err
}

var errNoManifest = errors.New("it has no manifest: put NAME.yaml beside NAME.wasm, or pack it with hako plugin pack")
