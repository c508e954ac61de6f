package registry

import (
	"context"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
)

// SetRetryDelay sets the first wait before a retry.
func (c *Client) SetRetryDelay(d time.Duration) { c.retryDelay = d }

// FindWasm looks for the plugin in the layers of an image, of at most limit bytes.
func FindWasm(ctx context.Context, limit int64, layers ...[]byte) (wasm []byte, err error) {
	for u := newUnpacker(limit); len(layers) > 0 && wasm == nil && err == nil; layers = layers[1:] {
		wasm, err = u.find(ctx, layers[0])
	}
	return wasm, err
}

// ParseManifest parses a manifest as Pull does, and chooses a platform if it is an index.
func ParseManifest(text []byte) error {
	m, err := parseManifest(text)
	if err == nil && m.Manifests != nil {
		_, err = choosePlatform(m.Manifests)
	}
	return err
}

// RetryPolicy is retryPolicy.
type RetryPolicy = retryPolicy

// MaxRetries is maxRetries.
const MaxRetries = maxRetries

// StoredCredential reports whether files hold a credential for the host of a request.
func StoredCredential(ctx context.Context, files []string, host string) (bool, error) {
	credential, err := credentialsFrom(files)(ctx, host)
	return credential != auth.EmptyCredential, err
}
