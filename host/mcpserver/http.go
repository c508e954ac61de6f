package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/host/mcpserver/authserver"
	"github.com/hako-run/hako/host/mcpserver/limits"
	"github.com/hako-run/hako/host/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/mcpserver/transport"
	"github.com/hako-run/hako/internal/httpserver"
	"github.com/hako-run/hako/pdk/abi"
)

// Path is where the handler answers MCP.
const Path = "/mcp"

// Handler returns the handler of the HTTP endpoint, for Path and, with OAuth, for the metadata below /.well-known/ and
// the authorization server below authserver.Path.
//
// Requests must name an allowed host, and an allowed origin if they name one; a refusal says what is wrong and nothing
// more. All protocol versions share the endpoint: a request is of the version in its Mcp-Protocol-Version header. It is
// served by a server of package httpserver, which limits the time that requests take to arrive.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) { s.serveMCP(w.(*transport.Response), r) })
	metadata := func(w http.ResponseWriter, r *http.Request) { s.now().Auth.ServeMetadata(w, r) }
	mux.HandleFunc("GET "+auth.MetadataPath, metadata)
	mux.HandleFunc("GET "+auth.MetadataPath+Path, metadata)
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

// exchange is one HTTP request and its response, as the calls that it causes see it.
type exchange struct {
	identity *auth.Identity
	// under are the options that let the request in.
	under *live
	// address is where it comes from, requestID the ID of its message. They are for records.
	address, requestID string
	// gone ends when the client has left and nobody can fetch the answer any more; nil is never.
	gone context.Context
	// conn is the connection that its messages are delivered to, stream is where they are answered.
	conn   *transport.Conn
	stream *transport.Stream
}

// owner is the key of the user who sends the request, empty without authentication.
func (over *exchange) owner() string {
	if over.identity == nil {
		return ""
	}
	return over.identity.Key()
}

// exchangeKey is where an exchange is in what the SDK passes on with a message.
const exchangeKey = "exchange"

// extra accompanies a message to the SDK: exchangeOf finds the exchange in it.
func (over *exchange) extra(header http.Header) *mcp.RequestExtra {
	return &mcp.RequestExtra{
		TokenInfo: &sdkauth.TokenInfo{UserID: over.owner(), Extra: map[string]any{exchangeKey: over}}, Header: header,
		CloseSSEStream: func(args mcp.CloseSSEStreamArgs) {
			if over.stream != nil && !transport.IsSessionless(header) {
				over.stream.CloseForResumption(args.RetryAfter)
			}
		},
	}
}

// exchangeOf returns the exchange that a message came with, or nil on stdio.
func exchangeOf(extra *mcp.RequestExtra) *exchange {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	over, _ := extra.TokenInfo.Extra[exchangeKey].(*exchange)
	return over
}

