package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Difference is a plugin of the lock file that is not in the folder as it should be.
type Difference struct {
	Name  string
	Entry lock.Entry
	// Found is the digest of the file in the folder, or why it cannot be read. Empty means that there is none.
	Found string

	// signer is why the recorded signer does not suffice.
	signer error
}

// Err describes the difference as an error.
func (d Difference) Err() error {
	if d.Found == d.Entry.Wasm {
		return fmt.Errorf("%s: %w", d.Name, d.signer)
	}
	return fmt.Errorf("%s: the lock file says %s, and the folder has %s", d.Name, d.Entry.Wasm,
		cmp.Or(d.Found, "no such plugin"))
}

// Differences compares the folder with the lock file. A plugin without the signature that the configuration needs
// differs too. Files of other plugins do not count. It fails if the lock file has no entries.
func (f *Folder) Differences() ([]Difference, error) {
	locked, err := f.Locked()
	if err != nil {
		return nil, err
	}
	if len(locked) == 0 {
		return nil, fmt.Errorf("%s names no plugins: hako plugin add records what it installs there", f.lock)
	}
	var list []Difference
	for _, name := range slices.Sorted(maps.Keys(locked)) {
		d := Difference{Name: name, Entry: locked[name].Entry}
		d.signer = f.checkSigner(d.Entry)
		wasm, err := manifest.ReadFile(f.path(name), f.maxSize)
		switch {
		case err == nil:
			d.Found = plugincopies.Digest(wasm)
		case !errors.Is(err, fs.ErrNotExist):
			d.Found = err.Error()
		}
		if d.Found != d.Entry.Wasm || d.signer != nil {
			list = append(list, d)
		}
	}
	return list, nil
}

// Restore fetches the version in the lock file, which has the recorded digests. If it is downloaded and a signature of
// somebody who is trusted now is there, Place records the signer.
func (f *Folder) Restore(ctx context.Context, d Difference) (*Addition, error) {
	p, err := f.restore(ctx, d.Name, d.Entry)
	if err != nil {
		return nil, err
	}
	p.record = func(locked lock.Plugins, _ lock.Entry) error {
		if now := locked[d.Name]; now.Wasm != d.Entry.Wasm {
			return fmt.Errorf("the lock file meanwhile names another version of %s: repeat the command", d.Name)
		} else if d.signer != nil {
			now.Signer = p.Entry.Signer
			locked[d.Name] = now
		}
		return nil
	}
	return p, nil
}

// Previous fetches the version of a plugin that was in the folder before.
func (f *Folder) Previous(ctx context.Context, name string) (*Addition, error) {
	now, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	if now.Previous == nil {
		return nil, fmt.Errorf("%s names no version of %s before %s: there is nothing to roll back to", f.lock, name,
			now.Version)
	}
	return f.restore(ctx, name, *now.Previous)
}

// restore fetches the version of an entry.
func (f *Folder) restore(ctx context.Context, name string, e lock.Entry) (*Addition, error) {
	d, err := f.fetchEntry(ctx, name, e)
	if err != nil {
		return nil, err
	}
	p, err := f.Read(d, e.Wasm)
	if err == nil && p.Manifest.Name != name {
		err = fmt.Errorf("it is the plugin %s, and not %s", p.Manifest.Name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.From, err)
	}
	return p, nil
}

// lookup returns the entry of a plugin.
func (f *Folder) lookup(name string) (lock.Plugin, error) {
	locked, err := f.Locked()
	if err != nil {
		return lock.Plugin{}, err
	}
	p, ok := locked[name]
	if !ok {
		return p, fmt.Errorf("%s: %s", f.lock, strictyaml.Unknown("plugin", name, slices.Collect(maps.Keys(locked))))
	}
	return p, nil
}
