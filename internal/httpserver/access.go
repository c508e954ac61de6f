package httpserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// RequestID is the header with the ID of a request, in requests and responses.
const RequestID = "X-Request-Id"

// maxRequestID bounds an ID that a client or proxy has chosen, in bytes.
const maxRequestID = 64

// Numbered gives each request an ID: the one that it has, if it is well-formed (letters, digits, '.', '_' and '-'),
// else the trace of its traceparent, else a new one. The handler finds it in the header, and the client in the
// response.
func Numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := idOf(r.Header)
		r.Header.Set(RequestID, id)
		w.Header().Set(RequestID, id)
		next.ServeHTTP(w, r)
	})
}

func idOf(h http.Header) string {
	if ids := h.Values(RequestID); len(ids) == 1 && isID(ids[0]) {
		return ids[0]
	}
	if parts := strings.Split(h.Get("Traceparent"), "-"); len(parts) >= 4 && len(parts[1]) == 32 {
		if id, err := hex.DecodeString(parts[1]); err == nil && strings.Trim(string(id), "\x00") != "" {
			return strings.ToLower(parts[1])
		}
	}
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func isID(text string) bool {
	return text != "" && len(text) <= maxRequestID && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '.' && r != '_' && r != '-'
	})
}

// userKey is the key of the *atomic.Value for the user in a request's context.
type userKey struct{}

// SetUser names the user of a request for the access log.
func SetUser(ctx context.Context, user string) {
	if holder, ok := ctx.Value(userKey{}).(*atomic.Value); ok {
		holder.Store(user)
	}
}

// Logged logs each request when it has been answered, if on is set: method, path, status, bytes, duration, request ID,
// client's address and user. It logs no headers and no query, which may have secrets.
func Logged(next http.Handler, logger *slog.Logger, on *atomic.Bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !on.Load() {
			next.ServeHTTP(w, r)
			return
		}
		begin, user, counted := time.Now(), new(atomic.Value), &countedResponse{ResponseWriter: w,
			status: http.StatusOK}
		defer func() {
			name, _ := user.Load().(string)
			logger.Info("access", "method", r.Method, "path", r.URL.Path, "status", counted.status,
				"bytes", counted.bytes,
				"ms", float64(time.Since(begin).Microseconds())/1000, "request", r.Header.Get(RequestID),
				"address", r.RemoteAddr, "user", name)
		}()
		next.ServeHTTP(counted, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// countedResponse notes the status and the size of a response.
type countedResponse struct {
	http.ResponseWriter
	status int
	bytes  int64
	begun  bool
}

func (c *countedResponse) WriteHeader(status int) {
	if !c.begun && status >= http.StatusOK {
		c.status, c.begun = status, true
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *countedResponse) Write(data []byte) (int, error) {
	c.begun = true
	n, err := c.ResponseWriter.Write(data)
	c.bytes += int64(n)
	return n, err
}

func (c *countedResponse) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

// Unwrap lets http.ResponseController find the connection.
func (c *countedResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }
