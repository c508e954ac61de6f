package credential

import (
	"context"
	"time"
)

// retrySave retries to store the result of a renewal until it succeeds or this process stops. It holds the lock, so
// that other processes do not use the old refresh token. The new pair is not used before it is stored.
func (c *connection) retrySave(r *record, failure error, release func()) error {
	b := c.broker
	c.setUnsaved(failure)
	b.options.Observe(Renewal{c.id.name, Unsaved})
	b.logger.Error("a renewed credential cannot be stored: repair that while hako runs, or it has to be connected "+
		"again",
		"credential", c.id.name, "tenant", c.id.tenant, "err", failure)
	b.working.Go(func() {
		for done := false; !done; {
			select {
			case <-b.ending.Done():
				done = true
			case <-time.After(time.Second):
			}
			ctx, cancel := context.WithTimeout(context.Background(), tokenTime)
			err := c.save(ctx, r)
			cancel()
			c.setUnsaved(err)
			done = done || err == nil
		}
		if c.notStored() != nil {
			b.logger.Error("a renewed credential is lost: run hako connect "+c.id.arguments(), "credential",
				c.id.name, "tenant", c.id.tenant)
		}
		release()
	})
	return unusablef(failure, "the renewed credential %s cannot be stored: the cause is in hako's log", c.id)
}

// save stores r unless the operator has connected again meanwhile, which is possible if the lock was lost with the
// database.
func (c *connection) save(ctx context.Context, r *record) error {
	newest, err := c.broker.vault.get(ctx, c.id)
	if err != nil || newest == nil || newest.Connection != r.Connection {
		return err
	}
	return c.broker.vault.put(ctx, c.id, r)
}

func (c *connection) setUnsaved(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsaved = err
}

func (c *connection) notStored() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsaved
}
