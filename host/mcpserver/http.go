package mcpserver

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/host/mcpserver/limits"
)

// Path is where the handler answers MCP.
const Path = "/mcp"

// Handler returns the handler of the HTTP endpoint, for Path and, with OAuth, for the metadata below /.well-known/.
//
// Requests must name an allowed host, and an allowed origin if they name one; a refusal says what is wrong and nothing
// more. Both eras share the endpoint: a request belongs to the era of its Mcp-Protocol-Version header. It is served by
// a server of package httpserver, which limits the time that requests take to arrive.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) { s.serveMCP(w.(*response), r) })
	metadata := func(w http.ResponseWriter, r *http.Request) { s.now().Auth.ServeMetadata(w, r) }
	mux.HandleFunc("GET "+auth.MetadataPath, metadata)
	mux.HandleFunc("GET "+auth.MetadataPath+Path, metadata)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		response := newResponse(w, s.options.KeepAlive)
		defer response.close()
		defer s.recoverHTTP(response)
		if reason, ok := s.now().guard.Allows(response, r); ok {
			mux.ServeHTTP(response, r)
		} else if reason != "" {
			s.options.Observer.RequestRefused(reason)
		}
	})
}

func (s *Server) newHandlers() {
	handler := func(options mcp.StreamableHTTPOptions) http.Handler {
		options.Logger = quiet(s.options.Logger)
		// The guard and readBody do both better.
		options.DisableLocalhostProtection = true
		options.MaxRequestBodyBytes = -1
		return withExchange(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &options))
	}
	var legacy mcp.StreamableHTTPOptions // s.sessions ends those that are idle
	if s.shared != nil {
		legacy.EventStore = s.shared.events
	}
	s.legacy = handler(legacy)
	s.modern = handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	s.modernJSON = handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true,
		JSONResponse: true})
}

// exchange is one HTTP request and its response, as the calls that it causes see it.
type exchange struct {
	identity *auth.Identity
	// under are the options that let the request in.
	under *live
	// address is where it comes from, requestID the ID of its message. They are for records.
	address, requestID string
	// gone ends when the client has left before its answer. It is there for requests that the SDK answers.
	gone  context.Context
	leave context.CancelFunc
	// again, if not nil, is the session whose client once sent what the SDK gets once more (revive.go).
	again *session
	// requests are the IDs of those whose answers are kept for who is cut off.
	requests []json.RawMessage
}

// owner is the key of the user who sends the request, empty without authentication.
func (over *exchange) owner() string {
	if over.identity == nil {
		return ""
	}
	return over.identity.Key()
}

// forSDK returns the request as the SDK's handlers need it.
func (over *exchange) forSDK(r *http.Request) *http.Request {
	over.gone, over.leave = context.WithCancel(context.Background())
	r.Header.Set("Authorization", "Bearer verified") // what they look for; nobody needs the token from here on
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, over))
}

type exchangeKey struct{}

// withExchange passes the exchange in the request's context on to the SDK's handlers. Their way for that is the token's
// info: it comes with every message, while the contexts of handlers up to 2025-11-25 are those of the session's first
// request.
func withExchange(handler http.Handler) http.Handler {
	info := func(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		over := ctx.Value(exchangeKey{}).(*exchange)
		return &sdkauth.TokenInfo{UserID: over.owner(), Extra: map[string]any{"exchange": over}}, nil
	}
	return sdkauth.RequireBearerToken(info, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
}

// exchangeOf returns the exchange that a message came with, or nil on stdio.
func exchangeOf(extra *mcp.RequestExtra) *exchange {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	over, _ := extra.TokenInfo.Extra["exchange"].(*exchange)
	return over
}

func (s *Server) serveMCP(w *response, r *http.Request) {
	if s.draining.Err() != nil {
		w.Header().Set("Connection", "close")
		s.refuse(
			w,
			RefusedDraining,
			&limits.BusyError{Reason: "the server is shutting down", Retry: time.Second, Everyone: true},
		)
		return
	}
	now := s.now()
	address := now.proxies.Address(r)
	identity, err := now.Auth.Authenticate(w, r)
	if errors.Is(err, auth.ErrUnavailable) {
		refuse(
			w,
			&limits.BusyError{
				Reason:   "tokens cannot be verified at the moment",
				Retry:    10 * time.Second,
				Everyone: true,
			},
		)
	}
	if err != nil {
		s.options.Observer.RequestRefused(RefusedAuth)
		s.failedLogin(address, identity, err)
		return
	}
	over := &exchange{identity: identity, under: now, address: address}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, over)
	case http.MethodGet, http.MethodDelete:
		s.stream(w, r, over)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "This endpoint takes GET, POST and DELETE.", http.StatusMethodNotAllowed)
	}
}

