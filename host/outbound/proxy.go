package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/proxy"

	"github.com/hako-run/hako/internal/address"
)

// maxProxyHeader limits the header of a proxy's response, in bytes.
const maxProxyHeader = 64 << 10

// UseProxy makes t use the proxies that choose returns; see http.Transport.Proxy. Errors do not contain text of a
// proxy's response, which may repeat the password.
func UseProxy(t *http.Transport, choose func(*http.Request) (*url.URL, error)) {
	t.Proxy = choose
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
		return checkTunnel(response.StatusCode)
	}
}

// NewTransport returns a transport for hako's own requests, through proxy if it is not nil. See Through.
func NewTransport(proxy *url.URL) *http.Transport {
	t := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: Timeout}).DialContext,
		TLSHandshakeTimeout: Timeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        100,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
	}
	UseProxy(t, Through(func() *url.URL { return proxy }))
	return t
}

// NewPublicTransport returns a transport for URLs that strangers name. It connects to public addresses only, and to the
// hosts that the operator has named, each in the form of HostPort; through proxy if it is not nil.
func NewPublicTransport(proxy *url.URL, named ...string) *http.Transport {
	t := NewTransport(nil)
	t.Proxy = nil
	public := &Dialer{Host: Host{breadth: anyHost}, Proxy: proxy}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if slices.Contains(named, strings.ToLower(address)) {
			return Connect(ctx, func() *url.URL { return proxy }, address)
		}
		return public.Dial(ctx, network, address)
	}
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// HostPort returns the host and port that u leads to, in lower case.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	} else if port == "" {
		port = "443"
	}
	return strings.ToLower(net.JoinHostPort(u.Hostname(), port))
}

// Through returns a function for http.Transport.Proxy. It chooses the proxy that configured returns, which may be nil,
// and none for addresses of this machine. It ignores the proxies in the environment.
func Through(configured func() *url.URL) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		if address.IsLoopback(r.URL.Hostname()) {
			return nil, nil
		}
		return configured(), nil
	}
}

// Connect opens one of hako's own connections, through the proxy that Through would choose.
func Connect(ctx context.Context, configured func() *url.URL, hostport string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	d := &Dialer{Proxy: configured()}
	if d.Proxy == nil || address.IsLoopback(host) {
		return d.DialAny(ctx, "tcp", hostport)
	}
	return d.dialProxy(ctx, hostport)
}

// checkTunnel returns an error unless the status of a proxy's response opens a tunnel.
func checkTunnel(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return errors.New("the upstream proxy refuses the user name or password: set them in the URL of outbound.proxy")
	}
	return fmt.Errorf("the upstream proxy refused the connection: %d %s", status, http.StatusText(status))
}

// ProxySecrets returns the secrets that are sent to a proxy: the password and the whole credential.
func ProxySecrets(proxy *url.URL) []string {
	if proxy == nil || proxy.User == nil {
		return nil
	}
	password, set := proxy.User.Password()
	if !set || password == "" {
		return nil
	}
	return []string{password, basic(proxy.User)}
}

// basic returns user as the credential of HTTP Basic authentication.
func basic(user *url.Userinfo) string {
	password, _ := user.Password()
	return base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
}

// dialProxy connects to address through d.Proxy.
func (d *Dialer) dialProxy(ctx context.Context, address string) (net.Conn, error) {
	if d.Proxy.Scheme != "http" && d.Proxy.Scheme != "https" {
		through, err := proxy.FromURL(d.Proxy, forward(d.DialAny))
		if err != nil {
			return nil, err
		}
		return through.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
	}
	conn, err := d.DialAny(ctx, "tcp", HostPort(d.Proxy))
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

// connect requests a tunnel to address from the HTTP proxy at the other end of conn (RFC 9110, section 9.3.6).
func connect(conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address},
		Host: address, Header: http.Header{}}
	if proxy.User != nil {
		request.Header.Set("Proxy-Authorization", "Basic "+basic(proxy.User))
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: conn, N: maxProxyHeader}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, request)
	if limited.N == 0 {
		return nil, fmt.Errorf("the upstream proxy's response has a header of more than %d bytes", maxProxyHeader)
	}
	if err != nil || response.ProtoMajor != 1 {
		return nil, errors.New("the upstream proxy sent no HTTP response") // err may quote the response
	}
	if err := checkTunnel(response.StatusCode); err != nil {
		return nil, err
	}
	limited.N = math.MaxInt64
	if reader.Buffered() > 0 { // the server has sent data already
		return &readAhead{conn, reader}, nil
	}
	return conn, nil
}

// readAhead is a connection with buffered data.
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

// forward adapts a function to proxy.ContextDialer.
type forward func(ctx context.Context, network, address string) (net.Conn, error)

func (f forward) Dial(network, address string) (net.Conn, error) {
	return f(context.Background(), network, address)
}

func (f forward) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}
