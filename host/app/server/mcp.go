package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
)

// icon is a box, as clients show it. Base64 makes it a data URI without spaces and quotes, which strict clients
// require.
var icon = "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#c8102e" stroke-width="2" `+
		`stroke-linejoin="round"><path d="M3 7.5 12 3l9 4.5v9L12 21l-9-4.5zM3 7.5l9 4.5 9-4.5M12 12v9"/></svg>`))

// mcpOptions are the options of the MCP server that a configuration describes.
func mcpOptions(c *config.Config, a *auth.Auth, version string) *mcpserver.Options {
	return &mcpserver.Options{
		Title: "hako", Version: version, Website: "https://github.com/hako-run/hako", Icon: icon,
		Instructions: c.MCP.Instructions, Overview: true, Language: c.Locale, Toolsets: c.Toolsets,
		PageSize: c.MCP.PageSize, ListTTL: c.MCP.ListTTL, MaxResult: int(c.MCP.MaxResult), Limits: c.MCP.Limits,
		Origins: c.HTTP.Origins, Hosts: c.HTTP.Hosts, TrustedProxies: c.HTTP.TrustedProxies, Auth: a,
	}
}

// checkMCP makes the MCP server of a configuration on a host and closes it again. The error says which setting it does
// not accept.
func checkMCP(c *config.Config, h *host.Host) error {
	a, err := authenticator(c, nil, authResources{})
	if err != nil {
		return err
	}
	server, err := mcpserver.New(h.Catalog(), h, mcpOptions(c, a, ""))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return server.Close()
}

// authResources are what the authentication of a server needs beside a configuration: the tokens in the store, the clock
// and the logger. The zero value is enough to check a configuration.
type authResources struct {
	issued *bearer.Issued
	now    func() time.Time
	logger *slog.Logger
}

// authenticator decides who may use MCP over HTTP; nil means everybody. It fails if the configured tokens and issuers
// are not usable, or are missing at an address that other machines can reach. own is hako's own authorization server; a
// nil one is only checked.
func authenticator(c *config.Config, own *authserver.Server, with authResources) (*auth.Auth, error) {
	login := c.HTTP.AuthorizationServer()
	var verifier auth.AuthorizationServer
	switch {
	case own != nil:
		verifier = own
	case login != nil:
		if err := login.Check(); err != nil {
			return nil, fmt.Errorf("configuration: http.auth.proxy: %w", err)
		}
		verifier = (*authserver.Server)(nil)
	}
	var a *auth.Auth
	if options := c.HTTP.Authentication(verifier); options != nil {
		options.Issued, options.Now, options.Logger = with.issued, with.now, with.logger
		var err error
		if a, err = auth.New(*options); err != nil {
			return nil, fmt.Errorf("configuration: http.auth: %w", err)
		}
	}
	if err := auth.CheckExposure(c.HTTP.Address, a); err != nil {
		return nil, fmt.Errorf("configuration: http.address: %w", err)
	}
	return a, nil
}

// mcpFrontend is the part with the MCP server.
type mcpFrontend struct {
	server *Server
	jobs   *backgroundJobs

	mcp     *mcpserver.Server
	login   *authserver.Server // nil: there is none
	unwatch func()
}

// newLogin returns hako's own authorization server, or nil if a configuration has none.
func (f *mcpFrontend) newLogin(ctx context.Context, c *config.Config) (*authserver.Server, error) {
	options := c.HTTP.AuthorizationServer()
	if options == nil {
		return nil, nil
	}
	g := f.server.governance
	options.Store, options.Record, options.Logger = g.Store, g.recordLogin, f.server.Logger
	login, err := authserver.New(ctx, *options)
	if err != nil {
		return nil, fmt.Errorf("configuration: http.auth.proxy: %w", err)
	}
	return login, nil
}

// authenticator returns what checks the tokens of a configuration, with the server's own tokens and the store's clock.
func (f *mcpFrontend) authenticator(c *config.Config, login *authserver.Server) (*auth.Auth, error) {
	g := f.server.governance
	return authenticator(c, login, authResources{g.tokens, g.Store.Time, f.server.Logger})
}

func (f *mcpFrontend) start(ctx context.Context) (err error) {
	s := f.server
	if f.login, err = f.newLogin(ctx, s.Config); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.login.Close()
		}
	}()
	a, err := f.authenticator(s.Config, f.login)
	if err != nil {
		return err
	}
	options := mcpOptions(s.Config, a, s.Build.Version)
	options.Authorization = f.login.Handler()
	options.Extension, options.Logger = s.Extension, s.Logger
	if f.jobs.sessions != nil {
		options.Sessions = f.jobs.sessions
	}
	options.LoginFailed = s.governance.loginFailed
	s.observability.observeMCP(options)
	h := s.plugins.host.Load()
	if f.mcp, err = mcpserver.New(h.Catalog(), h, options); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	s.observability.showMCP(f.mcp)
	f.unwatch = s.governance.policy.Watch(f.mcp.ToolsChanged)
	return nil
}

// drain waits for calls in flight until the grace period ends.
func (f *mcpFrontend) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.server.Grace())
	defer cancel()
	return f.mcp.Shutdown(ctx)
}

func (f *mcpFrontend) stop() error {
	f.unwatch()
	_ = f.mcp.Close() // drain has reported what matters
	f.login.Close()
	return nil
}

func (*mcpFrontend) keys() []string {
	return []string{
		"mcp.instructions", "mcp.listTTL", "mcp.limits", "locale", "toolset", "toolsets", "http.auth", "http.origins",
		"http.hosts", "http.trustedProxies", "outbound.proxy",
	}
}

func (f *mcpFrontend) prepare(ctx context.Context, next *config.Config) (*change, error) {
	login, err := f.newLogin(ctx, next)
	if err != nil {
		return nil, err
	}
	a, err := f.authenticator(next, login)
	if err != nil {
		login.Close()
		return nil, err
	}
	options := mcpOptions(next, a, f.server.Build.Version)
	options.Authorization = login.Handler()
	apply, err := f.mcp.Reconfigure(options)
	if err != nil {
		login.Close()
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c := silently(func() {
		apply()
		f.login.Close()
		f.login = login
	})
	c.discard = login.Close
	return c, nil
}

// stdio is the part that serves the client that started this process. The server ends when the client disconnects.
type stdio struct {
	server *Server
	mcp    *mcpFrontend
}

func (*stdio) start(context.Context) error { return nil }

func (f *stdio) run(ctx context.Context) error {
	if err := f.mcp.mcp.ServeStdio(ctx, f.server.In, f.server.Out); err != nil {
		return err
	}
	return errDone
}
