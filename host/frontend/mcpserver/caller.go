package mcpserver

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/text/language"

	"github.com/hako-run/hako/host/pipeline"
	"github.com/hako-run/hako/host/trace"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/httpserver"
	"github.com/hako-run/hako/pdk/abi"
)

// The caller of a request: the verified parts, on which decisions are based, and the client's own claims, which are
// only recorded.

// newCall returns the pipeline's call for a request that the SDK has decoded, with the caller. meta is the request's
// metadata.
func (s *Server) newCall(req mcp.Request, meta mcp.Meta, request abi.Request) *pipeline.Call {
	session := req.GetSession().(*mcp.ServerSession)
	call := &pipeline.Call{Request: request, Caller: pipeline.Caller{Frontend: pipeline.FrontendStdio,
		RequestID: lineID(req.GetExtra())}}
	if x := exchangeOf(req.GetExtra()); x != nil {
		call = x.newCall(req.GetExtra().Header, session.ID(), request)
	}
	setClient(&call.Caller, clientOf(session, meta))
	if parent, _ := meta[trace.ParentKey].(string); parent != "" {
		state, _ := meta[trace.StateKey].(string)
		setTrace(&call.Caller, parent, state)
	}
	return call
}

// newCall returns the pipeline's call for a request over HTTP. session may be empty.
func (x *exchange) newCall(header http.Header, session string, request abi.Request) *pipeline.Call {
	call := &pipeline.Call{Request: request, Caller: pipeline.Caller{
		Frontend: pipeline.FrontendHTTP, Session: shortID(session), SessionSecret: session,
		Locale: locale(header.Get("Accept-Language")), Toolset: x.toolset, Address: x.address,
		RequestID: x.requestID, HTTPRequestID: clipped(header.Get(httpserver.RequestID)),
	}}
	setTrace(&call.Caller, header.Get(trace.ParentKey), header.Get(trace.StateKey))
	if x.identity != nil {
		by, caller := x.identity, &call.Caller
		caller.User, caller.Tenant, caller.Token = by.User, by.Tenant, by.Token
		caller.Groups, caller.Scopes = by.Groups, by.Scopes
	}
	return call
}

// locale returns the language that an Accept-Language header (RFC 9110, section 12.5.4) prefers, or "".
func locale(header string) string {
	if header == "" || len(header) > 256 {
		return ""
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(tags) == 0 || tags[0] == language.Und || header == "*" {
		return ""
	}
	return tags[0].String()
}

// shortID identifies a session in logs without its whole ID, which would let others use it.
func shortID(id string) string { return id[:min(len(id), 8)] }

// clientOf returns the client's own name and version, from the request's metadata (2026-07-28) or from the opening of
// the session. It may be nil.
func clientOf(session *mcp.ServerSession, meta mcp.Meta) *mcp.Implementation {
	if value, ok := meta[mcp.MetaKeyClientInfo]; ok {
		encoded, err := json.Marshal(value)
		info := new(mcp.Implementation)
		if err == nil && json.Unmarshal(encoded, info) == nil {
			return info
		}
	}
	if params := session.InitializeParams(); params != nil {
		return params.ClientInfo
	}
	return nil
}

// maxDescription bounds a client's own name and version in records, in bytes.
const maxDescription = 128

// setClient adds the client's own name and version.
func setClient(caller *pipeline.Caller, info *mcp.Implementation) {
	if info != nil {
		caller.Client, caller.ClientVersion = clipped(info.Name), clipped(info.Version)
	}
}

func clipped(text string) string { return clip.Bytes(text, maxDescription) }

// Keys of the ID and the connection of a message over stdio, in the values that the SDK passes with it.
const (
	lineKey = "id"
	connKey = "connection"
)

// withLine adds the message's ID and connection for lineID and notifierOf, which the SDK does not pass.
func withLine(request *jsonrpc.Request, conn *stdioConn) {
	request.Extra = &mcp.RequestExtra{TokenInfo: &sdkauth.TokenInfo{
		Extra: map[string]any{lineKey: textOfID(request.ID.Raw()), connKey: conn}}}
}

// notifier sends notifications to a client.
type notifier interface {
	Notify(ctx context.Context, method string, params any) error
}

// notifierOf returns the connection that a message came over.
func notifierOf(extra *mcp.RequestExtra) notifier {
	if x := exchangeOf(extra); x != nil {
		return x.conn
	}
	conn, _ := extra.TokenInfo.Extra[connKey].(*stdioConn)
	return conn
}

// lineID is the JSON-RPC ID of a message over stdio.
func lineID(extra *mcp.RequestExtra) string {
	if extra == nil || extra.TokenInfo == nil {
		return ""
	}
	id, _ := extra.TokenInfo.Extra[lineKey].(string)
	return id
}

// textOfID returns a JSON-RPC ID for records.
func textOfID(id any) string {
	switch id := id.(type) {
	case nil:
		return ""
	case string:
		return clipped(id)
	default:
		return clipped(fmt.Sprint(id))
	}
}

// setTrace sets the trace that the caller names, if it is valid. A trace in _meta takes precedence over the headers.
func setTrace(caller *pipeline.Caller, parent, state string) {
	if id := traceID(parent); id != "" {
		caller.TraceID, caller.Trace = id, trace.Remote{Parent: parent, State: state}
	}
}

// traceID is the trace of a traceparent (W3C Trace Context, section 3.2), or empty if that is none.
func traceID(parent string) string {
	parts := strings.Split(parent, "-")
	if len(parent) < 55 || len(parent) > maxDescription || len(parts) < 4 || len(parts[1]) != 32 ||
		parts[1] != strings.ToLower(parts[1]) || parts[0] == "ff" {
		return ""
	}
	if id, err := hex.DecodeString(parts[1]); err != nil || strings.Trim(string(id), "\x00") == "" {
		return ""
	}
	return parts[1]
}
