package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

// credentialConnections are enough to look connections up, and to renew them.
const credentialConnections = 3

// openCredentialStore opens the store once more, for credentials alone: they are closed last.
func openCredentialStore(ctx context.Context, c *config.Config, logger *slog.Logger) (*store.Store, error) {
	few := *c
	few.Postgres.Connections = min(c.Postgres.Connections, credentialConnections)
	return few.OpenStore(ctx, logger)
}

// newCredentials makes the broker of the configured credentials; the caller, or the host that it is given to, closes
// it. observe may be nil.
func newCredentials(c *config.Config, logger *slog.Logger, observe func(credential.Renewal)) (*credential.Broker,
	error) {
	b, err := credential.New(credential.Options{
		Credentials: c.Credentials,
		Tenants:     c.TenantCredentials,
		Store:       func(ctx context.Context) (*store.Store, error) { return openCredentialStore(ctx, c, logger) },
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
