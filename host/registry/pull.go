package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/retry"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Artifact is a plugin in a registry.
type Artifact struct {
	// Digest is the digest of the OCI manifest, or of the index of platforms that the reference names.
	Digest string
	// Wasm is the plugin file as it was published.
	Wasm []byte
	// Policy is a policy of wassette that was published with a component. It may be nil.
	Policy []byte
	// Annotations are those of the OCI manifest. They are untrusted text.
	Annotations map[string]string
}

// Media types that wkg, wassette, ORAS and hyper-mcp's publishers use.
const (
	configType = "application/vnd.wasm.config.v0+json"
	wasmType   = "application/wasm"
)

var (
	wasmTypes = []string{
		wasmType,
		"application/vnd.wasm.component.v1",
		"application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
		"application/vnd.wasm.content.layer.v1+wasm",
		"application/vnd.module.wasm.content.layer.v1+wasm",
	}
	policyTypes = []string{
		"application/vnd.wasm.policy.v1+yaml", "application/vnd.wassette.policy+yaml",
		"application/x-yaml", "text/yaml",
	}
)

const (
	// maxLayers bounds the layers of an artifact and the platforms of an index.
	maxLayers = 64
	// maxPolicy bounds a policy of wassette, in bytes.
	maxPolicy = manifest.MaxBytes
)

// Pull returns the plugin that r names. Its size, the digest of everything that was read, and the digest in r are
// checked, and that the manifest that the registry shows is the one in the file.
func (c *Client) Pull(ctx context.Context, r Reference) (a *Artifact, err error) {
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		a, err = c.pull(ctx, repository, r)
		return err
	})
	return a, err
}

func (c *Client) pull(ctx context.Context, repository *remote.Repository, r Reference) (*Artifact, error) {
	digest, m, err := c.manifestOf(ctx, repository, r.object())
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(digest, "sha256:") {
		return nil, fmt.Errorf("the digest of its manifest is %s, and hako takes only those of sha256", digest)
	}
	if m.Manifests != nil {
		platform, err := choosePlatform(m.Manifests)
		if err != nil {
			return nil, err
		}
		if _, m, err = c.manifestOf(ctx, repository, platform.Digest.String()); err != nil {
			return nil, err
		}
		if m.Manifests != nil {
			return nil, errNestedIndex
		}
	}
	a := &Artifact{Digest: digest, Annotations: m.Annotations}
	if a.Wasm, err = c.wasm(ctx, repository, m.Layers); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(m.Layers, hasType(policyTypes)); i >= 0 {
		if a.Policy, err = c.blob(ctx, repository, m.Layers[i], maxPolicy); err != nil {
			return nil, err
		}
	}
	if m.Config.MediaType == configType {
		err = c.checkManifest(ctx, repository, m.Config, a.Wasm)
	}
	return a, err
}

var errNestedIndex = errors.New("it is an index in an index")

