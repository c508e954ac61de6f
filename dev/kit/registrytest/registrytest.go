// Package registrytest runs an OCI registry for tests. Start returns a Registry, that of go-containerregistry in
// memory; a Middleware can change its answers. The registry of the distribution project would add 61 modules to go.mod.
package registrytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is a running registry.
type Registry struct {
	// Host is its host and port, for references.
	Host string
	// URL is its address.
	URL string
	// CA is a file with its certificate, if it speaks TLS.
	CA string

	server *httptest.Server
}

// Middleware changes requests to a registry, or its answers.
type Middleware func(registry http.Handler) http.Handler

// Start starts a registry at a loopback address without TLS.
func Start(t testing.TB, wrap ...Middleware) *Registry {
	t.Helper()
	r := &Registry{server: httptest.NewServer(handler(wrap))}
	return r.started(t)
}

// StartTLS starts a registry with a certificate of its own.
func StartTLS(t testing.TB, wrap ...Middleware) *Registry {
	t.Helper()
	r := &Registry{server: httptest.NewUnstartedServer(handler(wrap)), CA: filepath.Join(t.TempDir(), "ca.pem")}
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.StartTLS()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	if err := os.WriteFile(r.CA, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	return r.started(t)
}

func (r *Registry) started(t testing.TB) *Registry {
	t.Cleanup(r.server.Close)
	r.URL = r.server.URL
	_, r.Host, _ = strings.Cut(r.server.URL, "://")
	return r
}

func handler(wrap []Middleware) http.Handler {
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	for _, w := range wrap {
		h = w(h)
	}
	return h
}

// Reference returns the reference to a tag or, if it has a colon, a digest in a repository.
func (r *Registry) Reference(repository, object string) string {
	separator := ":"
	if strings.Contains(object, ":") {
		separator = "@"
	}
	return "oci://" + r.Host + "/" + repository + separator + object
}

// Close stops the registry before the end of the test.
func (r *Registry) Close() { r.server.Close() }

// Blob describes a blob as manifests do.
type Blob struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

// PutBlob stores content, and returns its description.
func (r *Registry) PutBlob(t testing.TB, repository, mediaType string, content []byte) Blob {
	t.Helper()
	d := Digest(content)
	r.send(t, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+d, "application/octet-stream", content)
	return Blob{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

// PutManifest stores the JSON of a manifest under a tag, and returns its description.
func (r *Registry) PutManifest(t testing.TB, repository, tag, mediaType string, manifest any) Blob {
	t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	r.send(t, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, mediaType, text)
	return Blob{MediaType: mediaType, Digest: Digest(text), Size: int64(len(text))}
}

// ImageType is the media type of the manifests of OCI.
const ImageType = "application/vnd.oci.image.manifest.v1+json"

// PutImage stores an image with a config and layers under a tag, and returns its description.
func (r *Registry) PutImage(t testing.TB, repository, tag string, config Blob, layers ...Blob) Blob {
	t.Helper()
	return r.PutManifest(t, repository, tag, ImageType, map[string]any{
		"schemaVersion": 2, "mediaType": ImageType, "config": config, "layers": layers,
	})
}

func (r *Registry) send(t testing.TB, method, path, mediaType string, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := r.server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
	}
}

// Digest returns the digest of content.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