// FailedLogin is a request whose token was refused. User, Tenant and Token, its name, are empty unless they are proven.
type FailedLogin struct {
	Address, User, Tenant, Token string
	// Err is why, in words without anything of the token.
	Err error
}

// failedLogin tells Options.LoginFailed. A request without a token is how clients find out that they need one.
func (s *Server) failedLogin(address string, by *auth.Identity, err error) {
	if s.options.LoginFailed == nil || errors.Is(err, auth.ErrNoToken) || errors.Is(err, auth.ErrUnavailable) {
		return
	}
	if _, wait := s.failedLogins.Begin(address, time.Now()); wait > 0 {
		return
	}
	failed := FailedLogin{Address: address, Err: err}
	if by != nil {
		failed.User, failed.Tenant, failed.Token = by.User, by.Tenant, by.Token
	}
	s.options.LoginFailed(failed)
}

func (s *Server) recoverHTTP(w http.ResponseWriter) {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	s.logPanic("HTTP", cause)
	http.Error(w, internalText, http.StatusInternalServerError)
}

// isSessionless reports whether a request is of the era without sessions.
func isSessionless(r *http.Request) bool { return r.Header.Get("Mcp-Protocol-Version") >= sessionless }

// stream serves what has no body: a session's event stream and its end.
func (s *Server) stream(w *response, r *http.Request, over *exchange) {
	if err := s.limiter.Allow(clientKey(over), 1); err != nil {
		s.refuse(w, RefusedRate, err)
		return
	}
	r, cancel := over.under.whileValid(over.forSDK(r), over.identity)
	defer cancel()
	if isSessionless(r) {
		s.modern.ServeHTTP(w, r)
		return
	}
	session, ok := s.sessionOf(w, r, over)
	if !ok {
		return
	}
	if session != nil && r.Method == http.MethodGet {
		defer session.listen()()
	}
	switch {
	case session != nil && s.shared != nil && r.Method == http.MethodDelete:
		s.shared.end(w, r, session)
	case session != nil && s.shared != nil:
		s.shared.listen(w, r, session)
	default:
		if r.Method == http.MethodDelete {
			s.sessions.remove(r.Header.Get("Mcp-Session-Id"), over.owner())
		}
		s.legacy.ServeHTTP(w, r)
	}
}

// sessionOf returns the session that a request names, or answers it and returns false if there is none, as the SDK
// does, or if it is somebody else's, which must look the same. It is nil if the request names none.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, over *exchange) (*session, bool) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		return nil, true
	}
	session := s.sessions.of(id)
	if session == nil && s.shared != nil {
		var err error
		if session, err = s.shared.find(r.Context(), id, over); err != nil {
			s.shared.unreachable(w, err)
			return nil, false
		}
	}
	if session == nil || session.owner != over.owner() {
		http.Error(w, notFound, http.StatusNotFound)
		return nil, false
	}
	return session, true
}

func (s *Server) post(w *response, r *http.Request, over *exchange) {
	begin, key := time.Now(), clientKey(over)
	if err := s.limiter.Allow(key, 1); err != nil {
		s.refuse(w, RefusedRate, err)
		return
	}
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	size := plainSize
	call, ok := parsePlainCall(body)
	if !ok {
		if size, ok = s.checkMessages(w, r, body); !ok {
			return
		}
		if err := s.limiter.Allow(key, size.messages-1); err != nil {
			s.refuse(w, RefusedRate, err)
			return
		}
	}
	over.requestID = requestID(call, body)
	listen := r.Header.Get("Mcp-Method") == methodListen && isSessionless(r)
	if listen {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		r = r.WithContext(ctx)
		leave, err := s.limiter.EnterStream(key, end)
		if err != nil {
			s.refuse(w, RefusedSessions, err)
			return
		}
		defer leave()
	} else {
		leave, err := s.limiter.Enter(key, max(1, size.calls))
		if err != nil {
			if isSessionless(r) || size.calls > 0 {
				s.refuse(w, RefusedBusy, err)
				return
			}
			leave = func() {} // a notification may be what cancels a call
		}
		defer leave()
	}
	defer s.observed(isSessionless(r), call, body, begin)
	if isSessionless(r) {
		s.postSessionless(w, r, over, call, body, size, listen)
		return
	}
	s.postSession(w, r, over, call, body, size)
}

