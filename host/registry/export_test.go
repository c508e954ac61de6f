package registry

import (
	"context"
	"time"
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
