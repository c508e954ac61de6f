package pluginfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/signature"
)

// Publication is a plugin that was published.
type Publication struct {
	// Reference has the tag and the digest.
	Reference registry.Reference
	Manifest  *manifest.Manifest
	// Dependencies is the number of entries in the software bill of materials that was attached. Zero means that the
	// file names none, and none was attached.
	Dependencies int
	// Signer is whose signature was attached. The zero value is nobody.
	Signer signature.Signer
}

// Materials reports whether a software bill of materials was attached.
func (p *Publication) Materials() string {
	if p.Dependencies == 0 {
		return "there is no software bill of materials: the file does not say what it was built from"
	}
	return fmt.Sprintf("a software bill of materials is attached (entries: %d)", p.Dependencies)
}

// PublishFile is publish for a file of a plugin and the file of a private key, which may be empty, with its password.
func PublishFile(ctx context.Context, c *config.Config, r registry.Reference, file, keyFile, password string,
	replace bool) (*Publication, error) {
	wasm, err := manifest.ReadFile(file, c.MaxPluginSize)
	if err != nil {
		return nil, err
	}
	var key *signature.PrivateKey
	if keyFile != "" {
		if key, err = signature.ReadPrivateKey(keyFile, []byte(password)); err != nil {
			return nil, err
		}
	}
	client, err := registry.New(c.Registry(false))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return publish(ctx, client, r, wasm, key, replace)
}

// publish pushes a plugin file with its manifest to a registry, and attaches a software bill of materials if the file
// says what it was built from, and a signature of key unless that is nil. Without a tag in r, the tag is the plugin's
// version. A tag that names another plugin already stays, unless replace is set.
func publish(ctx context.Context, client *registry.Client, r registry.Reference, wasm []byte,
	key *signature.PrivateKey, replace bool) (*Publication, error) {
	m, module, err := Parse(wasm)
	if err != nil {
		return nil, err
	}
	if err := manifest.CheckImports(module, m.Permissions); err != nil {
		return nil, err
	}
	if r.Tag == "" {
		r.Tag = strings.ReplaceAll(m.Version, "+", "_") // tags have no "+"; Helm writes it so too
	}
	a := &registry.Artifact{Wasm: wasm, Annotations: map[string]string{
		registry.AnnotationVersion: m.Version, registry.AnnotationDescription: m.Description.In("en"),
	}}
	if m.License != "" {
		a.Annotations[registry.AnnotationLicenses] = m.License
	}
	digest, err := registry.Describe(r, a)
	if err != nil {
		return nil, err
	}
	switch before, err := client.Published(ctx, r); {
	case errors.Is(err, registry.ErrNotFound):
	case err != nil:
		return nil, err
	case before != digest && !replace:
		return nil, fmt.Errorf(
			"%s already exists with the digest %s: raise the version, or replace it "+
				"with --replace", r, before)
	}
	if digest, err = client.Push(ctx, r, a); err != nil {
		return nil, err
	}
	p := &Publication{Reference: r.WithDigest(digest), Manifest: m}
	if err := p.attachMaterials(ctx, client, module.Digest, wasm); err != nil || key == nil {
		return p, err
	}
	p.Signer = key.Signer()
	return p, signature.Attach(ctx, client, p.Reference, key)
}

// attachMaterials attaches a software bill of materials if the file says what it was built from.
func (p *Publication) attachMaterials(ctx context.Context, client *registry.Client, digest string, wasm []byte) error {
	bom, count, err := billOfMaterials(p.Manifest, digest, wasm)
	if err != nil || count == 0 {
		return err
	}
	p.Dependencies = count
	attached, _, err := client.Referrers(ctx, p.Reference, sbomType)
	if err == nil && len(attached) == 0 {
		err = client.Attach(ctx, p.Reference, sbomType, bom, sbomType, nil)
	}
	return err
}

// Locate returns the plugin file that argument names: a file, or a plugin in a folder of the configuration. Without an
// argument it is the only plugin in dir or its folder dist.
func Locate(c *config.Config, dir, argument string) (string, error) {
	if argument == "" {
		files, err := WasmFiles(dir)
		if err == nil && len(files) > 1 {
			err = fmt.Errorf("there are %d plugins in %s: name one", len(files), dir)
		}
		if err != nil {
			return "", err
		}
		return files[0], nil
	}
	candidates := []string{argument}
	if !filepath.IsAbs(argument) {
		candidates = []string{filepath.Join(dir, argument)}
	}
	for _, folder := range c.Plugins {
		candidates = append(candidates, filepath.Join(folder, argument+".wasm"))
	}
	for _, file := range candidates {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no plugin %s: looked for %s", argument, strings.Join(candidates, " and "))
}
