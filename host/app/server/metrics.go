package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/httpserver"
)

// metricsServer is the part that serves metrics at metrics.address, for a process without web.
type metricsServer struct {
	server   *Server
	listener net.Listener // nil: no address is configured
	http     *http.Server
}

func (m *metricsServer) start(context.Context) (err error) {
	listen, handler := m.server.Config.MetricsAddress, m.server.observability.handler()
	if listen == "" || handler == nil {
		return nil
	}
	if m.listener, err = net.Listen("tcp", listen); err != nil {
		return fmt.Errorf("metrics.address: %w", listenError("metrics.address", listen, err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", localMetrics(handler, listen))
	m.http = httpserver.New(listen, mux, m.server.Logger)
	return nil
}

func (m *metricsServer) run(ctx context.Context) error {
	if m.listener == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = m.http.Close() })
	defer stop()
	if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%w: metrics: %w", ErrServing, err)
	}
	return nil
}

func (m *metricsServer) stop() error {
	if m.listener != nil {
		_ = m.listener.Close() // it is closed already if run has served it
	}
	return nil
}

// localMetrics keeps web pages from reading the metrics at an address of this machine. Elsewhere it changes nothing: an
// operator who opens another address decides who reaches it.
func localMetrics(metrics http.Handler, listen string) http.Handler {
	if !address.IsLoopbackHostport(listen) {
		return metrics
	}
	return httpserver.LocalOnly(metrics, "For other machines, give metrics an address that they reach (metrics.address).")
}
