package registry

import (
	"context"
	"fmt"

	"oras.land/oras-go/v2/registry/remote"
)

// PullFile returns the content of an artifact with one layer of any type, such as an index of plugins, of at most limit
// bytes, and the artifact's digest. If that is known, the content is nil.
func (c *Client) PullFile(ctx context.Context, r Reference, known string, limit int64) (content []byte, digest string,
	err error) {
	err = c.read(ctx, r, func(ctx context.Context, repository *remote.Repository) error {
		var m document
		if digest, m, err = c.manifestOf(ctx, repository, r.object()); err != nil || digest == known {
			return err
		}
		if len(m.Layers) != 1 {
			return fmt.Errorf("it has %d layers instead of one: it is not an artifact with a single file",
				len(m.Layers))
		}
		content, err = c.blob(ctx, repository, m.Layers[0], limit)
		return err
	})
	return content, digest, err
}
