package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/internal/wholefile"
)

// Bundle writes all plugins of the lock file to an OCI layout in a tar file, for UseBundle. Those from registries keep
// their manifests, and what refers to them, such as signatures. leftOut lists what of that could not be read.
func (f *Folder) Bundle(ctx context.Context, path string) (count int, leftOut []error, err error) {
	locked, err := f.Locked()
	if err != nil {
		return 0, nil, err
	}
	client, err := registry.New(f.config.Registry(false))
	if err != nil {
		return 0, nil, err
	}
	defer client.Close()
	err = wholefile.Stream(path, func(w io.Writer) error {
		layout := registry.NewLayoutWriter(w)
		for _, name := range slices.Sorted(maps.Keys(locked)) {
			unread, err := f.addTo(ctx, layout, client, name, locked[name].Entry)
			if err != nil {
				return fmt.Errorf("bundle %s: %w", name, err)
			}
			leftOut = append(leftOut, unread...)
		}
		return layout.Close()
	})
	return len(locked), leftOut, err
}

func (f *Folder) addTo(ctx context.Context, layout *registry.LayoutWriter, client *registry.Client, name string,
	e lock.Entry) (leftOut []error, err error) {
	if registry.HasScheme(e.From) {
		r, err := registry.ParseReference(e.From)
		if err != nil {
			return nil, err
		}
		return layout.AddArtifact(ctx, client, name, r.WithDigest(e.Digest))
	}
	wasm, err := manifest.ReadFile(f.path(name), f.maxSize)
	if err == nil && plugincopies.Digest(wasm) == e.Wasm {
		return nil, layout.AddFile(name, wasm)
	}
	p, err := f.restore(ctx, name, e)
	if err != nil {
		return nil, err
	}
	return nil, layout.AddFile(name, p.wasm)
}

// UseBundle makes f read plugins from a bundle, which is an OCI layout in a tar file or a directory, and not from where
// they came from.
func (f *Folder) UseBundle(path string) (err error) {
	f.bundle, err = registry.OpenLayout(path, f.maxSize)
	return err
}

// fetchBundled returns the file of an entry from the bundle.
func (f *Folder) fetchBundled(ctx context.Context, e lock.Entry) (d *Download, err error) {
	d = &Download{Origin: e}
	if registry.HasScheme(e.From) {
		var p *pluginfile.Published
		if p, err = pluginfile.Pull(ctx, f.config, f.bundle.Client(), pluginfile.Pinned(e.From, e.Digest)); err == nil {
			d.Wasm, d.Origin.Signer = p.Wasm, lockedSigner(p.Signer)
		}
	} else {
		d.Wasm, err = f.bundle.Blob(ctx, e.Wasm)
	}
	if errors.Is(err, registry.ErrNotFound) {
		err = fmt.Errorf("the bundle does not have %s from %s with the digest %s: create it again with "+
			"hako plugin bundle", e.Version, e.From, e.Digest)
	}
	return d, err
}
