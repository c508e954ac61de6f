package mcpserver

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/govern/toolset"
	"github.com/hako-run/hako/host/trace"
)

// Options configures a Server. A nil *Options means all defaults.
type Options struct {
	// Name, Title, Version, Website and Icon (an SVG, as a URL or data URI) describe the server to clients. An empty
	// Name means "hako", an empty Version "dev".
	Name, Title, Version, Website, Icon string
	// Instructions tell a model how to use the tools. They may be empty; then Overview has them list what is on offer
	// to the client.
	Instructions string
	Overview     bool
	// Toolsets are the selections of the catalog that the Pipeline offers; nil if there are none.
	Toolsets *toolset.Config
	// Language is the language of titles and descriptions, a BCP 47 tag. Empty means "en".
	Language string
	// PageSize is the most entries of one page of a list. Zero means 1,000.
	PageSize int
	// ListTTL is the time for which clients may keep a list (MCP 2026-07-28, caching). Zero means 10 s, a negative time
	// forbids keeping it.
	ListTTL time.Duration
	// MaxResult limits the text of a result that clients take at once, in bytes; see pipeline.Call. Zero means no
	// limit.
	MaxResult int
	// Limits bound what clients may use.
	Limits limits.Limits
	// Origins are web origins ("https://app.example.com") that may use the HTTP endpoint, apart from those on loopback
	// names. They alone also get CORS headers.
	Origins []string
	// Hosts are names, without port, under which the HTTP endpoint may be addressed, apart from loopback names.
	Hosts []string
	// TrustedProxies are the addresses of proxies, or networks in CIDR notation, whose X-Forwarded-For header has the
	// client's address, for limits and records.
	TrustedProxies []string
	// Sessions keeps sessions (up to MCP 2025-11-25), and connects this server with its other replicas: a client may
	// send each request to another one. Nil means a sessionstore.Memory, for a server that is alone.
	Sessions SessionStore
	// Auth decides who may use the HTTP endpoint. Nil admits everyone; auth.CheckExposure checks that the address
	// permits it.
	Auth *auth.Auth
	// Authorization is hako's own authorization server, for the paths that authserver.Handles names. Nil means none.
	Authorization http.Handler
	// KeepAlive is the interval of comments on event streams that are otherwise silent. Zero means 15 s.
	KeepAlive time.Duration
	// Grace is the time that calls in flight have to answer after a stdio client has closed its side. Zero means 5 s.
	Grace time.Duration
	// Extension adds tools, resources and prompts that no catalog can offer; nil adds nothing. It is for the fixtures
	// of the conformance suite.
	Extension *Extension
	// Tracer makes spans of requests that are not calls; the pipeline makes those of calls. Nil makes none.
	Tracer *trace.Tracer
	// LoginFailed is called for requests whose token was refused: for ten at once and one every ten seconds from each
	// address, and for 200 at once and five a second from all addresses. It may be nil.
	LoginFailed func(FailedLogin)
	// Observer may be nil.
	Observer Observer
	// Logger receives the server's records. Nil discards them.
	Logger *slog.Logger
}

// Extension adds tools, resources and prompts to the SDK's server that the catalog does not have. Calls of them bypass
// the pipeline.
type Extension struct {
	// Configure changes the options that the SDK's server is made with.
	Configure func(*mcp.ServerOptions)
	// Register adds tools, resources and prompts, and returns their names and URIs.
	Register func(*mcp.Server) (names []string)
}

func (o *Options) withDefaults() (Options, error) {
	var filled Options
	if o != nil {
		filled = *o
	}
	filled.Name = cmp.Or(filled.Name, "hako")
	filled.Version = cmp.Or(filled.Version, "dev")
	filled.Language = cmp.Or(filled.Language, "en")
	filled.PageSize = cmp.Or(filled.PageSize, 1000)
	filled.ListTTL = cmp.Or(filled.ListTTL, 10*time.Second)
	filled.KeepAlive = cmp.Or(filled.KeepAlive, 15*time.Second)
	filled.Grace = cmp.Or(filled.Grace, 5*time.Second)
	filled.Limits = filled.Limits.WithDefaults()
	if filled.Sessions == nil {
		filled.Sessions = sessionstore.NewMemory()
	}
	if filled.Observer == nil {
		filled.Observer = unobserved{}
	}
	if filled.Logger == nil {
		filled.Logger = slog.New(slog.DiscardHandler)
	}
	return filled, filled.check()
}

func (o *Options) check() error {
	for name, value := range map[string]int64{
		"page size":           int64(o.PageSize),
		"keep-alive interval": int64(o.KeepAlive),
		"grace":               int64(o.Grace),
	} {
		if value < 0 {
			return fmt.Errorf("mcp server: the %s is %d: give a positive one, or 0 for the default", name, value)
		}
	}
	if err := o.Limits.Check(); err != nil {
		return fmt.Errorf("mcp server: %w", err)
	}
	return nil
}
