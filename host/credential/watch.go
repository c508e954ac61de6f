package credential

import (
	"context"
	"time"
)

// watchInterval is how often Watch looks; several times between the moment that a token is due and its expiry.
const watchInterval = 4 * time.Minute

// Watch renews connections that are due until ctx ends, so that one that nobody uses does not run out: the refresh token is only valid
// for so long (freee: 90 days). With several processes over a store each renewal happens once. What fails is logged.
func (b *Broker) Watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		if err := b.RenewDue(ctx); err != nil && ctx.Err() == nil {
			b.logger.Warn("look for connections to renew", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// RenewDue renews connections that are due, once: it is what Watch does again and again, for whoever has a better way to have it done by one
// of several processes. It should be called every few minutes. What fails is logged; the error is the store's.
func (b *Broker) RenewDue(ctx context.Context) error {
	if !b.hasConnections() {
		return nil
	}
	stored, err := b.vault.list(ctx)
	for _, i := range stored {
		c, err := b.connection(i.tenant, i.name)
		if err != nil {
			continue // it is no longer configured
		}
		if r, err := b.vault.get(ctx, i); err != nil || r == nil || r.Ended != "" || !r.due(b.vault.now()) {
			continue // its use says what is wrong
		}
		_, _ = c.credential(ctx) // which logs
	}
	return err
}
