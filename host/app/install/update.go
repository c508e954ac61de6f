package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/lock"
)

// Newer is a version of a plugin that is newer than the installed one.
type Newer struct {
	Name string
	// Installed is the version in the lock file. Found describes the newer one: its version, or what has changed.
	Installed, Found string

	from     string
	download *Download
}

// newer looks for a newer version of a plugin where it was installed from. It returns nil if there is none.
func (f *Folder) newer(ctx context.Context, name string) (*Newer, error) {
	now, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	if now.From == lock.FromFile {
		return nil, fmt.Errorf("%s was added from a file: give a newer one to hako plugin add --replace", name)
	}
	n := &Newer{Name: name, Installed: now.Version, from: now.From}
	if registry.HasScheme(now.From) {
		err = f.newerTag(ctx, n, now.Entry)
	} else {
		err = f.newerFile(ctx, n, now.Entry)
	}
	if err != nil || n.Found == "" {
		return nil, err
	}
	return n, nil
}

// EachNewer calls do with the newer versions of the named plugins, or of all in the lock file, and reports whether
// there are any. Errors of one plugin do not keep it from the next.
func (f *Folder) EachNewer(ctx context.Context, names []string, do func(*Newer) error) (found bool, err error) {
	if len(names) == 0 {
		locked, err := f.Locked()
		if err != nil {
			return false, err
		}
		names = slices.Sorted(maps.Keys(locked))
	}
	var errs []error
	for _, name := range names {
		n, err := f.newer(ctx, name)
		if err == nil && n != nil {
			found = true
			err = do(n)
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// newerFile downloads the file at a URL, and completes n if it is another one than that of e.
func (f *Folder) newerFile(ctx context.Context, n *Newer, e lock.Entry) (err error) {
	if n.download, err = f.Fetch(ctx, e.From); err != nil || plugincopies.Digest(n.download.Wasm) == e.Wasm {
		return err
	}
	p, err := f.Update(ctx, n)
	if err == nil {
		n.Found = p.Manifest.Version
	}
	return err
}

// newerTag completes n if the registry has a tag for a newer version, or moved the tag of e.
func (f *Folder) newerTag(ctx context.Context, n *Newer, e lock.Entry) error {
	r, err := registry.ParseReference(e.From)
	if err != nil {
		return err
	}
	client, err := registry.New(f.config.Registry(f.public))
	if err != nil {
		return err
	}
	defer client.Close()
	tags, err := client.Tags(ctx, r)
	if err != nil {
		return err
	}
	current, pinned := r.Tag, r.Tag == "" && r.Digest != ""
	if pinned {
		current = e.Version
	}
	r.Digest = ""
	if newest := lock.Newest(tags, current); newest != "" {
		r.Tag = newest
		n.from, n.Found = r.String(), newest
		return nil
	}
	if pinned {
		return nil
	}
	digest, err := client.Resolve(ctx, r)
	if err == nil && digest != e.Digest {
		n.from, n.Found = r.String(), "the tag "+cmp.Or(r.Tag, "latest")+" names another version by now"
	}
	return err
}

// Update fetches a newer version.
func (f *Folder) Update(ctx context.Context, n *Newer) (_ *Addition, err error) {
	d := n.download
	if d == nil {
		if d, err = f.Fetch(ctx, n.from); err != nil {
			return nil, err
		}
	}
	p, err := f.Read(d, "")
	switch {
	case err != nil:
	case p.Manifest.Name != n.Name:
		err = fmt.Errorf("it is the plugin %s by now, and not %s: to install it, use hako plugin add",
			p.Manifest.Name, n.Name)
	case isOlder(p.Manifest.Version, n.Installed):
		err = fmt.Errorf("it is version %s by now, which is older than the installed %s and may have defects that "+
			"are fixed there: to install it anyway, use hako plugin add --replace", p.Manifest.Version, n.Installed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.from, err)
	}
	return p, nil
}

// isOlder reports whether a version is older than another one. A registry that lies, or one that was taken over, can
// serve what its owner signed long ago.
func isOlder(version, than string) bool {
	order, ok := lock.Compare(version, than)
	return ok && order < 0
}
