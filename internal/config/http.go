package config

import (
	"net"
	"time"

	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/mcpserver/auth"
	mcplimits "github.com/hako-run/hako/host/mcpserver/limits"
)

// HTTP is where and for whom MCP is served over HTTP.
type HTTP struct {
	Address         string
	TLSCert, TLSKey string
	Origins, Hosts  []string
	// TrustedProxies are those whose X-Forwarded-For is believed, by MCP and the console.
	TrustedProxies []string
	// Auth is who may come in: anybody where it names no tokens and no issuers.
	Auth  auth.Options
	OAuth auth.OAuth
}

func (h *HTTP) table() []setting {
	return []setting{
		{key: "http.address", value: &h.Address, fallback: "127.0.0.1:8420"},
		{key: "http.tls.cert", value: &h.TLSCert, path: true},
		{key: "http.tls.key", value: &h.TLSKey, path: true},
		{key: "http.origins", value: &h.Origins},
		{key: "http.hosts", value: &h.Hosts},
		{key: "http.trustedProxies", value: &h.TrustedProxies},
		{key: "http.auth.scopes", value: &h.Auth.Scopes},
		{key: "http.auth.oauth.resource", value: &h.OAuth.Resource},
		{key: "http.auth.oauth.audience", value: &h.OAuth.Audience},
		{key: "http.auth.oauth.userClaim", value: &h.OAuth.UserClaim, fallback: "sub"},
		{key: "http.auth.oauth.tenantClaim", value: &h.OAuth.TenantClaim},
		{key: "http.auth.oauth.groupsClaim", value: &h.OAuth.GroupsClaim},
		{key: "http.auth.oauth.strict", value: &h.OAuth.Strict},
	}
}

// Authenticator returns what checks tokens, or nil where nobody needs one. It fails if a token or an issuer is
// malformed.
func (h *HTTP) Authenticator() (*auth.Auth, error) {
	options := h.Auth
	if h.OAuth.Resource != "" || len(h.OAuth.Issuers) > 0 {
		options.OAuth = &h.OAuth
	}
	if len(options.Tokens) == 0 && options.OAuth == nil && len(options.Scopes) == 0 {
		return nil, nil
	}
	return auth.New(options)
}

// MCP is what the server tells MCP clients and grants them, over HTTP and stdio.
type MCP struct {
	Instructions string
	PageSize     int
	ListTTL      time.Duration
	Limits       mcplimits.Limits
}

func (m *MCP) table() []setting {
	l := &m.Limits
	return []setting{
		{key: "mcp.instructions", value: &m.Instructions},
		{key: "mcp.pageSize", value: &m.PageSize, fallback: "1000"},
		{key: "mcp.listTTL", value: &m.ListTTL, fallback: "10s"},
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

// URL is where clients on this machine find the MCP endpoint.
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