// document is a manifest or an index of OCI or Docker. The content says which of them it is, because the media type
// that the registry states may be wrong.
type document struct {
	ArtifactType string               `json:"artifactType"`
	Config       ocispec.Descriptor   `json:"config"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
	Annotations  map[string]string    `json:"annotations"`

	text []byte // the JSON
}

// manifestOf returns the manifest of a tag or digest, and its digest.
func (c *Client) manifestOf(ctx context.Context, repository *remote.Repository, object string) (digest string,
	m document, err error) {
	descriptor, body, err := repository.FetchReference(ctx, object)
	if err != nil {
		return "", m, err
	}
	defer body.Close()
	if descriptor.Size > maxMetadata {
		return "", m, tooLarge("its manifest", maxMetadata)
	}
	text, err := content.ReadAll(body, descriptor)
	if err != nil {
		return "", m, err
	}
	m, err = parseManifest(text)
	m.text = text
	return descriptor.Digest.String(), m, err
}

func parseManifest(text []byte) (m document, err error) {
	var tree any
	switch err = errors.Join(strictjson.Unmarshal(text, &m), json.Unmarshal(text, &tree)); {
	case err != nil:
		return m, errors.New("its manifest is not JSON as OCI defines it, with every key once")
	case misspelt(tree) != "":
		return m, fmt.Errorf("its manifest has the key %q in another case than OCI, and programs read it differently: "+
			"publish it again", clip.Runes(misspelt(tree), 40))
	case m.Manifests != nil && (m.Layers != nil || m.Config.Digest != ""):
		return m, errors.New("its manifest is an index and an image at once")
	case len(m.Layers) > maxLayers, len(m.Manifests) > maxLayers:
		return m, fmt.Errorf("its manifest lists more than %d layers or platforms", maxLayers)
	}
	for _, d := range slices.Concat(m.Layers, m.Manifests, []ocispec.Descriptor{m.Config}) {
		if d.Size < 0 || d.Digest != "" && d.Digest.Validate() != nil {
			return m, errors.New("its manifest has an invalid digest or size")
		}
	}
	return m, nil
}

// manifestKeys are the keys of manifests, indexes and descriptors (OCI image specification 1.1), by their lower case.
var manifestKeys = byLowerCase("schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "subject",
	"annotations", "digest", "size", "urls", "data", "platform", "architecture", "os", "variant")

func byLowerCase(keys ...string) map[string]string {
	table := map[string]string{}
	for _, key := range keys {
		table[strings.ToLower(key)] = key
	}
	return table
}

// misspelt returns a key of a manifest that differs from one of OCI's in case alone, or "". encoding/json, with which many
// programs read manifests, takes one for the other. The keys of annotations are free.
func misspelt(value any) string {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if key := misspelt(item); key != "" {
				return key
			}
		}
	case map[string]any:
		for key, item := range v {
			if known, ok := manifestKeys[strings.ToLower(key)]; ok && known != key {
				return key
			}
			if key != "annotations" {
				if key := misspelt(item); key != "" {
					return key
				}
			}
		}
	}
	return ""
}

// choosePlatform returns the manifest for Wasm of an index, else the one for linux/amd64, as hyper-mcp does, else the
// only one. Attestations, which Docker lists as a platform "unknown", do not count.
func choosePlatform(manifests []ocispec.Descriptor) (ocispec.Descriptor, error) {
	var names []string
	var images []ocispec.Descriptor
	for _, m := range manifests {
		if m.Platform == nil {
			m.Platform = &ocispec.Platform{}
		}
		if m.Platform.OS != "unknown" {
			images = append(images, m)
			names = append(names, m.Platform.OS+"/"+m.Platform.Architecture)
		}
	}
	for _, is := range []func(ocispec.Descriptor) bool{
		func(m ocispec.Descriptor) bool { return strings.HasPrefix(m.Platform.Architecture, "wasm") },
		func(m ocispec.Descriptor) bool { return m.Platform.OS == "linux" && m.Platform.Architecture == "amd64" },
		func(ocispec.Descriptor) bool { return len(images) == 1 },
	} {
		if i := slices.IndexFunc(images, is); i >= 0 {
			return images[i], nil
		}
	}
	return ocispec.Descriptor{}, fmt.Errorf("it has images for %s and none for wasm: name one by its digest",
		strings.Join(names, ", "))
}

// hasType returns a test for media types.
func hasType(types []string) func(ocispec.Descriptor) bool {
	return func(d ocispec.Descriptor) bool { return slices.Contains(types, d.MediaType) }
}

// wasm returns the plugin in the layers: the one layer of a type for Wasm, else the first layer whose content is a
// Wasm file or a tar with one, as hyper-mcp looks for it.
func (c *Client) wasm(ctx context.Context, repository *remote.Repository, layers []ocispec.Descriptor) ([]byte, error) {
	typed := slices.DeleteFunc(slices.Clone(layers), func(d ocispec.Descriptor) bool { return !hasType(wasmTypes)(d) })
	if len(typed) > 1 {
		return nil, fmt.Errorf("it has %d layers with Wasm files, and hako cannot tell which is the plugin", len(typed))
	}
	if len(typed) == 0 {
		typed = slices.DeleteFunc(slices.Clone(layers), hasType(policyTypes))
	}
	left, unpacker := c.options.MaxSize, newUnpacker(c.options.MaxSize)
	for _, layer := range typed {
		packed, err := c.blob(ctx, repository, layer, left)
		if err != nil {
			return nil, err
		}
		wasm, err := unpacker.find(ctx, packed)
		if err != nil || wasm != nil {
			return wasm, err
		}
		left -= layer.Size
	}
	return nil, errors.New("none of its layers is a Wasm file or a tar with one: it is not a plugin")
}

// blob returns the content of d, of at most limit bytes. An interrupted transfer is resumed where the registry can do
// that, and repeated otherwise.
func (c *Client) blob(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor,
	limit int64) ([]byte, error) {
	if d.Size > limit {
		return nil, tooLarge("a layer", limit)
	}
	var received bytes.Buffer
	for attempt := 0; ; attempt++ {
		err := receive(ctx, repository, d, &received)
		if err == nil {
			// content.ReadAll checks size and digest.
			return content.ReadAll(bytes.NewReader(received.Bytes()), d)
		}
		if attempt == maxRetries || !isInterrupted(err) {
			return nil, err
		}
		if err := retry.Wait(ctx, retry.Backoff(attempt, c.retryDelay, maxDelay)); err != nil {
			return nil, err
		}
	}
}

// receive appends to received what it lacks of d's content, or starts again if the registry only sends all of it.
func receive(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor, received *bytes.Buffer) error {
	body, err := repository.Blobs().Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	if seeker, ok := body.(io.Seeker); ok && received.Len() > 0 {
		if _, err := seeker.Seek(int64(received.Len()), io.SeekStart); err != nil {
			return err
		}
	} else {
		received.Reset()
	}
	// One byte more than the size shows that there is more, which content.ReadAll refuses.
	if _, err := received.ReadFrom(io.LimitReader(body, d.Size-int64(received.Len())+1)); err != nil {
		return err
	}
	if int64(received.Len()) < d.Size {
		return io.ErrUnexpectedEOF
	}
	return nil
}

var errTooLarge = errors.New("too large")

func tooLarge(what string, limit int64) error {
	return fmt.Errorf("%s is %w: hako reads at most %s, which maxPluginSize can raise for plugins", what, errTooLarge,
		strictyaml.FormatSize(limit))
}

// wasmConfig is the config of an artifact, which hako extends by the manifest.
//
// Source: https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/.
type wasmConfig struct {
	Created      string           `json:"created"`
	Author       *string          `json:"author"`
	Architecture string           `json:"architecture"`
	OS           string           `json:"os"`
	LayerDigests []string         `json:"layerDigests"`
	Component    *componentConfig `json:"component"`
	// Manifest is hako's manifest as text. Other consumers ignore it.
	Manifest string `json:"run.hako.manifest,omitempty"`
}

type componentConfig struct {
	Exports []string `json:"exports"`
	Imports []string `json:"imports"`
	Target  *string  `json:"target"`
}

// checkManifest checks that hako's manifest in a config, if it has one, is the one in the plugin file: an index or a
// console may show the config without having read the file.
func (c *Client) checkManifest(ctx context.Context, repository *remote.Repository, d ocispec.Descriptor,
	wasm []byte) error {
	text, err := c.blob(ctx, repository, d, maxMetadata)
	if err != nil {
		return err
	}
	var config wasmConfig
	if err := strictjson.Unmarshal(text, &config); err != nil {
		return errors.New("its config is not JSON as " + configType + " defines it")
	}
	if inside, _ := manifest.Inside(wasm); config.Manifest != "" && string(inside) != config.Manifest {
		return errors.New("the manifest in its config is not the one in its file")
	}
	return nil
}
