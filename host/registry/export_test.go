package registry

import "time"

// SetRetryDelay sets the first wait before a retry.
func (c *Client) SetRetryDelay(d time.Duration) { c.retryDelay = d }

// FindWasm is findWasm.
var FindWasm = findWasm

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
