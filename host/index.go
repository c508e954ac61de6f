package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/wholefile"
)

// index caches the manifest and digest of plugin files, so that unchanged files are neither read nor hashed at the next
// start. Its entries are validated like files, and only a copy with the digest of the entry ever runs. A wrong entry
// can keep an older version in service, but cannot bring in anything that was not approved.
type index struct {
	path string // empty: nothing is cached
	// readOnly leaves the file at path unchanged.
	readOnly bool
	// settled is the minimum age of a change for its stamp to be unique: file systems have coarse clocks.
	settled time.Duration

	mu      sync.Mutex
	entries map[string]entry // by path
	changed bool
}

type entry struct {
	Stamp  stamp
	Module *wasmfile.Module
}

// indexVersion changes with the format of the file and the fields of Module.
const indexVersion = 2

type indexFile struct {
	Version int
	Entries map[string]entry
}

// openIndex reads the index at path. An unreadable one counts as empty.
func openIndex(path string) *index {
	x := &index{path: path, settled: 2 * time.Second, entries: map[string]entry{}}
	data, err := os.ReadFile(path)
	if path == "" || err != nil {
		return x
	}
	var file indexFile
	if json.Unmarshal(data, &file) == nil && file.Version == indexVersion && file.Entries != nil {
		x.entries = file.Entries
	}
	return x
}

// lookup returns the cached module of the file at path if its stamp is unchanged.
func (x *index) lookup(path string, now stamp) (*wasmfile.Module, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.entries[path]
	if !ok || e.Stamp != now || e.Module == nil {
		return nil, false
	}
	return e.Module, true
}

// note caches the module of a file that had the same stamp before and after it was read. It caches no components: their
// tools are made from types that are not in a Module's JSON.
func (x *index) note(path string, before stamp, module *wasmfile.Module) {
	if x.path == "" || module.Recordings != nil || module.Component != nil ||
		time.Since(before.latest()) < x.settled {
		return
	}
	remembered := *module
	remembered.Manifest = bytes.Clone(module.Manifest) // otherwise it would keep the whole file in memory
	x.mu.Lock()
	defer x.mu.Unlock()
	x.entries[path] = entry{before, &remembered}
	x.changed = true
}

// save writes the index if it has changed, without the files that are gone.
func (x *index) save(present func(path string) bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path := range x.entries {
		if !present(path) {
			delete(x.entries, path)
			x.changed = true
		}
	}
	if x.path == "" || x.readOnly || !x.changed {
		return nil
	}
	data, err := json.Marshal(indexFile{indexVersion, x.entries})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(x.path), 0o700)
	}
	if err == nil {
		err = wholefile.Write(x.path, data)
	}
	if err != nil {
		return fmt.Errorf("remember the plugin files: %w", err)
	}
	x.changed = false
	return nil
}

// readCandidate reads a plugin's file, or returns the cached content.
func (h *Host) readCandidate(c *candidate) (*pluginFile, error) {
	source := c.plugin.source
	if source.shipped() {
		if source.module != nil {
			return checkModule(source.module, nil, manifest.ParseValidated)
		}
		return source.read(h.options().MaxPluginSize)
	}
	if module, ok := h.index.lookup(source.path, c.stamp); ok && c.stamp.Wasm.Size <= h.maxPluginSize() {
		return checkModule(module, nil, tool.ParseManifest)
	}
	content, err := source.read(h.options().MaxPluginSize)
	if err != nil {
		return nil, err
	}
	if after, err := source.stamp(); err == nil && after == c.stamp {
		h.index.note(source.path, after, content.module)
	}
	return content, nil
}

func (h *Host) maxPluginSize() int64 {
	if h.options().MaxPluginSize == 0 {
		return manifest.MaxModuleBytes
	}
	return h.options().MaxPluginSize
}

// keepCopy ensures that there is a copy of the plugin. It reads the file if the content came from the index. A shipped
// plugin is its own copy, unless it has a consent, under which it stays in service when the program is updated.
func (h *Host) keepCopy(p *plugin, content *pluginFile) error {
	digest := content.module.Digest
	if p.source.shipped() {
		if _, consented := h.consents.file.InForce(content.manifest.Name); !consented {
			return nil
		}
	}
	if content.wasm == nil {
		if h.copies.touch(digest) {
			return nil
		}
		read, err := p.source.read(h.options().MaxPluginSize)
		if err != nil {
			return err
		}
		if read.module.Digest != digest {
			return errors.New("it changed while it was read")
		}
		content.wasm = read.wasm
	}
	return h.copies.save(digest, content.wasm)
}

// copyOf returns the plugin with this digest. If its copy is gone, for example pruned by another process that shares
// the directory, it is copied again from its source.
func (h *Host) copyOf(from source, digest string) ([]byte, error) {
	wasm, err := h.copies.open(digest)
	if !errors.Is(err, fs.ErrNotExist) {
		return wasm, err
	}
	read, readErr := from.read(h.options().MaxPluginSize)
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	if read.module.Digest != digest {
		return nil, fmt.Errorf("%w, and %s has changed since: call again when the plugin is updated", err, from.path)
	}
	if from.shipped() {
		return read.wasm, nil
	}
	if err := h.copies.save(digest, read.wasm); err != nil {
		h.logger.Warn("a copy of a plugin cannot be kept", "path", from.path, "err", err)
	}
	return read.wasm, nil
}

// CompileRefusal returns why the plugin with that status is not compiled, or nil. It compiles nothing.
func (h *Host) CompileRefusal(status Status) (*sandbox.Refusal, error) {
	h.mu.Lock()
	p := h.plugins[status.Path]
	h.mu.Unlock()
	if p == nil || status.Serving == "" || h.options().CacheDir == "" {
		return nil, nil
	}
	dir := compiledDir(h.options().CacheDir)
	return sandbox.FindRefusal(dir, func() ([]byte, error) { return h.copyOf(p.source, status.Serving) })
}

// keepCopies marks the copies of plugins in service as used, so that they are not pruned.
func (h *Host) keepCopies() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.service != nil {
			h.copies.touch(p.service.digest)
		}
	}
}
