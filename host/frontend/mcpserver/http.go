package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/frontend/mcpserver/authserver"
	"github.com/hako-run/hako/host/frontend/mcpserver/limits"
	"github.com/hako-run/hako/host/frontend/mcpserver/transport"
	"github.com/hako-run/hako/internal/httpserver"
)

// Path is the URL path at which the handler answers MCP.
const Path = "/mcp"

// Handler returns the handler of the HTTP endpoint, for Path, for each toolset below Path, with and without a slash at
// the end, and, with OAuth, for the metadata below /.well-known/ and the authorization server below authserver.Path.
// Requests must name an allowed host, and an allowed origin if they name any. All protocol versions share the endpoint:
// a request is of the version in its Mcp-Protocol-Version header. It is served by a server of package httpserver, which
// limits the time that requests take to arrive.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(w http.ResponseWriter, r *http.Request) { s.serveMCP(w.(*transport.Response), r) }
	for _, end := range []string{"", "/{$}"} { // many clients are given the URL with a slash at its end
		mux.HandleFunc(Path+end, serve)
		mux.HandleFunc(Path+"/{toolset}"+end, serve)
	}
	metadata := func(w http.ResponseWriter, r *http.Request) { s.now().Auth.ServeMetadata(w, r) }
	mux.HandleFunc("GET "+auth.MetadataPath, metadata)
	mux.HandleFunc("GET "+auth.MetadataPath+Path, metadata)
	mux.HandleFunc("GET "+auth.MetadataPath+Path+"/{toolset}", metadata)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if now := s.now(); now.Authorization != nil && authserver.Handles(r.URL.Path) {
			// Browsers come here from pages of other sites, and clients in browsers have any origin.
			if now.guard.AllowsHost(w, r) {
				now.Authorization.ServeHTTP(w, r)
			} else {
				s.options.Observer.RequestRefused(auth.RefusedHost)
			}
			return
		}
		response := transport.NewResponse(w, s.options.KeepAlive)
		defer response.Close()
		defer s.recoverHTTP(response)
		if reason, ok := s.now().guard.Allows(response, r); ok {
			mux.ServeHTTP(response, r)
		} else if reason != "" {
			s.options.Observer.RequestRefused(reason)
		}
	})
}

func (s *Server) serveMCP(w *transport.Response, r *http.Request) {
	if name := transport.Repeated(r.Header); name != "" {
		s.options.Observer.RequestRefused(refusedInvalid)
		http.Error(w, fmt.Sprintf("The %s header comes more than once: send it once.", name), http.StatusBadRequest)
		return
	}
	if s.draining.Err() != nil {
		w.Header().Set("Connection", "close")
		s.refuse(w, refusedDraining,
			&limits.BusyError{Reason: "the server is shutting down", Retry: time.Second, Everyone: true})
		return
	}
	now := s.now()
	address := now.proxies.Address(r)
	identity, err := now.Auth.Authenticate(w, r)
	if errors.Is(err, auth.ErrUnavailable) {
		refuse(w, &limits.BusyError{Reason: "tokens cannot be verified at the moment", Retry: 10 * time.Second,
			Everyone: true})
	}
	if err != nil {
		s.options.Observer.RequestRefused(refusedAuth)
		s.failedLogin(address, identity, err)
		return
	}
	if identity != nil {
		httpserver.SetUser(r.Context(), identity.User)
	}
	x := &exchange{identity: identity, under: now, address: address, toolset: r.PathValue("toolset")}
	if x.toolset != "" && !s.offersToolset(w, r, x) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, x)
	case http.MethodGet, http.MethodDelete:
		s.serveBodyless(w, r, x)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "This endpoint takes GET, POST and DELETE.", http.StatusMethodNotAllowed)
	}
}

// FailedLogin is a request whose token was refused. User, Tenant and Token, its name, are empty unless they are proven.
type FailedLogin struct {
	Address, User, Tenant, Token string
	// Err is the reason. Its text has no part of the token.
	Err error
}

// failedLogin reports a refused token to Options.LoginFailed. Requests without a token are not reported: clients find
// out with them that they need one.
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

func (s *Server) post(w *transport.Response, r *http.Request, x *exchange) {
	begin, key, sessionless := time.Now(), clientKey(x), transport.IsSessionless(r.Header)
	if err := s.limiter.Allow(key, 1); err != nil {
		s.refuse(w, refusedRate, err)
		return
	}
	raw, ok := s.readBody(w, r)
	if !ok {
		return
	}
	body, refused := transport.Decode(raw)
	if refused == nil && body.Batch && sessionless {
		refused = &transport.Refusal{Code: jsonrpc.CodeInvalidRequest, Text: transport.NoBatches}
	}
	if refused != nil {
		s.refuseMessage(w, refused)
		return
	}
	messages, requests := body.Size()
	if messages > 1 {
		if err := s.limiter.Allow(key, messages-1); err != nil {
			s.refuse(w, refusedRate, err)
			return
		}
	}
	x.requestID = textOfID(body.ID().Raw())
	if sessionless && r.Header.Get("Mcp-Method") == transport.MethodListen {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		leave, err := s.limiter.EnterStream(key, end)
		if err != nil {
			s.refuse(w, refusedSessions, err)
			return
		}
		defer leave()
		var cancel context.CancelFunc
		r, cancel = x.whileValid(r.WithContext(ctx))
		defer cancel()
	} else {
		leave, err := s.limiter.Enter(key, max(1, requests))
		if err == nil {
			defer leave()
		} else if sessionless || requests > 0 { // a notification may cancel a call
			s.refuse(w, refusedBusy, err)
			return
		}
	}
	mode := modeSession
	if sessionless {
		mode = modeStateless
	}
	defer s.observed(mode, body.Method(), begin)
	if sessionless {
		s.serveSessionless(w, r, x, body)
		return
	}
	s.serveInSession(w, r, x, body)
}
