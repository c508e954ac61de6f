package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair makes a certificate for 127.0.0.1 and its key, in PEM.
func pair(t *testing.T, serial int64, from, until time.Duration) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// TestHostileCertificates puts other files in the place of a certificate while it is served: the one before stays in
// use, and it is said.
func TestHostileCertificates(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(t *testing.T, cert, key string) error{
		"an expired one": func(t *testing.T, cert, key string) error {
			c, k := pair(t, 2, -2*time.Hour, -time.Hour)
			return firstError(os.WriteFile(cert, c, 0o600), os.WriteFile(key, k, 0o600))
		},
		"one of tomorrow": func(t *testing.T, cert, key string) error {
			c, k := pair(t, 2, 24*time.Hour, 48*time.Hour)
			return firstError(os.WriteFile(cert, c, 0o600), os.WriteFile(key, k, 0o600))
		},
		"another key": func(t *testing.T, _, key string) error {
			_, k := pair(t, 2, -time.Hour, time.Hour)
			return os.WriteFile(key, k, 0o600)
		},
		"a certificate without its key": func(t *testing.T, cert, _ string) error {
			c, _ := pair(t, 2, -time.Hour, time.Hour)
			return os.WriteFile(cert, c, 0o600)
		},
		"exchanged": func(_ *testing.T, cert, key string) error {
			return firstError(os.Rename(cert, cert+".old"), os.Rename(key, cert), os.Rename(cert+".old", key))
		},
		"nothing":       func(_ *testing.T, cert, _ string) error { return os.Remove(cert) },
		"no key":        func(_ *testing.T, _, key string) error { return os.Remove(key) },
		"an empty file": func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 0) },
		"half a file":   func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 100) },
		"junk": func(_ *testing.T, cert, _ string) error {
			return os.WriteFile(cert, []byte("\x00\xff"),
				0o600)
		},
		"PEM of junk": func(_ *testing.T, cert, _ string) error {
			return os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")}), 0o600)
		},
		"a directory": func(_ *testing.T, cert, _ string) error {
			return firstError(os.Remove(cert),
				os.Mkdir(cert, 0o700))
		},
		"a device": func(_ *testing.T, cert, _ string) error {
			return firstError(os.Remove(cert), os.Symlink("/dev/zero", cert))
		},
		"a terabyte": func(_ *testing.T, cert, _ string) error { return os.Truncate(cert, 1<<40) },
		"a loop of links": func(_ *testing.T, cert, _ string) error {
			return firstError(os.Remove(cert), os.Symlink(cert, cert))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
			writeCertificate(t, dir, 1)
			c, err := newCertificate(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(t, cert, key); err != nil {
				t.Skip(err)
			}
			got, err := c.get(nil)
			if err != nil || got.Leaf.SerialNumber.Int64() != 1 {
				t.Errorf("another one is served, or none: %v", err)
			}
			if c.trouble() == nil || len(c.state()) != 1 {
				t.Error("nobody is told")
			}
			if text := c.trouble().Error(); strings.Contains(text, "PRIVATE KEY") {
				t.Errorf("%q", text)
			}
		})
	}
	t.Run("a good one with the old one's time and size", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		stamp := time.Unix(1_000_000_000, 0)
		link := filepath.Join(dir, "now")
		for i, version := range []string{"a", "b"} {
			writeCertificate(t, filepath.Join(dir, version), int64(i+1))
			for _, file := range []string{"tls.crt", "tls.key"} {
				if err := os.Chtimes(filepath.Join(dir, version, file), stamp, stamp); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.Symlink("a", link); err != nil {
			t.Skip(err)
		}
		c, err := newCertificate(filepath.Join(link, "tls.crt"), filepath.Join(link, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		if err := firstError(os.Remove(link), os.Symlink("b", link)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.get(nil); err != nil || got.Leaf.SerialNumber.Int64() != 2 {
			t.Errorf("the old one is served: %v", err)
		}
	})
	t.Run("one that expires while it is served", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		cert, key := pair(t, 1, -2*time.Hour, -time.Hour)
		put(t, filepath.Join(dir, "tls.crt"), cert)
		put(t, filepath.Join(dir, "tls.key"), key)
		c, err := newCertificate(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.get(nil); err != nil {
			t.Fatal(err)
		}
		if err := c.trouble(); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("nobody is told: %v", err)
		}
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestHostileTLS speaks to the server in ways that it does not serve. It goes on serving.
func TestHostileTLS(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "http: {tls: {cert: tls.crt, key: tls.key}}\n")
	roots := x509.NewCertPool()
	roots.AddCert(writeCertificate(t, dir, 1))
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
