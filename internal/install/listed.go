package install

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/registry/index"
	"github.com/hako-run/hako/internal/pluginfile"
)

// FetchListed reads a plugin that an index of the configuration lists. The author of the index does not reach the
// operator's network through hako.
func (f *Folder) FetchListed(ctx context.Context, listed *index.Plugin) (*Download, error) {
	if !pluginfile.IsAddress(listed.Reference) {
		return f.ReadFile(listed.Reference)
	}
	return f.fetch(ctx, listed.Reference, true)
}

// FetchNamed reads the plugin of that name in the indexes of the configuration. It returns the digest that the plugin
// must have: the given one, else that of the index, which may be empty.
func (f *Folder) FetchNamed(ctx context.Context, name, digest string) (*Download, string, error) {
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
