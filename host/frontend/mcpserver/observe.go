package mcpserver

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
)

// Observer sees every request at the frontend. Its methods are called concurrently and must be quick. Every argument
// that is a text is one of a fixed set.
type Observer interface {
	// RequestAnswered is called for each accepted request or notification, with the mode of the protocol, the method or
	// methodOther, and the time until the answer was sent.
	RequestAnswered(mode, method string, took time.Duration)
	// RequestRefused is called for each request over HTTP that was not accepted, with one of RefusalReasons.
	RequestRefused(reason string)
}

// Modes of the protocol.
const (
	modeSession   = "session"   // up to 2025-11-25
	modeStateless = "stateless" // from 2026-07-28
)

// methodOther stands for methods that MCP does not have.
const methodOther = "other"

// Reasons for refusals.
const (
	refusedHost     = auth.RefusedHost
	refusedOrigin   = auth.RefusedOrigin
	refusedAuth     = "auth"     // it has no valid token, or one without the right
	refusedRate     = "rate"     // its client sends too many
	refusedBusy     = "busy"     // too many are in flight
	refusedSessions = "sessions" // too many subscription streams are open
	refusedSize     = "size"     // its message is too large
	refusedInvalid  = "invalid"  // its message is no JSON-RPC, or did not arrive whole
	refusedDraining = "draining" // the server is shutting down
)

// RefusalReasons lists them all.
var RefusalReasons = []string{
	refusedHost, refusedOrigin, refusedAuth, refusedRate, refusedBusy, refusedSessions, refusedSize, refusedInvalid,
	refusedDraining,
}

// unobserved is the Observer where there is none.
type unobserved struct{}

func (unobserved) RequestAnswered(string, string, time.Duration) {}
func (unobserved) RequestRefused(string)                         {}

// observedStdio observes a request over stdio. Requests over HTTP are observed in the handler.
func (s *Server) observedStdio(method string, req mcp.Request, begin time.Time) {
	if exchangeOf(req.GetExtra()) != nil {
		return
	}
	mode := modeStateless
	if session, ok := req.GetSession().(*mcp.ServerSession); ok && session.InitializeParams() != nil {
		mode = modeSession
	}
	s.observed(mode, method, begin)
}

// observed reports a request that has been answered.
func (s *Server) observed(mode, method string, begin time.Time) {
	if !transport.Known(method) {
		method = methodOther
	}
	s.options.Observer.RequestAnswered(mode, method, time.Since(begin))
}

// Load returns the current load.
func (s *Server) Load() connection.Load {
	var load connection.Load
	load.Requests, load.Streams = s.limiter.InUse()
	load.Sessions = s.sessions.count()
	return load
}
