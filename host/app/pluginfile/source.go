package pluginfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/pdk/abi"
)

// Published is a plugin file from a URL or a registry.
type Published struct {
	// Wasm has a manifest inside if it is a component or made for Extism, also if none was published.
	Wasm []byte
	// Digest is the digest of the file as it was published.
	Digest string
	// From is its source, without secrets.
	From string
	// Artifact is the digest of the OCI manifest. It is empty for a URL.
	Artifact string
	// Signer is whose signature was verified. The zero value means that the configuration needs none.
	Signer signature.Signer
}

// IsAddress reports whether from is a URL or a reference to a registry, and not the path of a file.
func IsAddress(from string) bool {
	u, err := url.Parse(from)
	return err == nil && u.Hostname() != "" || registry.HasScheme(from)
}

// Pinned returns a reference to what had the digest in a registry, and a URL as it is.
func Pinned(from, digest string) string {
	if r, err := registry.ParseReference(from); err == nil && registry.HasScheme(from) {
		return r.WithDigest(digest).String()
	}
	return from
}

// Download reads a plugin from an https URL or a registry (oci://…). public is for people who may not reach the
// operator's network through hako, except for what the configuration names: registries, and the hosts of indexes.
//
// A component or a plugin for Extism that was published without a manifest gets NAME.yaml of the first plugin folder,
// else a drafted manifest that asks for what a published policy of wassette allows. NAME is the last element of the
// address.
func Download(ctx context.Context, c *config.Config, from string, public bool) (*Published, error) {
	if registry.HasScheme(from) {
		client, err := registry.New(c.Registry(public))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return Pull(ctx, c, client, from)
	}
	u, err := url.Parse(from)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL", withoutQuery(from))
	}
	var wasm []byte
	if public {
		wasm, err = fetchPublic(ctx, u, c.ProxyURL(), c.MaxPluginSize, index.Hosts(c.Index.Plugins)...)
	} else {
		wasm, err = fetch(ctx, u, c.ProxyURL(), c.MaxPluginSize)
	}
	if err != nil {
		return nil, err
	}
	p := &Published{Wasm: wasm, From: withoutQuery(from)}
	return p, p.complete(c, path.Base(u.Path), nil)
}

// Pull is Download for a reference to a registry, which client reads.
func Pull(ctx context.Context, c *config.Config, client *registry.Client, from string) (*Published, error) {
	r, err := registry.ParseReference(from)
	if err != nil {
		return nil, err
	}
	policy, err := signature.NewPolicy(c.Signatures)
	if err != nil {
		return nil, err
	}
	a, err := client.Pull(ctx, r)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, adviseNotFound(ctx, client, r, err)
	}
	if err != nil {
		return nil, err
	}
	signer, err := signature.Verify(ctx, client, r, a.Digest, policy)
	if err != nil {
		return nil, err
	}
	p := &Published{Wasm: a.Wasm, From: r.String(), Artifact: a.Digest, Signer: signer}
	return p, p.complete(c, r.Name(), a.Policy)
}

// adviseNotFound adds to err, that the registry does not have r, what it has instead.
func adviseNotFound(ctx context.Context, client *registry.Client, r registry.Reference, err error) error {
	if r.Digest != "" {
		return fmt.Errorf("%w: check the digest, or use a tag to get what is there now", err)
	}
	tags, listed := client.Tags(ctx, r)
	if listed != nil || len(tags) == 0 {
		return fmt.Errorf("%w: check the name; a private repository may need docker login %s", err, r.Registry)
	}
	missing := cmp.Or(r.Tag, "latest")
	r.Tag = cmp.Or(lock.Newest(tags, "0.0.0"), tags[len(tags)-1])
	return fmt.Errorf("%w: the repository has no tag %s, but %s", err, missing, r)
}

// complete notes the digest, and embeds a manifest into a plugin that was published without one. What cannot have a
// drafted manifest stays as it is, for Parse to refuse.
func (p *Published) complete(c *config.Config, name string, policy []byte) error {
	module, err := wasmfile.Read(p.Wasm)
	if err != nil {
		return fmt.Errorf("%s: %w", p.From, err)
	}
	p.Digest = module.Digest
	if module.Manifest != nil || !component.IsComponent(p.Wasm) && !module.IsExtism() {
		return nil
	}
	var text []byte
	if len(c.Plugins) > 0 {
		text, err = os.ReadFile(filepath.Join(c.Plugins[0], strings.TrimSuffix(name, ".wasm")+".yaml"))
	}
	if len(text) == 0 && (err == nil || errors.Is(err, os.ErrNotExist)) {
		text, err = manifest.Draft(name, p.Wasm, policy)
	}
	if err == nil {
		p.Wasm, err = wasmfile.Embed(p.Wasm, map[string][]byte{abi.ManifestSection: text})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.From, err)
	}
	return nil
}
