package install

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
)

// Addition is a plugin that is to be put into a folder. Folder.Read makes one.
type Addition struct {
	Manifest *manifest.Manifest
	Digest   string
	// Path is its file in the folder, with the name in the manifest.
	Path string
	// Entry is its entry in the lock file.
	Entry lock.Entry

	folder *Folder
	wasm   []byte
	// record changes the entries of the lock file. replaced is the version in the folder, zero if there is none. If it
	// fails, nothing is placed.
	record func(p lock.Plugins, replaced lock.Entry) error
}

// Read reads a plugin for the folder; nothing of it runs. It fails if the file is no plugin with a manifest, imports
// what its permissions do not cover, does not have the digest, unless that is empty, or lacks a signature that the
// configuration needs.
func (f *Folder) Read(d *Download, digest string) (*Addition, error) {
	if err := f.checkSigner(d.Origin); err != nil {
		return nil, err
	}
	m, module, err := pluginfile.Parse(d.Wasm)
	if err != nil {
		return nil, err
	}
	if digest != "" && !strings.EqualFold(digest, module.Digest) && !strings.EqualFold(digest, d.Published) {
		return nil, fmt.Errorf(
			"it has the digest %s instead of %s: it is not the intended file, and nothing was put "+
				"into the folder", module.Digest, digest)
	}
	if err := manifest.CheckImports(module, m.Permissions); err != nil {
		return nil, err
	}
	entry := d.Origin
	entry.Digest, entry.Wasm, entry.Version = cmp.Or(entry.Digest, module.Digest), module.Digest, m.Version
	a := &Addition{Manifest: m, Digest: module.Digest, Path: f.path(m.Name), Entry: entry, folder: f, wasm: d.Wasm}
	a.record = a.install
	return a, nil
}

// path returns the path of a plugin's file.
func (f *Folder) path(name string) string { return filepath.Join(f.dir, name+".wasm") }

// Size is the size of the file, in bytes.
func (a *Addition) Size() int { return len(a.wasm) }

// Exists reports whether there is a file at Path, which Place would replace.
func (a *Addition) Exists() bool {
	_, err := os.Lstat(a.Path)
	return err == nil
}

// Changes returns the version that is in the folder now, and how a differs from it, as inspect.Changes describes it.
// The version is empty if there is none.
func (a *Addition) Changes(locale string) (before string, lines []string, err error) {
	m, module, _, err := pluginfile.Read(a.Path, a.folder.maxSize)
	if err != nil || m.Name != a.Manifest.Name {
		return "", nil, nil
	}
	locked, err := a.folder.Locked()
	if err != nil {
		return "", nil, err
	}
	var signer signature.Signer
	if e := locked[m.Name].Entry; e.Wasm == module.Digest {
		signer = signerOf(e)
	}
	return m.Version, inspect.Changes(m, a.Manifest, signer, a.Signer(), locale), nil
}

// Place writes the file and its entry in the lock file, and keeps a copy of the file that it replaces. Hosts that watch
// the folder find the plugin, which waits for consent.
func (a *Addition) Place(ctx context.Context) error {
	return lock.Update(ctx, a.folder.lock, func(p lock.Plugins) error {
		var replaced lock.Entry
		m, module, wasm, err := pluginfile.Read(a.Path, a.folder.maxSize)
		// Without another version of the plugin there is nothing to roll back to.
		if err == nil && m.Name == a.Manifest.Name && module.Digest != a.Digest {
			replaced = lock.Entry{From: lock.FromFile, Digest: module.Digest, Wasm: module.Digest, Version: m.Version}
			if err := a.folder.copies.Save(module.Digest, wasm); err != nil {
				return err
			}
		}
		if err := a.record(p, replaced); err != nil {
			return err
		}
		return pluginfile.Place(a.Path, a.wasm)
	})
}

// install makes a the installed version. If the one in the folder is not that of the lock file, for example because it
// was built there, it becomes the version before.
func (a *Addition) install(p lock.Plugins, replaced lock.Entry) error {
	if name := a.Manifest.Name; replaced.Wasm != "" && replaced.Wasm != p[name].Wasm {
		p.Set(name, replaced)
	}
	p.Set(a.Manifest.Name, a.Entry)
	return nil
}
