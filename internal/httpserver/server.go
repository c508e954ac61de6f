// Package httpserver makes the HTTP servers that hako listens with: net/http's, with limits on what clients may hold
// up.
//
// New returns a *http.Server. A client has 10 s for the headers of a request and 30 s for its body, a response may take
// a minute unless the handler lifts that limit (http.ResponseController), and a connection without a request is closed
// after two minutes. Connections are limited in number: beyond the limit, the one that has waited longest without a
// complete request is closed for each new one. So clients that open connections and never use them cannot keep others
// out.
package httpserver

import (
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 30 * time.Second
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
		Handler:           limitBody(handler, bodyTimeout),
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnState:         newConnections(connectionLimit()).changed,
	}
}

// limitBody limits the time in which the body of a request arrives, also where the handler does not read it.
// http.Server.ReadTimeout would do so too, but it goes on after the body and ends event streams.
func limitBody(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(timeout)) // unsupported by the recorders of tests
			r.Body = &body{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// body lifts the deadline for reading when the body has been read.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
