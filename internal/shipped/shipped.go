// Package shipped is the form in which plugins are part of the program. Each is two files: NAME.wasm.gz, its compressed
// bytes, and NAME.json, its manifest, imports and exports, so that nothing is decompressed as long as no code of the
// plugin has to be compiled.
//
// Files returns the files of a plugin for the build to write, and MustRead reads them in the program.
package shipped

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hako-run/hako/host/manifest"
)

// Plugin is a host.Shipped. The build writes plugins with this package, and should not wait for package host.
type Plugin struct {
	File   string
	Module *manifest.Module
	Wasm   func() ([]byte, error)
}

const (
	codeSuffix   = ".wasm.gz"
	moduleSuffix = ".json"
)

// Files returns the files of a plugin with its manifest inside, by name. The same bytes give the same files.
func Files(name string, wasm []byte) (map[string][]byte, error) {
	module, err := manifest.Read(wasm)
	if err != nil {
		return nil, err
	}
	if _, err := module.ParseManifest(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err) // the program does not validate it again
	}
	module.Recordings = nil // whoever replays them reads the plugin
	known, err := json.Marshal(module)
	if err != nil {
		return nil, err
	}
	var code bytes.Buffer
	w, err := gzip.NewWriterLevel(&code, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(wasm); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return map[string][]byte{name + codeSuffix: code.Bytes(), name + moduleSuffix: known}, nil
}

// MustRead returns the plugins in dir of files, by name. It panics if a file cannot be read: the program is damaged.
func MustRead(files fs.FS, dir string) []Plugin {
	plugins, err := read(files, dir)
	if err != nil {
		panic(err)
	}
	return plugins
}

// Name returns the plugin's name, which is that of its file.
func (p *Plugin) Name() string { return strings.TrimSuffix(p.File, ".wasm") }

func read(files fs.FS, dir string) ([]Plugin, error) {
	names, err := fs.Glob(files, path.Join(dir, "*"+moduleSuffix))
	if err != nil {
		return nil, err
	}
	var plugins []Plugin
	for _, file := range names {
		known, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		module := new(manifest.Module)
		if err := json.Unmarshal(known, module); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(file, moduleSuffix)
		plugins = append(plugins, Plugin{
			File: path.Base(name) + ".wasm", Module: module,
			Wasm: func() ([]byte, error) { return decompress(files, name+codeSuffix) },
		})
	}
	return plugins, nil
}

func decompress(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var wasm bytes.Buffer
	if _, err := wasm.ReadFrom(r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return wasm.Bytes(), nil
}
