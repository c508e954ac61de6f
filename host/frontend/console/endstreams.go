package console

import (
	"context"
	"fmt"
	"strings"

	"github.com/hako-run/hako/host/store"
)

// endStreams ends the streams of sessions that are gone from the store, because somebody has logged out at another
// process.
func (c *Console) endStreams(ctx context.Context) {
	hub := c.options.Traffic.hub
	open := map[string]bool{}
	hub.each(func(s *stream) { open[s.session.id] = true })
	if len(open) == 0 {
		return
	}
	there, err := c.sessions.among(ctx, open)
	if err != nil {
		if ctx.Err() == nil {
			c.logger.Warn("find ended sessions of the console", "err", err) // heartbeats check too
		}
		return
	}
	for _, id := range there {
		delete(open, id)
	}
	hub.endWhere(endLogout, func(s *stream) bool { return open[s.session.id] })
}

// endUnwanted ends the streams of people who may no longer log in or have another role.
func (c *Console) endUnwanted(now *logins) {
	c.options.Traffic.hub.endWhere(endRevoked, func(s *stream) bool {
		person := s.session.Person
		return now.admit(&person, s.session.proof, c.now()) != nil || person.Role != s.session.Role
	})
}

// endRevoked ends the streams of sessions that were begun with a token of the store that is no longer valid.
func (c *Console) endRevoked(ctx context.Context) {
	now := c.logins.Load()
	if now.issued == nil {
		return
	}
	if err := now.issued.Refresh(ctx); err != nil {
		if ctx.Err() == nil {
			c.logger.Warn("find revoked tokens of the console", "err", err) // heartbeats check too
		}
		return
	}
	c.endUnwanted(now)
}

// among returns the sessions with these IDs that are in the store.
func (t *sessions) among(ctx context.Context, ids map[string]bool) ([]string, error) {
	var places []string
	var args []any
	for id := range ids {
		args = append(args, id)
		places = append(places, fmt.Sprintf("$%d", len(args)))
	}
	return store.List(ctx, t.store, store.Column[string], `SELECT id FROM console_session WHERE id IN (`+
		strings.Join(places, ", ")+`)`, args...)
}
