package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasm/component"
)

// Names of annotations, for Artifact.Annotations.
const (
	AnnotationVersion     = ocispec.AnnotationVersion
	AnnotationDescription = ocispec.AnnotationDescription
	AnnotationLicenses    = ocispec.AnnotationLicenses
)

// created is the time in every artifact. With a fixed one, the same plugin has the same digest whenever it is pushed.
var created = time.Unix(0, 0).UTC().Format(time.RFC3339)

// Push publishes a.Wasm with a.Annotations under r's tag, and returns the digest of the OCI manifest, as Describe does.
// The tag leaves what it named before.
func (c *Client) Push(ctx context.Context, r Reference, a *Artifact) (digest string, err error) {
	if r.Digest != "" {
		return "", fmt.Errorf("%s: push to a tag: the digest follows from the content", r)
	}
	m, config, err := describe(r, a)
	if err != nil {
		return "", err
	}
	return c.publish(ctx, r, cmp.Or(r.Tag, defaultTag), m, config, a.Wasm)
}

// Describe returns the digest that a.Wasm and a.Annotations have in any registry, in a repository of r's name.
func Describe(r Reference, a *Artifact) (digest string, err error) {
	m, _, err := describe(r, a)
	return content.NewDescriptorFromBytes("", m).Digest.String(), err
}

// describe returns the OCI manifest and the config of a plugin.
//
// The layer is the file as it is, of type application/wasm. The config is of type application/vnd.wasm.config.v0+json,
// with the manifest in the file as one more field. wkg, wassette, ORAS and hyper-mcp read that.
func describe(r Reference, a *Artifact) (m, config []byte, err error) {
	if config, err = configOf(a.Wasm); err != nil {
		return nil, nil, err
	}
	layer := content.NewDescriptorFromBytes(wasmType, a.Wasm)
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: r.Name() + ".wasm"}
	m, err = json.Marshal(ocispec.Manifest{
		Versioned: version2, MediaType: ocispec.MediaTypeImageManifest,
		Config: content.NewDescriptorFromBytes(configType, config), Layers: []ocispec.Descriptor{layer},
		Annotations: a.Annotations,
	})
	return m, config, err
}

// version2 is in every manifest of OCI.
var version2 = specs.Versioned{SchemaVersion: 2}

// configOf returns the config for a Wasm file.
func configOf(wasm []byte) ([]byte, error) {
	config := wasmConfig{Created: created, Architecture: "wasm", OS: "wasip1",
		LayerDigests: []string{content.NewDescriptorFromBytes("", wasm).Digest.String()}}
	if component.IsComponent(wasm) {
		decoded, err := component.Decode(wasm)
		if err != nil {
			return nil, err
		}
		config.OS = "wasip2"
		config.Component = &componentConfig{Exports: namesOf(decoded.Exports), Imports: namesOf(decoded.Imports)}
	}
	inside, _ := manifest.Inside(wasm)
	config.Manifest = string(inside)
	return json.Marshal(config)
}

func namesOf(externs []component.Extern) []string {
	names := make([]string, len(externs))
	for i, e := range externs {
		names[i] = e.Name
	}
	return names
}

// publish pushes a manifest with the contents of its config and of its only layer, under a tag or, if that is empty,
// its digest, which it returns.
func (c *Client) publish(ctx context.Context, r Reference, tag string, m, config, layer []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, m)
	repository := c.repository(r)
	err := pushBlob(ctx, repository, config)
	if err == nil {
		err = pushBlob(ctx, repository, layer)
	}
	if err == nil {
		err = repository.PushReference(ctx, d, bytes.NewReader(m), cmp.Or(tag, d.Digest.String()))
	}
	if err != nil {
		return "", c.readable(r.String(), r, err)
	}
	return d.Digest.String(), nil
}

// pushBlob pushes a blob that the registry does not have yet.
func pushBlob(ctx context.Context, repository *remote.Repository, blob []byte) error {
	d := content.NewDescriptorFromBytes("", blob)
	if exists, err := repository.Blobs().Exists(ctx, d); exists || err != nil {
		return err
	}
	err := repository.Blobs().Push(ctx, d, bytes.NewReader(blob))
	var response *errcode.ErrorResponse
	if errors.As(err, &response) && response.StatusCode == http.StatusUnauthorized {
		// The token may have ended between the two requests of an upload, of which oras-go repeats none.
		err = repository.Blobs().Push(ctx, d, bytes.NewReader(blob))
	}
	return err
}
