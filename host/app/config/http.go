package config

import (
	"net"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	mcplimits "github.com/hako-run/hako/host/frontend/mcpserver/limits"
)

// HTTP configures MCP over HTTP: its addresses and who may use it.
type HTTP struct {
	Address         string
	TLSCert, TLSKey string
	Origins, Hosts  []string
	// TrustedProxies are those whose X-Forwarded-For is believed, by MCP and the console.
	TrustedProxies []string
	// Auth decides who may come in: anybody where it names no tokens and no issuers.
	Auth  auth.Options
	OAuth auth.OAuth
	// Introspection counts where it has a URL.
	Introspection auth.Introspection
	// Login is hako's own authorization server. It counts where its provider has an issuer.
	Login authserver.Options
}

func (h *HTTP) table() []setting {
	return []setting{
		{key: "http.address", value: &h.Address, fallback: "127.0.0.1:8420"},
		{key: "http.tls.cert", value: &h.TLSCert, path: true},
		{key: "http.tls.key", value: &h.TLSKey, path: true},
		{key: "http.origins", value: &h.Origins},
		{key: "http.hosts", value: &h.Hosts},
		{key: "http.trustedProxies", value: &h.TrustedProxies},
		{key: "http.auth.required", value: &h.Auth.Required},
		{key: "http.auth.scopes", value: &h.Auth.Scopes},
		{key: "http.auth.oauth.resource", value: &h.OAuth.Resource},
		{key: "http.auth.oauth.audience", value: &h.OAuth.Audience},
		{key: "http.auth.oauth.userClaim", value: &h.OAuth.UserClaim, fallback: "sub"},
		{key: "http.auth.oauth.tenantClaim", value: &h.OAuth.TenantClaim},
		{key: "http.auth.oauth.groupsClaim", value: &h.OAuth.GroupsClaim},
		{key: "http.auth.oauth.strict", value: &h.OAuth.Strict},
		{key: "http.auth.oauth.introspection.url", value: &h.Introspection.URL},
		{key: "http.auth.oauth.introspection.clientId", value: &h.Introspection.ClientID},
		{key: "http.auth.oauth.introspection.clientSecret", value: &h.Introspection.ClientSecret},
		{key: "http.auth.oauth.introspection.issuer", value: &h.Introspection.Issuer},
		{key: "http.auth.proxy.issuer", value: &h.Login.Provider.Issuer},
		{key: "http.auth.proxy.clientId", value: &h.Login.Provider.ClientID},
		{key: "http.auth.proxy.clientSecret", value: &h.Login.Provider.ClientSecret},
		{key: "http.auth.proxy.scopes", value: &h.Login.Provider.Scopes},
		{key: "http.auth.proxy.optionalScopes", value: &h.Login.OptionalScopes},
		{key: "http.auth.proxy.userClaim", value: &h.Login.Provider.UserClaim, fallback: "email"},
		{key: "http.auth.proxy.groupsClaim", value: &h.Login.Provider.GroupsClaim, fallback: "groups"},
		{key: "http.auth.proxy.tenantClaim", value: &h.Login.Provider.TenantClaim},
		{key: "http.auth.proxy.lifetime", value: &h.Login.Lifetime, fallback: "168h"},
	}
}

// AuthorizationServer returns the options of hako's own authorization server, or nil where there is none.
func (h *HTTP) AuthorizationServer() *authserver.Options {
	if h.Login.Provider.Issuer == "" {
		return nil
	}
	options := h.Login
	options.Resource, options.Scopes, options.TrustedProxies = h.OAuth.Resource, h.Auth.Scopes, h.TrustedProxies
	options.Proxy = h.OAuth.Proxy
	return &options
}

// Authentication returns the options of what checks tokens, or nil where nobody needs one. own is hako's own
// authorization server, and may be nil. The caller adds what a running server has: Issued, Now and Logger.
func (h *HTTP) Authentication(own auth.AuthorizationServer) *auth.Options {
	options := h.Auth
	if h.OAuth.Resource != "" || len(h.OAuth.Issuers) > 0 {
		oauth := h.OAuth
		oauth.Server = own
		if h.Introspection.URL != "" {
			oauth.Introspection = &h.Introspection
		}
		options.OAuth = &oauth
	}
	if !options.Required && len(options.Tokens) == 0 && options.OAuth == nil && len(options.Scopes) == 0 {
		return nil
	}
	return &options
}

// MCP configures what the server tells MCP clients and grants them, over HTTP and stdio.
type MCP struct {
	Instructions string
	PageSize     int
	ListTTL      time.Duration
	MaxResult    int64
	Limits       mcplimits.Limits
}

func (m *MCP) table() []setting {
	l := &m.Limits
	return []setting{
		{key: "mcp.instructions", value: &m.Instructions},
		{key: "mcp.pageSize", value: &m.PageSize, fallback: "1000"},
		{key: "mcp.listTTL", value: &m.ListTTL, fallback: "10s"},
		{key: "mcp.maxResult", value: &m.MaxResult, fallback: "1MiB"},
		{key: "mcp.limits.sessions", value: &l.Sessions, fallback: "1024"},
		{key: "mcp.limits.sessionsPerClient", value: &l.SessionsPerClient},
		{key: "mcp.limits.sessionIdle", value: &l.SessionIdle, fallback: "30m"},
		{key: "mcp.limits.message", value: &l.Message, fallback: "4MiB"},
		{key: "mcp.limits.calls", value: &l.Calls, fallback: "1024"},
		{key: "mcp.limits.callsPerClient", value: &l.CallsPerClient, fallback: "256"},
		{key: "mcp.limits.rate", value: &l.Rate, fallback: "1000"},
		{key: "mcp.limits.burst", value: &l.Burst},
	}
}

// URL is the MCP endpoint for clients on this machine.
func (h *HTTP) URL() string {
	scheme, address := "http", h.Address
	if h.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return scheme + "://" + address + mcpserver.Path
}
