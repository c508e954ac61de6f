package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where the handler answers MCP.
const Path = "/mcp"

// Handler returns the handler of the HTTP endpoint, for Path and, with OAuth, for the metadata below /.well-known/.
//
// Requests must name an allowed host, and an allowed origin if they name one; a refusal says what is wrong and nothing more.
// Both eras share the endpoint: a request belongs to the era of its Mcp-Protocol-Version header. NewHTTPServer returns a server
// for it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) { s.serveMCP(w.(*response), r) })
	if auth := s.options.Auth; auth != nil && auth.oauth != nil {
		mux.HandleFunc("GET "+metadataPath, auth.serveMetadata)
		mux.HandleFunc("GET "+metadataPath+Path, auth.serveMetadata)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		response := newResponse(w, s.options.KeepAlive)
		defer response.close()
		defer s.recoverHTTP(response)
		if s.guard.allows(response, r) {
			mux.ServeHTTP(response, r)
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
	s.legacy = handler(mcp.StreamableHTTPOptions{}) // s.sessions ends those that are idle
	s.modern = handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	s.modernJSON = handler(mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, JSONResponse: true})
}

// exchange is one HTTP request and its response, as the calls that it causes see it.
type exchange struct {
	identity *Identity
	// address is where it comes from, requestID the ID of its message. They are for records.
	address, requestID string
	// gone ends when the client has left before its answer. It is there for requests that the SDK answers.
	gone  context.Context
	leave context.CancelFunc
}

// owner is the key of the user who sends the request, empty without authentication.
func (over *exchange) owner() string {
	if over.identity == nil {
		return ""
	}
	return over.identity.key()
}

// forSDK returns the request as the SDK's handlers need it.
func (over *exchange) forSDK(r *http.Request) *http.Request {
	over.gone, over.leave = context.WithCancel(context.Background())
	r.Header.Set("Authorization", "Bearer verified") // what they look for; nobody needs the token from here on
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, over))
}

type exchangeKey struct{}

// withExchange passes the exchange in the request's context on to the SDK's handlers. Their way for that is the token's info:
// it comes with every message, while the contexts of handlers up to 2025-11-25 are those of the session's first request.
func withExchange(handler http.Handler) http.Handler {
	info := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		over := ctx.Value(exchangeKey{}).(*exchange)
		return &auth.TokenInfo{UserID: over.owner(), Extra: map[string]any{"exchange": over}}, nil
	}
	return auth.RequireBearerToken(info, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(handler)
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
		refuse(w, &busyError{reason: "the server is shutting down", retry: time.Second, everyone: true})
		return
	}
	identity, ok := s.options.Auth.authenticate(w, r)
	if !ok {
		return
	}
	over := &exchange{identity: identity, address: addressOf(r)}
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
func (s *Server) stream(w http.ResponseWriter, r *http.Request, over *exchange) {
	if err := s.limiter.allow(clientKey(r, over)); err != nil {
		refuse(w, err)
		return
	}
	r, cancel := untilExpiry(over.forSDK(r), over.identity)
	defer cancel()
	if isSessionless(r) {
		s.modern.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodDelete {
		s.sessions.remove(r.Header.Get("Mcp-Session-Id"), over.owner())
	}
	s.legacy.ServeHTTP(w, r)
}

func (s *Server) post(w *response, r *http.Request, over *exchange) {
	key := clientKey(r, over)
	if err := s.limiter.allow(key); err != nil {
		refuse(w, err)
		return
	}
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	call, ok := parsePlainCall(body)
	if !ok && !checkJSON(w, body) {
		return
	}
	over.requestID = requestID(call, body)
	listen := r.Header.Get("Mcp-Method") == methodListen && isSessionless(r)
	leave, err := s.limiter.enter(key, listen)
	if err != nil {
		if isSessionless(r) || envelopeOf(body).isCall() {
			refuse(w, err)
			return
		}
		leave = func() {} // a notification may be what cancels a call
	}
	defer leave()
	if isSessionless(r) {
		s.postSessionless(w, r, over, call, body, listen)
		return
	}
	s.postSession(w, r, over, call, body)
}

func (s *Server) postSessionless(w *response, r *http.Request, over *exchange, call *plainCall, body []byte, listen bool) {
	if err := decodeName(r.Header); err != nil {
		writeError(w, http.StatusBadRequest, envelopeOf(body).id(), mcp.CodeHeaderMismatch, err.Error())
		return
	}
	if s.callDirectly(w, r, over, call) {
		return
	}
	r = over.forSDK(r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if listen {
		var cancel context.CancelFunc
		r, cancel = untilExpiry(r, over.identity)
		defer cancel()
	}
	// One JSON object is cheaper than a stream of one event, but has no room for notifications before it.
	if listen || bytes.Contains(body, []byte(`"progressToken"`)) {
		s.modern.ServeHTTP(w, r)
		return
	}
	s.modernJSON.ServeHTTP(w, r)
}

func (s *Server) postSession(w *response, r *http.Request, over *exchange, call *plainCall, body []byte) {
	id := r.Header.Get("Mcp-Session-Id")
	session := s.sessions.enter(id, over.owner())
	defer session.leave()
	if s.callDirectlyIn(session, w, r, over, call) {
		return
	}
	r = over.forSDK(r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if id == "" {
		end, ok := s.open(w, r, body)
		if !ok {
			return
		}
		defer end()
	}
	s.legacy.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		// Without an event store nobody can fetch the answers any more.
		over.leave()
	}
}

// open admits a request that comes without a session: one that opens it. end must be called after it.
func (s *Server) open(w http.ResponseWriter, r *http.Request, body []byte) (end func(), ok bool) {
	message := envelopeOf(body)
	if message.Method != "initialize" {
		if bytes.Contains(body, []byte(`"`+mcp.MetaKeyProtocolVersion+`"`)) {
			s.modern.ServeHTTP(w, r) // it knows how to say which header is missing
			return nil, false
		}
		writeError(w, http.StatusBadRequest, message.id(), jsonrpc.CodeInvalidRequest,
			`Send "initialize" first, and then its Mcp-Session-Id header with every request.`)
		return nil, false
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.pending+s.sessions.count() >= s.options.Limits.Sessions {
		refuse(w, &busyError{reason: "all sessions are in use; try again later", retry: time.Minute, everyone: true})
		return nil, false
	}
	s.pending++
	return func() {
		s.opening.Lock()
		defer s.opening.Unlock()
		s.pending--
	}, true
}

// untilExpiry ends a stream when the token that opened it expires.
func untilExpiry(r *http.Request, identity *Identity) (*http.Request, context.CancelFunc) {
	if identity == nil || identity.Expires.IsZero() {
		return r, func() {}
	}
	ctx, cancel := context.WithDeadline(r.Context(), identity.Expires)
	return r.WithContext(ctx), cancel
}

// clientKey tells clients apart for the limits.
func clientKey(r *http.Request, over *exchange) string {
	if over.identity != nil {
		return "user " + over.identity.key()
	}
	return "address " + addressOf(r)
}
