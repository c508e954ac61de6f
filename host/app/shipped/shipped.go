// Package shipped stores plugins inside the program. Each is two files: NAME.wasm.zst, its compressed bytes, and
// NAME.json, its manifest, imports and exports, so that code is decompressed only when it has to be compiled.
//
// Plugins in the same language share its runtime, so a large plugin is the compression dictionary of the others
// (NAME.dictionary.wasm.zst): together they have less than half the size that they have one by one.
//
// The build writes the files that Files returns, and MustRead reads them in the program.
package shipped

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// Plugin is a host.Shipped. The build writes plugins with this package, and should not wait for package host.
type Plugin struct {
	File   string
	Module *wasmfile.Module
	Wasm   func() ([]byte, error)
}

const (
	codeSuffix   = ".wasm.zst"
	sharedSuffix = ".dictionary.wasm.zst"
	moduleSuffix = ".json"
	dictionaryID = 1
)

// Files returns the files of plugins, which have their manifests inside, by name. The same plugins give the same files.
func Files(plugins map[string][]byte) (map[string][]byte, error) {
	files := make(map[string][]byte)
	shared := sharedBy(plugins)
	for name, wasm := range plugins {
		known, err := describe(wasm)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", name, err)
		}
		suffix, dictionary := codeSuffix, plugins[shared]
		if name == shared {
			suffix, dictionary = sharedSuffix, nil
		}
		code, err := compress(wasm, dictionary)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", name, err)
		}
		files[name+moduleSuffix], files[name+suffix] = known, code
	}
	return files, nil
}

// sharedBy returns the plugin that is the dictionary of the others: the last by name of those that have at least half
// the size of the largest one, as plugins in Go do. For hako's own that is the one for which all together are smallest,
// weather, which requests JSON over HTTP as most of them do.
func sharedBy(plugins map[string][]byte) string {
	largest := 0
	for _, wasm := range plugins {
		largest = max(largest, len(wasm))
	}
	shared := ""
	for name, wasm := range plugins {
		if 2*len(wasm) >= largest {
			shared = max(shared, name)
		}
	}
	return shared
}

func describe(wasm []byte) ([]byte, error) {
	module, err := wasmfile.Read(wasm)
	if err != nil {
		return nil, err
	}
	if _, err := manifest.ParseModule(module); err != nil {
		return nil, fmt.Errorf("manifest: %w", err) // the program does not validate it again
	}
	module.Recordings = nil // whoever replays them reads the plugin
	return json.Marshal(module)
}

// compress uses no dictionary if it is nil.
func compress(wasm, dictionary []byte) ([]byte, error) {
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression)}
	if dictionary != nil {
		options = append(options, zstd.WithEncoderDictRaw(dictionaryID, dictionary))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return nil, err
	}
	defer encoder.Close()
	return encoder.EncodeAll(wasm, nil), nil
}

// MustRead returns the plugins in dir of files, by name. It panics if a file cannot be read: the program is damaged.
func MustRead(files fs.FS, dir string) []Plugin {
	plugins, err := read(files, dir)
	if err != nil {
		panic(err)
	}
	return plugins
}

// Name returns the plugin's name, the name of its file.
func (p *Plugin) Name() string { return strings.TrimSuffix(p.File, ".wasm") }

func read(files fs.FS, dir string) ([]Plugin, error) {
	names, err := fs.Glob(files, path.Join(dir, "*"+moduleSuffix))
	if err != nil {
		return nil, err
	}
	for i, file := range names {
		names[i] = strings.TrimSuffix(file, moduleSuffix)
	}
	slices.Sort(names) // as in Files: "a" is before "a-b", although "a-b.json" is before "a.json"
	shared, err := fs.Glob(files, path.Join(dir, "*"+sharedSuffix))
	if err != nil || len(names) > 0 && len(shared) != 1 {
		return nil, fmt.Errorf("%d plugins are dictionaries, not one: %w", len(shared), err)
	}
	plugins := make([]Plugin, 0, len(names))
	for _, name := range names {
		known, err := fs.ReadFile(files, name+moduleSuffix)
		if err != nil {
			return nil, err
		}
		module := new(wasmfile.Module)
		if err := json.Unmarshal(known, module); err != nil {
			return nil, fmt.Errorf("%s: %w", name+moduleSuffix, err)
		}
		plugins = append(plugins, Plugin{
			File: path.Base(name) + ".wasm", Module: module,
			Wasm: func() ([]byte, error) { return code(files, name, shared[0]) },
		})
	}
	return plugins, nil
}

// code returns the bytes of the plugin name. shared is the file of the dictionary.
func code(files fs.FS, name, shared string) ([]byte, error) {
	dictionary, err := decompress(files, shared, nil)
	if err != nil || name+sharedSuffix == shared {
		return dictionary, err
	}
	return decompress(files, name+codeSuffix, dictionary)
}

func decompress(files fs.FS, file string, dictionary []byte) ([]byte, error) {
	compressed, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, err
	}
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1)}
	if dictionary != nil {
		options = append(options, zstd.WithDecoderDictRaw(dictionaryID, dictionary))
	}
	decoder, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	wasm, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return wasm, nil
}
