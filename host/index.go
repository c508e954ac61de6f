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

	"github.com/hako-run/hako/host/internal/wholefile"
	"github.com/hako-run/hako/host/manifest"
)

// index remembers what plugin files say about themselves, so that those which have not changed are neither read nor hashed at the next
// start. What it says is checked like what was just read, and only a copy with the digest that it names ever runs: an entry that is
// wrong can keep an older version in service, but bring in nothing that was not approved.
type index struct {
	path string // empty: nothing is remembered
	// readOnly leaves the file at path as it is.
	readOnly bool
	// settled is how old a change must be before a stamp tells it from another: clocks of file systems go in steps.
	settled time.Duration

	mu      sync.Mutex
	entries map[string]entry // by path
	changed bool
}

type entry struct {
	Stamp  stamp
	Module *manifest.Module
}

// indexVersion changes with the form of the file, and with what a Module holds.
const indexVersion = 1

type indexFile struct {
	Version int
	Entries map[string]entry
}

// openIndex reads the index at path. One that cannot be read is as good as none.
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

// lookup returns what the file at path said when it had this stamp.
func (x *index) lookup(path string, now stamp) (*manifest.Module, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.entries[path]
	if !ok || e.Stamp != now || e.Module == nil {
		return nil, false
	}
	return e.Module, true
}

// note remembers what a file says that had this stamp before and after it was read.
func (x *index) note(path string, before stamp, module *manifest.Module) {
	if x.path == "" || module.Recordings != nil || time.Since(before.latest()) < x.settled {
		return
	}
	remembered := *module
	remembered.Manifest = bytes.Clone(module.Manifest) // which would keep the whole file in memory
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

// readCandidate reads a plugin's file, or takes what is known of it.
func (h *Host) readCandidate(c *candidate) (*pluginFile, error) {
	source := c.plugin.source
	if source.shipped() {
		return parse(source.wasm)
	}
	if module, ok := h.index.lookup(source.path, c.stamp); ok && c.stamp.Wasm.Size <= h.maxPluginSize() {
		return interpret(module, nil)
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

// keepCopy makes sure that there is a copy of the plugin, which is read again if only the index is known.
func (h *Host) keepCopy(p *plugin, content *pluginFile) error {
	digest := content.module.Digest
	if content.wasm == nil {
		if h.store.touch(digest) {
			return nil
		}
		read, err := p.source.read(h.options().MaxPluginSize)
		if err != nil {
			return err
		}
		if read.module.Digest != digest {
			return errors.New("it has changed while it was looked at")
		}
		content.wasm = read.wasm
	}
	return h.store.keep(digest, content.wasm)
}

// copyOf returns the plugin with this digest. Where the copy of it is gone, such as by another process that shares the directory and took it for
// unused, it is made again from where the plugin came from.
func (h *Host) copyOf(from source, digest string) ([]byte, error) {
	wasm, err := h.store.open(digest)
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
	if err := h.store.keep(digest, read.wasm); err != nil {
		h.logger.Warn("a copy of a plugin cannot be kept", "path", from.path, "err", err)
	}
	return read.wasm, nil
}

// keepCopies keeps the copies of what is in service from being pruned.
func (h *Host) keepCopies() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.plugins {
		if p.service != nil {
			h.store.touch(p.service.digest)
		}
	}
}
