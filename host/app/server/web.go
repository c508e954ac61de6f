package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/httpserver"
)

// ErrServing is the error of a server whose HTTP listener fails while it serves.
var ErrServing = errors.New("serve HTTP")

// sendTimeout bounds the sending of the last answers during a shutdown.
const sendTimeout = 3 * time.Second

// web is the part that listens for HTTP. MCP is at mcpserver.Path, health at /healthz, /readyz and
// DiagnosisPath.
//
// Metrics are at an address of their own if one is configured, and otherwise beside MCP if that is on loopback: they
// reveal which tools there are and how much they are used.
type web struct {
	server      *Server
	mcp         *mcpFrontend
	slack       *slackFrontend
	upstreams   *upstreams
	certificate *tlsCertificate

	// http is the configuration of the main address, with the port that was assigned.
	http    config.HTTP
	servers []*http.Server
	// access reports whether requests are logged.
	access    atomic.Bool
	listeners []net.Listener
	// serving counts the listeners in use.
	serving sync.WaitGroup
}

func (w *web) start(context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stop())
		}
	}()
	c := w.server.Config
	w.access.Store(c.LogAccess)
	main, metrics := w.health(), w.server.observability.handler()
	main.Handle("/", w.mcp.mcp.Handler())
	main.Handle("/slack/", w.slack.handler(w.mcp.mcp.Handler()))
	if d := w.server.console; d != nil && c.Console.Address == "" {
		main.Handle(console.Path, d.console.Handler())
	}
	w.http = c.HTTP
	listener, err := w.listen("http.address", c.HTTP.Address, main, w.certificate.config())
	if err != nil {
		return err
	}
	w.http.Address = listener.Addr().String()
	switch {
	case c.MetricsAddress != "":
		private := w.health()
		if metrics != nil {
			private.Handle("GET /metrics", localMetrics(metrics, c.MetricsAddress))
		}
		if _, err := w.listen("metrics.address", c.MetricsAddress, private, nil); err != nil {
			return err
		}
	case metrics == nil:
	case address.IsLoopbackHostport(w.http.Address):
		main.Handle("GET /metrics", localMetrics(metrics, w.http.Address))
	default:
		w.server.Logger.Info("metrics are off: they need an address of their own here, metrics.address")
	}
	if d := w.server.console; d != nil && c.Console.Address != "" {
		mux := w.health()
		mux.Handle(console.Path, d.console.Handler())
		_, err = w.listen("console.address", c.Console.Address, mux, w.certificate.config())
	}
	return err
}

// health returns a mux that answers those who look after this process.
func (w *web) health() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, "hako is alive\n")
	})
	mux.HandleFunc("GET "+DiagnosisPath, w.diagnosis)
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, _ *http.Request) {
		if w.server.draining.Load() {
			http.Error(out, "hako is shutting down", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(out, "hako is ready\n")
		for _, line := range w.server.status() {
			fmt.Fprintln(out, line)
		}
	})
	return mux
}

func (*web) keys() []string { return []string{"log.access"} }

func (w *web) prepare(_ context.Context, next *config.Config) (*change, error) {
	return silently(func() { w.access.Store(next.LogAccess) }), nil
}

// listen opens the address that a configuration key names. Connections wait until run.
func (w *web) listen(key, address string, handler http.Handler, secure *tls.Config) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, listenError(key, address, err))
	}
	handler = httpserver.Numbered(httpserver.Logged(handler, w.server.Logger, &w.access))
	server := httpserver.New(address, handler, w.server.Logger)
	server.TLSConfig = secure
	w.listeners, w.servers = append(w.listeners, listener), append(w.servers, server)
	return listener, nil
}

// run returns when the first listener fails, so that the server drains the others, or when all have been drained.
func (w *web) run(context.Context) error {
	ended := make(chan error, len(w.servers))
	for i, server := range w.servers {
		w.serving.Go(func() { ended <- serve(server, w.listeners[i]) })
	}
	for range w.servers {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("%w: %w", ErrServing, err)
		}
	}
	return nil
}

func serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// drain waits until the connections are idle. Those that are still open after sendTimeout are closed.
func (w *web) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var errs []error
	for _, server := range w.servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, err, server.Close())
		}
	}
	return errors.Join(errs...)
}

// stop releases the addresses.
func (w *web) stop() error {
	for _, listener := range w.listeners {
		_ = listener.Close() // it is closed already if run has served it
	}
	w.serving.Wait()
	return nil
}
