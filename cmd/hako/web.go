package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/mcpserver/auth"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/httpserver"
)

// web is all that listens for HTTP. A nil web does nothing.
type web struct {
	servers   []*http.Server
	listeners []net.Listener
	http      config.HTTP
	draining  atomic.Bool
	// state lists what an operator should look at.
	state func() []string
}

// checkHTTP returns who may come in over HTTP and with which certificate it is served; nil and nil mean anybody,
// without TLS. It is an error if those two are not usable, or if they do not suffice for the address.
func checkHTTP(c *config.Config) (*auth.Auth, *certificate, error) {
	opened, err := c.HTTP.Authenticator()
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: http.auth: %w", err)
	}
	if err := auth.CheckExposure(c.HTTP.Address, opened); err != nil {
		return nil, nil, fmt.Errorf("configuration: http.address: %w", err)
	}
	cert, err := newCertificate(c.HTTP.TLSCert, c.HTTP.TLSKey)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: http.tls: %w", err)
	}
	return opened, cert, nil
}

// listen opens the addresses of the configuration. What comes in waits until serve is called.
//
// MCP is at mcpserver.Path, health at /healthz and /readyz. Metrics are at an address of their own where one is
// configured, else beside MCP if that is on loopback, and nowhere if metrics is nil: they tell which tools there are
// and how much they are used.
func listen(c *config.Config, cert *certificate, mcp, metrics http.Handler, state func() []string,
	logger *slog.Logger) (*web, error) {
	w := &web{http: c.HTTP, state: state}
	main, private := w.health(), w.health()
	main.Handle("/", mcp)
	if metrics != nil {
		private.Handle("GET /metrics", metrics)
	}
	listener, err := w.add("http.address", c.HTTP.Address, main, logger)
	if err != nil {
		return nil, err
	}
	w.http.Address = listener.Addr().String()
	if cert != nil {
		w.servers[0].TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}
	}
	switch {
	case c.MetricsAddress != "":
		if _, err := w.add("metrics.address", c.MetricsAddress, private, logger); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	case metrics == nil:
	case isLoopback(listener.Addr().String()):
		main.Handle("GET /metrics", loopbackOnly(metrics))
	default:
		logger.Info("metrics are off: they need an address of their own here, metrics.address")
	}
	return w, nil
}

// health answers those who look after this process.
func (w *web) health() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz",
		func(out http.ResponseWriter, _ *http.Request) { io.WriteString(out, "hako is alive\n") })
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, _ *http.Request) {
		if w.draining.Load() {
			http.Error(out, "hako is shutting down", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(out, "hako is ready\n")
		for _, line := range w.state() {
			fmt.Fprintln(out, line)
		}
	})
	return mux
}

func (w *web) add(key, address string, handler http.Handler, logger *slog.Logger) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, listenError(key, address, err))
	}
	w.listeners = append(w.listeners, listener)
	w.servers = append(w.servers, httpserver.New(address, handler, logger))
	return listener, nil
}

// url is where clients on this machine find MCP.
func (w *web) url() string { return w.http.URL() }

func (w *web) serve(group *errgroup.Group) {
	if w == nil {
		return
	}
	for i, server := range w.servers {
		group.Go(func() error {
			err := error(nil)
			if server.TLSConfig != nil {
				err = server.ServeTLS(w.listeners[i], "", "")
			} else {
				err = server.Serve(w.listeners[i])
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return &exitError{exitFailed, fmt.Errorf("serve HTTP: %w", err)}
		})
	}
}

// drain makes /readyz say that this process is going.
func (w *web) drain() {
	if w != nil {
		w.draining.Store(true)
	}
}

// shutdown waits until the connections are idle. What is open when ctx ends is closed.
func (w *web) shutdown(ctx context.Context) error {
	if w == nil {
		return nil
	}
	var errs []error
	for _, server := range w.servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, err, server.Close())
		}
	}
	return errors.Join(errs...)
}

// close gives up the addresses, also where serve was never called.
func (w *web) close() {
	for _, listener := range w.listeners {
		_ = listener.Close() // it is closed already where it was served
	}
}

// isLoopback reports whether an address, as host:port, is one of this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// loopbackOnly keeps web pages away that make a visitor's browser ask under another name (DNS rebinding).
func loopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "Ask under a loopback name, or give metrics an address of their own (metrics.address).",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wsaAddressInUse is WSAEADDRINUSE, which syscall does not name.
const wsaAddressInUse = syscall.Errno(10048)

// listenError says who has the address, as far as that can be found out, and what to do.
func listenError(key, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: ports below 1024 take a privilege (CAP_NET_BIND_SERVICE): give it, or choose a higher one", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: no network interface of this machine has it: choose one that has, or 127.0.0.1", err)
	}
	if !errors.Is(err, syscall.EADDRINUSE) && !(runtime.GOOS == "windows" && errors.Is(err, wsaAddressInUse)) {
		return err
	}
	who := "another program"
	if isHako(address) {
		who = "another hako"
	}
	remedy := "set " + key + " to " + nextPort(address)
	if key == "http.address" {
		remedy = "hako serve --http " + nextPort(address)
	}
	return fmt.Errorf("%s has the address %s already: stop it, or choose another address: %s", who, address, remedy)
}

// isHako reports whether a hako answers at the address.
func isHako(address string) bool {
	transport := outbound.NewTransport(nil)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 500 * time.Millisecond}
	response, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64))
	return err == nil && strings.HasPrefix(string(text), "hako ")
}

func nextPort(address string) string {
	host, port, err := net.SplitHostPort(address)
	n, convErr := strconv.Atoi(port)
	if err != nil || convErr != nil || n >= 65535 {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}
