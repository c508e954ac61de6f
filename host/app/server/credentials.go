package server

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/store"
)

// credentialConnections is enough to look up connections and to renew them.
const credentialConnections = 3

// NewCredentials makes the broker of the configured credentials. The caller, or the host that it is given to, closes
// it. observe may be nil. The broker opens the store itself when it needs it, because it is closed last.
func NewCredentials(
	c *config.Config, logger *slog.Logger, observe func(credential.Renewal),
) (*credential.Broker, error) {
	b, err := credential.New(credential.Options{
		Credentials: c.Credentials,
		Tenants:     c.TenantCredentials,
		Store: func(ctx context.Context) (*store.Store, error) {
			few := *c
			few.Postgres.Connections = min(c.Postgres.Connections, credentialConnections)
			return few.OpenStore(ctx, logger)
		},
		Key:     c.SecretsKey,
		Proxy:   c.ProxyURL(),
		Observe: observe,
		Logger:  logger,
	})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return b, nil
}

// credentials is the part with the credentials that the host applies to requests of plugins. The host closes them. It
// comes before the plugins, whose permissions name credentials.
type credentials struct{ *credential.Broker }

func (*credentials) start(context.Context) error { return nil }

func (*credentials) keys() []string { return []string{"credentials", "tenants", "outbound.proxy"} }

func (c *credentials) prepare(_ context.Context, next *config.Config) (*change, error) {
	apply, err := c.Reconfigure(next.Credentials, next.TenantCredentials, next.ProxyURL())
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return silently(apply), nil
}

// renewedCredentials are credentials that a background job renews.
type renewedCredentials struct{ *credentials }

// Watch waits for ctx.
func (renewedCredentials) Watch(ctx context.Context) { <-ctx.Done() }
