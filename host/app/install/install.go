// Package install puts plugins into a plugin folder and records in its lock file where they came from. With the lock
// file a folder can be checked and rebuilt (Differences, Restore), also without a network (Bundle, UseBundle), updated
// (EachNewer, Update) and rolled back (Previous).
//
// Nothing here runs a plugin or approves one: hosts that watch the folder find a new file and compare it with the
// consents.
package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
)

// ErrNoFolder means that the configuration has no plugin folder.
var ErrNoFolder = errors.New("there is no plugin folder: name one with plugins in " + config.FileName +
	", or with --plugins")

// Folder is the first plugin folder of a configuration. Open makes one.
type Folder struct {
	dir string
	// lock is the path of the lock file.
	lock    string
	copies  plugincopies.Dir
	config  *config.Config
	maxSize int64
	// bundle is used instead of the network, unless it is nil.
	bundle *registry.Layout
	// public keeps downloads from the operator's network.
	public bool
}

// Open returns the first plugin folder of a configuration, or ErrNoFolder.
func Open(c *config.Config) (*Folder, error) {
	if len(c.Plugins) == 0 {
		return nil, ErrNoFolder
	}
	return &Folder{dir: c.Plugins[0], lock: c.LockFile(), copies: plugincopies.In(c.Cache), config: c,
		maxSize: c.MaxPluginSize}, nil
}

// UsePublic keeps f from reaching the operator's network, except for what the configuration names: for people who use
// it through hako.
func (f *Folder) UsePublic() { f.public = true }

// Origin returns the entry of a plugin's file in the lock file, or a zero entry if the file has none. ok is false if
// the file is not in the folder.
func (f *Folder) Origin(file, name, digest string) (p lock.Plugin, ok bool, err error) {
	if filepath.Clean(file) != filepath.Clean(f.path(name)) {
		return p, false, nil
	}
	locked, err := f.Locked()
	if p = locked[name]; p.Wasm != digest {
		p = lock.Plugin{}
	}
	return p, true, err
}

// Newest fetches the newest version of a plugin, or returns nil if there is no newer one than the installed one.
func (f *Folder) Newest(ctx context.Context, name string) (*Addition, error) {
	n, err := f.newer(ctx, name)
	if err != nil || n == nil {
		return nil, err
	}
	return f.Update(ctx, n)
}

// Locked returns the entries of the lock file.
func (f *Folder) Locked() (lock.Plugins, error) { return lock.Load(f.lock) }

// Download is a plugin's file and where it came from.
type Download struct {
	Wasm []byte
	// Published is the digest of the file before a manifest was added. It may be empty.
	Published string
	// Origin has From, Digest and Signer. Digest may be empty if it is that of the file.
	Origin lock.Entry
}

// ReadFile reads a plugin from a file outside of the folder: a plugin file, or a manifest of Extism beside one.
func (f *Folder) ReadFile(path string) (_ *Download, err error) {
	if filepath.Ext(path) == ".json" {
		if path, err = manifest.ExtismModule(path); err != nil {
			return nil, err
		}
	}
	wasm, err := manifest.ReadFile(path, f.maxSize)
	return &Download{Wasm: wasm, Origin: lock.Entry{From: lock.FromFile}}, err
}

// Fetch downloads a plugin from a URL or a registry.
func (f *Folder) Fetch(ctx context.Context, from string) (*Download, error) {
	return f.fetch(ctx, from, f.public)
}

func (f *Folder) fetch(ctx context.Context, from string, public bool) (*Download, error) {
	p, err := pluginfile.Download(ctx, f.config, from, public)
	if err != nil {
		return nil, err
	}
	return &Download{Wasm: p.Wasm, Published: p.Digest,
		Origin: lock.Entry{From: p.From, Digest: p.Artifact, Signer: lockedSigner(p.Signer)}}, nil
}

// fetchEntry returns the file of an entry: a copy that was kept, or what is in the bundle or where it came from.
func (f *Folder) fetchEntry(ctx context.Context, name string, e lock.Entry) (*Download, error) {
	wasm, err := f.copies.Open(e.Wasm)
	switch {
	case err == nil:
	case f.bundle != nil:
		return f.fetchBundled(ctx, e)
	case e.From == lock.FromFile:
		return nil, fmt.Errorf(
			"%s was added from a file, and there is no copy of version %s on this machine: give its file "+
				"to hako plugin add, or the bundle that has it to hako plugin sync --from", name, e.Version)
	default:
		d, err := f.Fetch(ctx, pluginfile.Pinned(e.From, e.Digest))
		if err != nil {
			return nil, err
		}
		wasm, e.Signer = d.Wasm, d.Origin.Signer // who signs for the repository today
	}
	return &Download{Wasm: wasm, Origin: e}, nil
}
