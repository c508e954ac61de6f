package authserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/host/store"
)

// revocations end the event streams of access tokens whose login has ended. It is safe for concurrent use.
type revocations struct {
	store *store.Store

	mu sync.Mutex // guards pending
	// pending are tokens that were verified, by their hash. There are at most maxVerified.
	pending map[string]revocation
}

// revocation has a context that ends when a token is revoked, and at the latest when it expires.
type revocation struct {
	context.Context
	end context.CancelFunc
}

// of returns the context for the token with this hash. The caller looks the token up afterwards, so that no end in
// between is missed.
func (r *revocations) of(id string) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.pending[id]; ok && known.Err() == nil {
		return known.Context
	}
	if len(r.pending) >= maxVerified {
		maps.DeleteFunc(r.pending, func(_ string, known revocation) bool { return known.Err() != nil })
	}
	if len(r.pending) >= maxVerified { // clients open their streams again
		for _, known := range r.pending {
			known.end()
		}
		clear(r.pending)
	}
	ctx, end := context.WithTimeout(context.Background(), accessLifetime)
	r.pending[id] = revocation{ctx, end}
	return ctx
}

// end ends the streams of a token.
func (r *revocations) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.pending[id]; ok {
		known.end()
		delete(r.pending, id)
	}
}

// run ends the streams of tokens that are gone from the store, at each value of ended, until ctx ends.
func (r *revocations) run(ctx context.Context, ended <-chan struct{}, now func() time.Time, logger *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		if err := r.check(ctx, now()); err != nil && ctx.Err() == nil {
			logger.Warn("find the event streams of ended logins", "err", err)
		}
	}
}

func (r *revocations) check(ctx context.Context, now time.Time) error {
	r.mu.Lock()
	gone := map[string]bool{}
	places, args := []string{}, []any{now.UnixMilli()}
	for id := range r.pending {
		gone[id] = true
		args = append(args, id)
		places = append(places, fmt.Sprintf("$%d", len(args)))
	}
	r.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	there, err := store.List(ctx, r.store, store.Column[string],
		`SELECT id FROM oauth_token WHERE expires > $1 AND id IN (`+
			strings.Join(places, ", ")+`)`, args...)
	if err != nil {
		return err
	}
	for _, id := range there {
		delete(gone, id)
	}
	for id := range gone {
		r.end(id)
	}
	return nil
}
