package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/pluginfile"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
)

// FetchListed reads a plugin that an index of the configuration lists. The author of the index does not reach the
// operator's network through hako.
func (f *Folder) FetchListed(ctx context.Context, listed *index.Plugin) (*Download, error) {
	if !pluginfile.IsAddress(listed.Reference) {
		return f.ReadFile(listed.Reference)
	}
	return f.fetch(ctx, listed.Reference, true)
}

// Get reads a plugin to add: from an address, from the file at path, or from an index if there is no such file and from
// is a name. The plugin must have the digest, unless it is empty.
func (f *Folder) Get(ctx context.Context, from, path, digest string) (*Addition, error) {
	var d *Download
	var err error
	meant := registry.Meant(from)
	if pluginfile.IsAddress(from) && meant == "" {
		d, err = f.Fetch(ctx, from)
	} else if d, err = f.ReadFile(path); err != nil && manifest.ValidName(from) && len(f.config.Index.Plugins) > 0 {
		d, digest, err = f.fetchNamed(ctx, from, digest)
	} else if errors.Is(err, fs.ErrNotExist) {
		switch {
		case meant != "":
			err = fmt.Errorf("there is no file %s: if it is in a registry, write %s", from, meant)
		case manifest.ValidName(from):
			err = fmt.Errorf("there is no file %s, and no index that could list a plugin of that name: give a file, an https "+
				"address or an oci:// reference, or add an index to index.plugins in %s", from, config.FileName)
		default:
			err = fmt.Errorf("there is no file %s: give a file, an https address or an oci:// reference", from)
		}
	}
	if err != nil {
		return nil, err
	}
	p, err := f.Read(d, digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return p, nil
}

// fetchNamed reads the plugin of that name in the indexes of the configuration. It returns the digest that the plugin
// must have: the given one, else that of the index, which may be empty.
func (f *Folder) fetchNamed(ctx context.Context, name, digest string) (*Download, string, error) {
	plugins, _ := pluginfile.Indexes(f.config, 0).Load(ctx, nil)
	var found []index.Plugin
	var references []string
	for _, p := range plugins {
		if p.Name == name {
			found = append(found, p)
			references = append(references, p.Reference)
		}
	}
	switch len(found) {
	case 0:
		return nil, "", fmt.Errorf(
			"there is no file %s, and no index lists a plugin of that name: hako plugin search says what "+
				"they list", name)
	case 1:
		d, err := f.FetchListed(ctx, &found[0])
		return d, cmp.Or(digest, found[0].Digest), err
	}
	return nil, "", fmt.Errorf("several indexes list %s: add one of %s", name, strings.Join(references, ", "))
}
