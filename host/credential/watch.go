package credential

import (
	"context"
	"time"
)

// watchInterval is the interval of Watch. It allows several attempts between the due time of a token and its expiry.
const watchInterval = 4 * time.Minute

// Watch renews due connections until ctx ends, so that unused ones do not expire: refresh tokens have a limited
// validity (freee: 90 days). Processes that share a store renew each connection once. Failures are logged.
func (b *Broker) Watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		if err := b.RenewDue(ctx); err != nil && ctx.Err() == nil {
			b.logger.Warn("cannot list the connections to renew", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// RenewDue renews all due connections once. It is an alternative to Watch for callers that let one of several processes
// do this; call it every few minutes. Failures are logged. The error is that of the store.
func (b *Broker) RenewDue(ctx context.Context) error {
	if !b.hasConnections() {
		return nil
	}
	stored, err := b.vault.list(ctx)
	for _, i := range stored {
		c, err := b.connection(i.tenant, i.name)
		if err != nil {
			continue // it is not configured any more
		}
		if r, err := b.vault.get(ctx, i); err != nil || r == nil || r.Ended != "" || !r.due(b.vault.now()) {
			continue // using it reports the problem
		}
		_, _ = c.credential(ctx) // logs errors
	}
	return err
}
