package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/cmd/hako/internal/config"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/store"
)

// newCredentials makes the broker of the configured credentials; the caller, or the host that it is given to, closes it. observe may be
// nil.
func newCredentials(c *config.Config, logger *slog.Logger, observe func(credential.Renewal)) (*credential.Broker, error) {
	b, err := credential.New(credential.Options{
		Credentials: c.Credentials,
		Tenants:     c.TenantCredentials,
		Store:       func(ctx context.Context) (*store.Store, error) { return store.Open(ctx, c.Store) },
		Key:         c.SecretsKey,
		Proxy:       c.ProxyURL(),
		Observe:     observe,
		Logger:      logger,
	})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b, nil
}
