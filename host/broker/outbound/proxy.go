package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"
)

// dialProxy connects to address through d.Proxy.
func (d *Dialer) dialProxy(ctx context.Context, address string) (net.Conn, error) {
	if d.Proxy.Scheme != "http" && d.Proxy.Scheme != "https" {
		through, err := proxy.FromURL(d.Proxy, forward(d.DialAny))
		if err != nil {
			return nil, err
		}
		return through.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	conn, err := d.DialAny(ctx, "tcp", proxyAddress(d.Proxy))
	if err != nil {
		return nil, err
	}
	if d.Proxy.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: d.Proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	tunnel, err := connect(conn, d.Proxy, address)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return tunnel, nil
}

// connect asks the HTTP proxy at the other end of conn for a tunnel to address (RFC 9110, section 9.3.6).
func connect(conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		encoded := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+encoded)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, fmt.Errorf("the upstream proxy gave no answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the upstream proxy refused the connection: %s", response.Status)
	}
	if reader.Buffered() > 0 { // servers that speak first
		return &readAhead{conn, reader}, nil
	}
	return conn, nil
}

// readAhead is a connection of which some was read already.
type readAhead struct {
	net.Conn
	reader *bufio.Reader
}

func (r *readAhead) Read(p []byte) (int, error) { return r.reader.Read(p) }

func (r *readAhead) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func proxyAddress(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// forward is a function as a proxy.ContextDialer.
type forward func(ctx context.Context, network, address string) (net.Conn, error)

func (f forward) Dial(network, address string) (net.Conn, error) {
	return f(context.Background(), network, address)
}

func (f forward) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}
