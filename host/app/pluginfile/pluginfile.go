// Package pluginfile reads, reviews and writes plugin files and the folders that they are built from. It is for
// commands that work with files; the host loads plugins itself.
//
// Read parses a file with its manifest, Review looks for mistakes, Download reads a file from a URL or a registry, Pack
// embeds a manifest, and NewFolder starts a new plugin.
package pluginfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/app/gobuild"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/extism"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/abi"
)

// Read reads a plugin file of at most maxSize bytes with its manifest.
func Read(file string, maxSize int64) (m *manifest.Manifest, module *wasmfile.Module, wasm []byte, err error) {
	if wasm, err = manifest.ReadFile(file, maxSize); err != nil {
		return nil, nil, nil, err
	}
	m, module, err = Parse(wasm)
	return m, module, wasm, err
}

// Parse parses a plugin with its manifest inside.
func Parse(wasm []byte) (*manifest.Manifest, *wasmfile.Module, error) {
	module, err := wasmfile.Read(wasm)
	if err != nil {
		return nil, nil, err
	}
	if module.Manifest == nil {
		return nil, nil, errNoManifest
	}
	m, err := tool.ParseManifest(module)
	if err != nil {
		return nil, nil, fmt.Errorf("manifest:\n%w", err)
	}
	if module.IsExtism() {
		return m, module, extism.Check(module, m.Tools)
	}
	return m, module, nil
}

// errNoManifest is the error of a module without a manifest inside.
var errNoManifest = errors.New("it has no manifest: put NAME.yaml beside NAME.wasm, or pack it with hako plugin pack")

// Pack embeds a manifest, which must be valid, into a module, writes the result to out and returns it.
func Pack(wasmFile, manifestFile, out string) (wasm []byte, err error) {
	text, err := os.ReadFile(manifestFile)
	if err != nil {
		return nil, err
	}
	if wasm, err = os.ReadFile(wasmFile); err != nil {
		return nil, err
	}
	sections := map[string][]byte{abi.ManifestSection: text}
	if wasm, err = wasmfile.Embed(wasm, sections); err != nil {
		return nil, fmt.Errorf("pack %s: %w", wasmFile, err)
	}
	module, err := wasmfile.Read(wasm)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", wasmFile, err)
	}
	if _, err := tool.ParseManifest(module); err != nil {
		return nil, fmt.Errorf("%s:\n%w", manifestFile, err)
	}
	return wasm, Place(out, wasm)
}

// Source is the contents of a plugin's folder besides code.
type Source struct {
	// Name is the plugin's name.
	Name string
	// Sections are the custom sections to embed, by name.
	Sections map[string][]byte
}

// ReadSource reads the manifest and the recordings in dir. The manifest must be valid; it is manifest.yaml or NAME.yaml
// in a dir NAME, or manifestFile if that is not empty.
func ReadSource(dir, manifestFile string) (*Source, error) {
	parse := manifest.Parse
	if isComponent(dir) {
		parse = manifest.ParseComponent
	}
	candidates := []string{filepath.Join(dir, "manifest.yaml"), filepath.Join(dir, filepath.Base(dir)+".yaml")}
	if manifestFile != "" {
		candidates = []string{manifestFile}
	}
	text, m, err := readManifest(parse, candidates...)
	if err != nil {
		return nil, err
	}
	recordings, err := os.ReadFile(filepath.Join(dir, "recordings.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Source{m.Name, map[string][]byte{abi.ManifestSection: text, abi.RecordingsSection: recordings}}, nil
}

// readManifest reads the first of the files that exists.
func readManifest(parse func([]byte) (*manifest.Manifest, error), candidates ...string) ([]byte, *manifest.Manifest,
	error) {
	for _, path := range candidates {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		m, err := parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:\n%w", path, err)
		}
		return text, m, nil
	}
	return nil, nil, fmt.Errorf("there is no manifest: looked for %s", strings.Join(candidates, " and "))
}

// Compile compiles the plugin name in dir with the tools of its language, and returns it without its manifest.
func Compile(ctx context.Context, dir, name string) ([]byte, error) {
	if isProject(dir) {
		return buildProject(ctx, dir, name)
	}
	return gobuild.Plugin(ctx, dir)
}

// Build compiles the plugin in dir with its manifest inside, writes it to out and returns it. Without out it is written
// to dist/NAME.wasm in dir. manifestFile is as in ReadSource.
func Build(ctx context.Context, dir, manifestFile, out string) (file string, wasm []byte, err error) {
	source, err := ReadSource(dir, manifestFile)
	if err != nil {
		return "", nil, err
	}
	if wasm, err = Compile(ctx, dir, source.Name); err != nil {
		return "", nil, err
	}
	if wasm, err = wasmfile.Embed(wasm, source.Sections); err != nil {
		return "", nil, err
	}
	file = cmp.Or(out, filepath.Join(dir, "dist", source.Name+".wasm"))
	return file, wasm, Place(file, wasm)
}

// Place writes a file in one step, so that a host that watches its folder never sees a part of it. It creates missing
// folders.
func Place(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := wholefile.RemoveLeftovers(filepath.Dir(path)); err != nil {
		return err
	}
	return wholefile.WriteDurable(path, content, 0o644)
}
