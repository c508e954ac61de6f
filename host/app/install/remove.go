package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/internal/wholefile"
)

// Removal lists what Remove has removed, and what is left of the plugin.
type Removal struct {
	// Removed are files and entries. Left are things that hako does not remove.
	Removed, Left []string
}

// Remove removes a plugin from the folder: its file, the manifest and policy of its own beside it, its entry in the
// lock file and, unless consents is nil, its consent. Hosts that watch the folder let running calls end. A copy of the
// file stays in the cache. It fails if there is nothing of that name, and can be repeated after another error.
func (f *Folder) Remove(ctx context.Context, name string, consents *grant.File) (*Removal, error) {
	if !manifest.ValidName(name) {
		return nil, fmt.Errorf("%q is not a plugin name: give the name, not the path of the file", name)
	}
	r := &Removal{}
	err := lock.Update(ctx, f.lock, func(p lock.Plugins) error {
		if err := f.removeFiles(name, r); err != nil {
			return err
		}
		if _, ok := p[name]; ok {
			delete(p, name)
			r.Removed = append(r.Removed, "its entry in "+f.lock)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if consents != nil && len(r.Removed) > 0 { // a plugin of this name elsewhere keeps its consent
		if err := f.removeConsent(ctx, name, consents, r); err != nil {
			return nil, err
		}
	}
	if len(r.Removed) == 0 {
		return nil, fmt.Errorf(
			"there is no plugin %s to remove: neither %s nor an entry in %s; shipped plugins are left out "+
				"with shipped.enabled", name, f.path(name), f.lock)
	}
	f.addLeft(name, r)
	return r, nil
}

// removeFiles removes the plugin's file, of which a copy is kept, and the manifest and policy beside it.
func (f *Folder) removeFiles(name string, r *Removal) error {
	path := f.path(name)
	wasm, err := manifest.ReadFile(path, f.maxSize)
	if err != nil {
		wasm, err = wholefile.ReadAtMost(path, f.maxSize) // without its manifest, which may be what is wrong
	}
	if err == nil {
		digest := plugincopies.Digest(wasm)
		if err := f.copies.Save(digest, wasm); err != nil {
			return err
		}
		r.Left = append(r.Left, "a copy of the file, for 30 days: "+f.copies.File(digest))
	}
	side := manifest.SidePaths(path)
	for _, file := range append([]string{path}, side[:2]...) { // the others are for all plugins of the folder
		switch err := os.Remove(file); {
		case err == nil:
			r.Removed = append(r.Removed, file)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

func (f *Folder) removeConsent(ctx context.Context, name string, consents *grant.File, r *Removal) error {
	list := consents.Consents()
	switch err := consents.Remove(ctx, name); {
	case errors.Is(err, grant.ErrNoConsent):
		return nil
	case err != nil:
		return err
	}
	r.Removed = append(r.Removed, "its consent in "+consents.String())
	for _, c := range list {
		if c.Name == name {
			for _, mount := range c.Mounts {
				r.Left = append(r.Left, "the folder that it could use: "+mount.Path)
			}
		}
	}
	return nil
}

// addLeft adds what else is left.
func (f *Folder) addLeft(name string, r *Removal) {
	if database := filepath.Join(f.config.StateDir(), sqlbroker.Folder, name); exists(database) {
		r.Left = append(r.Left, "its databases: "+database)
	}
	if _, ok := f.config.Plugin[name]; ok {
		r.Left = append(r.Left, "its settings: plugin."+name+" in "+f.config.Name())
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Unlocked returns the names of the plugins in the folder that have no entry in the lock file.
func (f *Folder) Unlocked() (names []string, err error) {
	locked, err := f.Locked()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		name, isPlugin := strings.CutSuffix(entry.Name(), ".wasm")
		if _, ok := locked[name]; isPlugin && !ok && !entry.IsDir() {
			names = append(names, name)
		}
	}
	return names, err
}
