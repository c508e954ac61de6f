package pluginfile

import (
	"context"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
)

// Indexes returns the configured indexes of plugins. Copies are used for as long as fresh without a request.
func Indexes(c *config.Config, fresh time.Duration) *index.Indexes {
	return index.New(index.Options{Locations: c.Index.Plugins, Dir: filepath.Join(c.Cache, "indexes"), Fresh: fresh,
		Proxy: c.ProxyURL(), Pull: func(ctx context.Context, reference, known string, limit int64) ([]byte,
			string, error) {
			r, err := registry.ParseReference(reference)
			if err != nil {
				return nil, "", err
			}
			client, err := registry.New(c.Registry(false))
			if err != nil {
				return nil, "", err
			}
			defer client.Close()
			return client.PullFile(ctx, r, known, limit)
		}})
}
