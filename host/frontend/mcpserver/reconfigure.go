package mcpserver

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/internal/peer"
)

// live has the options that can change while a Server serves, and the values derived from them.
type live struct {
	Options
	guard   *auth.Guard
	proxies peer.Proxies
	// authorized ends when other rules for access are in force.
	authorized context.Context
	revoke     context.CancelFunc
}

// now are the options in force. They must not be changed.
func (s *Server) now() *live { return s.live.Load() }

// newLive checks options whose defaults are filled in.
func newLive(filled Options) (*live, error) {
	guard, err := auth.NewGuard(filled.Origins, filled.Hosts)
	if err != nil {
		return nil, err
	}
	proxies, err := peer.NewProxies(filled.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("mcp server: %w", err)
	}
	l := &live{Options: filled, guard: guard, proxies: proxies}
	l.authorized, l.revoke = context.WithCancel(context.Background())
	return l, nil
}

// Reconfigure checks other options and returns a function that applies them. Only these change: Instructions, Overview,
// Language, Toolsets, ListTTL, Limits, Origins, Hosts, TrustedProxies, Auth and Authorization. Errors are those of New.
// Requests in flight continue. Sessions stay, but Auth must admit their next request; event streams end, so that
// clients open them again. Limits.Message does not change for open connections over stdio.
func (s *Server) Reconfigure(options *Options) (put func(), err error) {
	filled, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	filled.Logger = s.options.Logger
	next, err := newLive(filled)
	if err != nil {
		return nil, err
	}
	return func() {
		before := s.live.Swap(next)
		before.revoke()
		s.limiter.Set(next.Limits)
		s.sessions.set(next.Limits)
		switch {
		case before.Language != next.Language:
			s.catalogSync.again()
		case !reflect.DeepEqual(before.Toolsets, next.Toolsets):
			s.catalogSync.touchAll()
		}
	}, nil
}