func (s *Server) serveMCP(w *transport.Response, r *http.Request) {
	if name := transport.Repeated(r.Header); name != "" {
		s.options.Observer.RequestRefused(RefusedInvalid)
		http.Error(w, fmt.Sprintf("The %s header comes more than once: send it once.", name), http.StatusBadRequest)
		return
	}
	if s.draining.Err() != nil {
		w.Header().Set("Connection", "close")
		s.refuse(w, RefusedDraining,
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
		s.options.Observer.RequestRefused(RefusedAuth)
		s.failedLogin(address, identity, err)
		return
	}
	if identity != nil {
		httpserver.SetUser(r.Context(), identity.User)
	}
	over := &exchange{identity: identity, under: now, address: address}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, over)
	case http.MethodGet, http.MethodDelete:
		s.serveBodyless(w, r, over)
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

// failedLogin reports a refused token to Options.LoginFailed. A request without a token is how clients find out that
// they need one.
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

// serveBodyless serves what has no body: the event stream of a session, and its end.
func (s *Server) serveBodyless(w *transport.Response, r *http.Request, over *exchange) {
	if err := s.limiter.Allow(clientKey(over), 1); err != nil {
		s.refuse(w, RefusedRate, err)
		return
	}
	if transport.IsSessionless(r.Header) {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	r, cancel := over.under.whileValid(r, over.identity)
	defer cancel()
	session, ok := s.sessionOf(w, r, over)
	if !ok {
		return
	}
	if session == nil {
		http.Error(w, fmt.Sprintf("Bad Request: %s requires an Mcp-Session-Id header", r.Method), http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodDelete {
		s.replicas.end(w, r, session)
		return
	}
	defer session.listen()()
	s.listen(w, r, session)
}

// listen serves an event stream of a session: its own, or one that the client resumes.
func (s *Server) listen(w *transport.Response, r *http.Request, session *session) {
	if !transport.CheckGet(w, r.Header) {
		return
	}
	stream, after, resumed := parseEventID(r.Header.Get("Last-Event-Id"))
	switch {
	case len(r.Header.Values("Last-Event-Id")) > 0 && !resumed:
		http.Error(w, "The Last-Event-ID is none of this server's.", http.StatusBadRequest)
		return
	case resumed && stream != "":
		s.replicas.follow(w, r, session, stream, after)
		return
	}
	conn, _, err := s.connection(r.Context(), session)
	if err != nil {
		s.replicas.fail(w, err)
		return
	}
	own := transport.NewStandalone(w, s.replicas.keepsEvents())
	if !conn.Attach(own) {
		http.Error(w, "stream ID conflicts with ongoing stream", http.StatusConflict)
		return
	}
	defer conn.Detach(own)
	defer own.Detach()
	var missed [][]byte
	if resumed {
		missed = s.missed(session)
	}
	own.Begin(missed...)
	select {
	case <-r.Context().Done():
	case <-conn.Closed():
	}
}

// connection returns the connection of a session to the SDK's server. It restores a session that has none here.
func (s *Server) connection(ctx context.Context, session *session) (*transport.Conn, *mcp.ServerSession, error) {
	if err := s.replicas.restore(ctx, session); err != nil {
		return nil, nil, err
	}
	conn, sdk := s.sessions.connectionOf(session)
	if conn == nil {
		return nil, nil, sessionstore.ErrNone // it has ended meanwhile
	}
	return conn, sdk, nil
}

// sessionOf returns the session that a request names, or answers it and returns false if there is none, as the SDK
// does, or if it is somebody else's, which must look the same. It is nil if the request names none.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, over *exchange) (*session, bool) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		return nil, true
	}
	session := s.sessions.of(id)
	if session == nil {
		var err error
		if session, err = s.replicas.find(r.Context(), id, over); err != nil {
			s.replicas.unreachable(w, err)
			return nil, false
		}
	}
	if session == nil || session.owner != over.owner() {
		http.Error(w, notFound, http.StatusNotFound)
		return nil, false
	}
	return session, true
}

func (s *Server) post(w *transport.Response, r *http.Request, over *exchange) {
	begin, key, sessionless := time.Now(), clientKey(over), transport.IsSessionless(r.Header)
	if err := s.limiter.Allow(key, 1); err != nil {
		s.refuse(w, RefusedRate, err)
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
			s.refuse(w, RefusedRate, err)
			return
		}
	}
	over.requestID = textOfID(body.ID().Raw())
	if sessionless && r.Header.Get("Mcp-Method") == transport.MethodListen {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		leave, err := s.limiter.EnterStream(key, end)
		if err != nil {
			s.refuse(w, RefusedSessions, err)
			return
		}
		defer leave()
		var cancel context.CancelFunc
		r, cancel = over.under.whileValid(r.WithContext(ctx), over.identity)
		defer cancel()
	} else {
		leave, err := s.limiter.Enter(key, max(1, requests))
		if err == nil {
			defer leave()
		} else if sessionless || requests > 0 { // a notification may be what cancels a call
			s.refuse(w, RefusedBusy, err)
			return
		}
	}
	mode := ModeSession
	if sessionless {
		mode = ModeStateless
	}
	defer s.observed(mode, body.Method(), begin)
	if sessionless {
		s.serveSessionless(w, r, over, body)
		return
	}
	s.serveInSession(w, r, over, body)
}

// serveSessionless serves a message of a protocol version without sessions.
func (s *Server) serveSessionless(w http.ResponseWriter, r *http.Request, over *exchange, body *transport.Body) {
	if err := transport.DecodeName(r.Header); err != nil {
		writeError(w, http.StatusBadRequest, body.ID(), mcp.CodeHeaderMismatch, err.Error())
		return
	}
	if wrong := body.Wrong; wrong != nil && wrong.Code != jsonrpc.CodeMethodNotFound {
		writeError(w, http.StatusBadRequest, wrong.ID, wrong.Code, wrong.Text)
		return
	}
	if !transport.CheckPost(w, r.Header) || s.replicas.forward(w, r, over, body) {
		return
	}
	if call := body.Call; call != nil && s.isDirect(r.Header, nil, call) {
		s.answerCall(w, r, over, nil, call)
		return
	}
	request, err := s.checkSessionless(r.Header, body)
	switch {
	case err != nil:
		writeError(w, err.status, err.ID, err.Code, err.Text)
	case request == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.serveOnce(w, r, over, request)
	}
}

// checkSessionless compares the headers with the body. It returns the request, or nil for a message that nobody
// answers.
func (s *Server) checkSessionless(h http.Header, body *transport.Body) (*jsonrpc.Request, *refusedRequest) {
	messages, err := body.Decoded()
	if err != nil {
		return nil, &refusedRequest{http.StatusBadRequest,
			transport.Refusal{Code: jsonrpc.CodeInvalidRequest, Text: "The body " + transport.NoMessage + "."}}
	}
	request, ok := messages[0].(*jsonrpc.Request)
	if !ok {
		return nil, nil
	}
	if wrong := body.Wrong; wrong != nil {
		return nil, &refusedRequest{http.StatusNotFound, *wrong}
	}
	if wrong := transport.CheckVersion(h, request); wrong != nil {
		return nil, &refusedRequest{http.StatusBadRequest, *wrong}
	}
	err = transport.CheckNames(h, request)
	if err == nil && request.Method == abi.CallTool {
		err = transport.CheckCall(h, request, func(tool string) []transport.ParamHeader {
			headers, _ := s.catalogSync.listed(tool)
			return headers
		})
	}
	if err != nil {
		return nil, &refusedRequest{http.StatusBadRequest,
			transport.Refusal{ID: request.ID, Code: mcp.CodeHeaderMismatch, Text: err.Error()}}
	}
	if !request.IsCall() {
		return nil, nil
	}
	return request, nil
}

// refusedRequest is a Refusal with its HTTP status.
type refusedRequest struct {
	status int
	transport.Refusal
}

// serveOnce has the SDK answer one request without a session.
func (s *Server) serveOnce(w http.ResponseWriter, r *http.Request, over *exchange, request *jsonrpc.Request) {
	listen := request.Method == transport.MethodListen
	over.stream = transport.NewJSON(w)
	// A JSON body has no room for notifications before the answer.
	if listen || bytes.Contains(request.Params, []byte(`"progressToken"`)) {
		over.stream = transport.NewEvents(w, 1)
	}
	over.conn, over.gone = transport.NewConn("", ""), r.Context()
	sdk, err := s.sdk.Connect(context.Background(), over.conn,
		&mcp.ServerSessionOptions{State: new(mcp.ServerSessionState)})
	if err != nil {
		http.Error(w, "failed connection", http.StatusInternalServerError)
		return
	}
	defer sdk.Close()
	if listen {
		over.conn.Attach(over.stream)
	}
	request.Extra = over.extra(r.Header)
	over.conn.Expect(over.stream, request)
	over.conn.Deliver(request)
	select {
	case <-over.stream.Done():
	case <-over.conn.Closed():
	case <-r.Context().Done():
		_ = over.conn.Close() // which cancels the request
	}
	over.stream.Detach()
}

// serveInSession serves what a client with a session sends, or one that opens a session.
func (s *Server) serveInSession(w *transport.Response, r *http.Request, over *exchange, body *transport.Body) {
	session, ok := s.sessionOf(w, r, over)
	if !ok {
		return
	}
	if session == nil {
		if opens(w, r.Header, body) && transport.CheckPost(w, r.Header) {
			s.open(w, r, over, body)
		}
		return
	}
	if body.Batch && !session.takesBatches(r.Header) {
		s.refuseMessage(w, &transport.Refusal{Code: jsonrpc.CodeInvalidRequest, Text: transport.NoBatches})
		return
	}
	session.enter()
	defer session.leave()
	if body.Call == nil && refuseMethod(w, body) || !transport.CheckPost(w, r.Header) {
		return
	}
	if call := body.Call; call != nil && s.isDirect(r.Header, session, call) {
		s.answerCall(w, r, over, session, call)
		return
	}
	messages, err := body.Decoded()
	if err == nil {
		messages, err = s.replicas.route(r.Context(), session, messages)
	}
	if err == nil && len(messages) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if err == nil {
		over.conn, _, err = s.connection(r.Context(), session)
	}
	if err != nil {
		s.replicas.fail(w, err)
		return
	}
	s.serveBySDK(w, r, over, session.version, messages)
}

// maxOpening is the most bytes of an initialize request: its parameters are kept with the session.
const maxOpening = 64 << 10

// opens reports whether a message that comes without a session opens one, and answers it otherwise.
func opens(w http.ResponseWriter, h http.Header, body *transport.Body) bool {
	switch {
	case body.Method() == "initialize" && len(body.Raw) <= maxOpening:
		return true
	case body.Method() == "initialize":
		writeError(w, http.StatusBadRequest, body.ID(), jsonrpc.CodeInvalidParams,
			"What the client says of itself is larger than 64 KiB.")
		return false
	}
	messages, err := body.Decoded()
	if err == nil && !body.Batch {
		if request, ok := messages[0].(*jsonrpc.Request); ok {
			if wrong := transport.CheckVersion(h, request); wrong != nil {
				if transport.CheckPost(w, h) {
					writeError(w, http.StatusBadRequest, wrong.ID, wrong.Code, wrong.Text)
				}
				return false
			}
		}
	}
	writeError(w, http.StatusBadRequest, body.ID(), jsonrpc.CodeInvalidRequest,
		`Send "initialize" first, and then its Mcp-Session-Id header with every request.`)
	return false
}

// open opens a session. receive registers it when the SDK has accepted it.
func (s *Server) open(w *transport.Response, r *http.Request, over *exchange, body *transport.Body) {
	over.conn = transport.NewConn(rand.Text(), s.replicas.store.Replica())
	sdk, err := s.sdk.Connect(context.Background(), over.conn, nil)
	if err != nil {
		http.Error(w, "failed connection", http.StatusInternalServerError)
		return
	}
	s.serveBySDK(w, r, over, "", body.Messages)
	if sdk.InitializeParams() == nil {
		_ = sdk.Close() // it has served nothing
	}
}

// hasPrimes reports whether a client expects an event with the ID of a stream at its beginning.
func hasPrimes(h http.Header) bool { return h.Get("Mcp-Protocol-Version") >= "2025-11-25" }

// serveBySDK has the SDK answer messages of a session. version is the session's, and empty while it is being opened.
func (s *Server) serveBySDK(w *transport.Response, r *http.Request, over *exchange, version string,
	messages []jsonrpc.Message) {
	var requests []*jsonrpc.Request
	for _, message := range messages {
		request, ok := message.(*jsonrpc.Request)
		if !ok {
			continue
		}
		if wrong := refuseSessionless(r.Header, request); wrong != nil {
			writeErrorOf(w, http.StatusBadRequest, request.ID, wrong)
			return
		}
		request.Extra = over.extra(r.Header)
		if request.IsCall() {
			requests = append(requests, request)
		}
		if request.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", over.conn.SessionID())
		}
	}
	if len(requests) > 0 {
		over.stream = transport.NewEvents(w, len(requests))
		defer over.stream.Detach()
		if duplicate := over.conn.Expect(over.stream, requests...); duplicate != nil {
			s.refuseDuplicate(w, duplicate.ID)
			return
		}
		over.gone = r.Context()
		if version != "" && s.replicas.keep(over.stream, over.conn.SessionID(), requests,
			hasPrimes(r.Header)) {
			over.gone = nil // whoever has left can fetch the answer
		}
	}
	for _, message := range messages {
		if !over.conn.Deliver(message) {
			if over.stream == nil {
				http.Error(w, "session is closing", http.StatusNotFound)
			}
			return
		}
	}
	if over.stream == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case <-over.stream.Done():
	case <-r.Context().Done():
	case <-over.conn.Closed():
	}
}

