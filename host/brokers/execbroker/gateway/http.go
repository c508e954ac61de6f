package gateway

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// maxHeader limits the header of a forwarded request or response, in bytes.
const maxHeader = 256 << 10

// connKey is the key of a request's connection in its context.
type connKey struct{}

// newServer returns the server for HTTP clients of the proxy. It parses each request and serializes it again, so that
// no server can read another request than the one that was checked.
func newServer(p *proxy) *http.Server {
	silent := log.New(io.Discard, "", 0)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, number, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			conn, failed := p.session.openTarget(ctx, host, number)
			if failed != nil {
				return nil, failed
			}
			return conn, nil
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      silent,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { writeFailure(w, err) },
	}
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodConnect {
				p.connect(w, r)
			} else if forwardable(w, r) {
				r.Header.Del("Upgrade") // upgrades need a tunnel
				// Servers may answer before they have read the whole body. net/http would close the body then, and the
				// failed copy of it would cut the answer off (golang/go#40747). HTTP/1 clients can always do it.
				_ = http.NewResponseController(w).EnableFullDuplex()
				forward.ServeHTTP(w, r)
			}
		}),
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: greetingTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          silent,
		BaseContext:       func(net.Listener) context.Context { return p.session.ctx },
		ConnContext: func(ctx context.Context,
			c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(c.(*peekedConn).over)
			}
		},
	}
}

// forwardable reports whether a request is a proxy request. Otherwise it writes an error response.
func forwardable(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !r.URL.IsAbs() || r.URL.Hostname() == "":
		http.Error(w, "hako: this is a proxy: ask it for http://HOST/PATH, or for a tunnel with CONNECT HOST:PORT",
			http.StatusBadRequest)
	case r.URL.Scheme != "http":
		http.Error(w, "hako: the proxy forwards http only: ask it for a tunnel with CONNECT HOST:PORT",
			http.StatusBadRequest)
	case r.URL.User != nil:
		http.Error(w, "hako: the URL contains a user name: send an Authorization header instead", http.StatusBadRequest)
	default:
		return true
	}
	return false
}

// connect serves a CONNECT request.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	// Parse the authority directly: net/url and other programs disagree about the host in some of them.
	host, number, err := net.SplitHostPort(r.RequestURI)
	if err != nil || strings.ContainsAny(r.RequestURI, "@/?#\\%") {
		http.Error(w, "hako: CONNECT needs HOST:PORT and nothing else", http.StatusBadRequest)
		return
	}
	server, failed := p.session.openTarget(p.session.ctx, host, number) // the client may have closed its sending side
	if failed != nil {
		writeFailure(w, failed)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	// the HTTP server does not use the hijacked connection any more
	defer close(r.Context().Value(connKey{}).(*peekedConn).over)
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = server.Close()
		return
	}
	relay(p.session.ctx, conn, buffered.Reader, server)
}

// writeFailure sends the client the reason why there is no connection.
func writeFailure(w http.ResponseWriter, err error) {
	status, text := http.StatusBadGateway, "the host sent no HTTP response or closed the connection"
	var failed *failure
	if errors.As(err, &failed) {
		text = failed.text
		if failed.outcome == OutcomeRefused {
			status = http.StatusForbidden
		}
	}
	http.Error(w, "hako: "+text, status)
}
