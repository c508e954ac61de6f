package mcpserver

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// CheckExposure refuses an address that other machines can reach, while nothing tells friend from foe: auth is nil and the
// host of the address is no loopback name. Its error says what to do.
func CheckExposure(addr string, auth *Auth) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q has no port: write it as host:port, such as 127.0.0.1:8420", addr)
	}
	if auth != nil || isLoopback(normalHost(host)) {
		return nil
	}
	return fmt.Errorf("address %s can be reached from other machines, and anybody there could use every tool: "+
		"listen on 127.0.0.1, or make a token with 'hako token new' and put it into the configuration", addr)
}

// NewHTTPServer returns an http.Server with the time limits that Handler needs: clients must be quick to send their headers,
// connections may not idle for ever, and every request starts with a limit on writing, from which Handler exempts the time
// that calls and event streams take.
func NewHTTPServer(addr string, handler http.Handler, logger *slog.Logger) *http.Server {
	server := &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	if logger != nil {
		// What it has to say is about connections that broke, and clients cause that.
		server.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	}
	return server
}