func (s *Server) postSessionless(w *response, r *http.Request, over *exchange, call *plainCall, body []byte,
	size messageSize, listen bool) {
	if err := decodeName(r.Header); err != nil {
		writeError(w, http.StatusBadRequest, envelopeOf(body).id(), mcp.CodeHeaderMismatch, err.Error())
		return
	}
	if wrong := size.wrong; wrong != nil &&
		wrong.code != jsonrpc.CodeMethodNotFound { // which the SDK answers as JSON, with 404
		writeError(w, http.StatusBadRequest, wrong.id, wrong.code, wrong.text)
		return
	}
	if s.callDirectly(w, r, over, call) || s.shared != nil && s.shared.handOn(w, r, over, body) {
		return
	}
	r = over.forSDK(r)
	if listen {
		var cancel context.CancelFunc
		r, cancel = over.under.whileValid(r, over.identity)
		defer cancel()
	}
	s.serveSessionless(w, r, body, listen)
}

// serveSessionless has the SDK answer a request.
func (s *Server) serveSessionless(w http.ResponseWriter, r *http.Request, body []byte, listen bool) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	// One JSON object is cheaper than a stream of one event, but has no room for notifications before it.
	if listen || bytes.Contains(body, []byte(`"progressToken"`)) {
		s.modern.ServeHTTP(w, r)
		return
	}
	s.modernJSON.ServeHTTP(w, r)
}

func (s *Server) postSession(w *response, r *http.Request, over *exchange, call *plainCall, body []byte,
	size messageSize) {
	session, ok := s.sessionOf(w, r, over)
	if !ok {
		return
	}
	if size.batch && session != nil && !session.takesBatches(r.Header) {
		s.refuseMessage(w, jsonrpc.ID{}, jsonrpc.CodeInvalidRequest, noBatches)
		return
	}
	session.enter()
	defer session.leave()
	if session != nil && s.refuseMethod(w, size) {
		return
	}
	if s.callDirectlyIn(session, w, r, over, call) {
		return
	}
	r = over.forSDK(r)
	if session != nil && s.shared != nil {
		s.shared.serve(w, r, over, session, body)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if session == nil {
		if !s.opens(w, r, body) {
			return
		}
		if s.shared != nil {
			s.shared.naming.serve(s.legacy, crand.Text(), w, r)
			return
		}
	}
	s.legacy.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		// Without an event store nobody can fetch the answers any more.
		over.leave()
	}
}

// opens reports whether a request that comes without a session opens one, and answers it otherwise.
func (s *Server) opens(w http.ResponseWriter, r *http.Request, body []byte) bool {
	message := envelopeOf(body)
	if message.Method == "initialize" {
		if len(body) > maxOpening {
			writeError(w, http.StatusBadRequest, message.id(), jsonrpc.CodeInvalidParams,
				"What the client says of itself is larger than 64 KiB.")
		}
		return len(body) <= maxOpening
	}
	if bytes.Contains(body, []byte(`"`+mcp.MetaKeyProtocolVersion+`"`)) {
		s.modern.ServeHTTP(w, r) // it knows how to say which header is missing
		return false
	}
	writeError(w, http.StatusBadRequest, message.id(), jsonrpc.CodeInvalidRequest,
		`Send "initialize" first, and then its Mcp-Session-Id header with every request.`)
	return false
}

// untilExpiry ends a stream when the token that opened it expires.
func (l *live) untilExpiry(r *http.Request, identity *auth.Identity) (*http.Request, context.CancelFunc) {
	if identity == nil || identity.Expires.IsZero() || l.Auth == nil {
		return r, func() {}
	}
	ctx, cancel := context.WithTimeout(r.Context(), identity.Expires.Sub(l.Auth.Now()))
	return r.WithContext(ctx), cancel
}

// clientKey tells clients apart for the limits. Whoever has one address of IPv6 has the 2^64 of its network.
func clientKey(over *exchange) string {
	if over.identity != nil {
		return "user " + over.identity.Key()
	}
	if address, err := netip.ParseAddr(over.address); err == nil && address.Is6() && !address.Is4In6() {
		network, _ := address.WithZone("").Prefix(64) // it has that many bits
		return "address " + network.String()
	}
	return "address " + over.address
}