func (s *Server) refuseDuplicate(w http.ResponseWriter, id jsonrpc.ID) {
	writeError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest,
		fmt.Sprintf("duplicate in-flight request ID %v", id.Raw()))
}

// refuseSessionless returns an error for a request in a session that says in its _meta that it is of a version without
// sessions.
func refuseSessionless(h http.Header, request *jsonrpc.Request) *jsonrpc.Error {
	if transport.CheckVersion(http.Header{}, request) == nil || request.Method == "server/discover" {
		return nil
	}
	requested := cmp.Or(h.Get("Mcp-Protocol-Version"), "2025-03-26")
	supported := slices.DeleteFunc(
		mcp.SupportedProtocolVersions(),
		func(v string) bool { return v >= transport.Sessionless },
	)
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: requested})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion,
		Message: fmt.Sprintf("protocol version %q is not supported by this server", requested), Data: data}
}

// refuseMethod answers a message of a session whose method is wrong, or ignores it, and reports whether it did. A
// request that has an ID is answered with status 200, as any other error of a request: clients take another status for
// a failure of the connection.
func refuseMethod(w http.ResponseWriter, body *transport.Body) bool {
	switch wrong := body.Wrong; {
	case wrong != nil:
		status := http.StatusOK
		if !wrong.ID.IsValid() {
			status = http.StatusBadRequest
		}
		writeError(w, status, wrong.ID, wrong.Code, wrong.Text)
	case body.Ignored:
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// cancelled cancels the call that a client withdraws, if it is one that the SDK does not know; the SDK cancels others.
func (s *Server) cancelled(session *session, message jsonrpc.Message) {
	request, ok := message.(*jsonrpc.Request)
	if !ok || request.Method != transport.MethodCancelled {
		return
	}
	var params mcp.CancelledParams
	if json.Unmarshal(request.Params, &params) == nil {
		session.cancel(params.RequestID)
	}
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
