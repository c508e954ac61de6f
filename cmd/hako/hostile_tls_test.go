package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testcert"
)

func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "http: {tls: {cert: tls.crt, key: tls.key}}\n")
	roots := testcert.Write(t, dir, 1)
	s := serve(t, dir)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Get(s.base() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.TLS == nil {
		t.Errorf("got %+v", response)
	}
}

// TestHostileTLS speaks to the server in ways that it does not serve. It goes on serving.
func TestHostileTLS(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "http: {tls: {cert: tls.crt, key: tls.key}}\n")
	roots := testcert.Write(t, dir, 1)
	s := serve(t, dir)
	address := strings.TrimPrefix(s.base(), "https://")
	alive := func(t *testing.T) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(s.base() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("got %s", response.Status)
		}
	}
	for name, config := range map[string]*tls.Config{
		"TLS 1.0": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"TLS 1.1": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"a cipher suite with RC4": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}},
		"a cipher suite of RSA alone": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
		"another protocol (ALPN)":           {NextProtos: []string{"smtp"}},
		"a protocol of HTTP that it is not": {NextProtos: []string{"h3"}},
		"an unknown issuer":                 {RootCAs: x509.NewCertPool()},
		"another name":                      {ServerName: "bank.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if config.RootCAs == nil {
				config.RootCAs = roots
			}
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, config)
			if err == nil {
				_ = conn.Close()
				t.Error("there is a connection")
			}
			alive(t)
		})
	}
	for name, text := range map[string]string{
		"plain HTTP":             "GET /healthz HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"plain HTTP/2":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH":                    "SSH-2.0-x\r\n",
		"half a record":          "\x16\x03\x01\x02\x00\x01",
		"a huge record":          "\x16\x03\x01\xff\xff" + strings.Repeat("a", 70_000),
		"a hello of 16 MB":       "\x16\x03\x01\x40\x00\x01\xff\xff\xff" + strings.Repeat("a", 16<<10-4),
		"SSL 2.0":                "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
		"an alert":               "\x15\x03\x01\x00\x02\x02\x28",
		"data without handshake": "\x17\x03\x03\x00\x05hello",
		"a heartbeat":            "\x18\x03\x02\x00\x03\x01\x40\x00",
		"zeros":                  strings.Repeat("\x00", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(conn, text)
			_ = conn.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(io.LimitReader(conn, 64<<10))
			if strings.Contains(string(answer), "hako is alive") {
				t.Error("it is answered without encryption")
			}
			alive(t)
		})
	}
	for name, request := range map[string]string{
		"a tunnel to elsewhere": "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n",
		"a tunnel to itself":    "CONNECT " + address + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n",
		"as a proxy":            "GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
		"another host":          "POST /mcp HTTP/1.1\r\nHost: bank.example\r\nContent-Length: 2\r\n\r\n{}",
		"two lengths": "POST /mcp HTTP/1.1\r\nHost: " + address +
			"\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"a length and chunks": "POST /mcp HTTP/1.1\r\nHost: " + address +
			"\r\nTransfer-Encoding: x\r\nContent-Length: 2\r\n\r\n{}",
		"a header of a megabyte": "GET / HTTP/1.1\r\nHost: " + address + "\r\nX-A: " + strings.Repeat("a", 1<<20) +
			"\r\n\r\n",
		"an upgrade to h2c": "GET /mcp HTTP/1.1\r\nHost: " + address +
			"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
	} {
		t.Run("inside TLS: "+name, func(t *testing.T) {
			t.Parallel()
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address,
				&tls.Config{RootCAs: roots})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.WriteString(conn, request)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				response.Body.Close()
				if response.StatusCode < 400 {
					t.Errorf("got %s", response.Status)
				}
			}
			alive(t)
		})
	}
	t.Run("a hundred handshakes that stay half", func(t *testing.T) {
		t.Parallel()
		for range 100 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "\x16\x03\x01")
		}
		alive(t)
	})
}
