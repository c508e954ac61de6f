// Package httpserver makes the HTTP servers that hako listens with: net/http's, with limits on what clients may hold
// up.
//
// New returns a *http.Server. A client has 10 s for the headers of a request and 30 s for all of it, also where the
// handler does not read the body. A response may take a minute unless the handler lifts that limit
// (http.ResponseController), and a connection without a request is closed after two minutes. Connections are limited in
// number: beyond the limit, the one that has waited longest without a complete request is closed for each new one. So
// clients that open connections and never use them cannot keep others out.
package httpserver

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes bounds the headers of one request.
	maxHeaderBytes = 64 << 10
)

// New returns a server for addr. The logger receives, at debug level, what net/http reports about broken connections;
// nil discards it.
func New(addr string, handler http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout, // net/http lifts it when the body has been read
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnState:         newConnections(connectionLimit()).changed,
	}
}
