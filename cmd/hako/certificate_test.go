package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/policy"
)

// writeCertificate writes a new certificate for 127.0.0.1 into dir and returns it.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	put(t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	stamp := time.Unix(1_000_000_000+serial, 0)
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Chtimes(filepath.Join(dir, name), stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// TestCertificate: a renewed certificate is taken, a broken file leaves the old one in use.
func TestCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &certificate{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	if _, err := newCertificate(c.cert, c.key); err == nil {
		t.Error("no error without files")
	}
	serves := func(want int64) {
		t.Helper()
		got, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Leaf.SerialNumber.Int64() != want {
			t.Errorf("got certificate %d, want %d", got.Leaf.SerialNumber, want)
		}
	}
	writeCertificate(t, dir, 1)
	serves(1)
	writeCertificate(t, dir, 2)
	serves(2)
	s := &service{cert: c, government: &government{policy: must(policy.OpenLive(""))}, reloader: new(reloader)}
	s.reloader.outcome.Store(new(reloadOutcome))
	if err := c.trouble(); err != nil || len(s.state()) > 0 {
		t.Errorf("two files that are good: %v, %q", err, s.state())
	}
	put(t, c.cert, []byte("half a fi"))
	if got := c.problems("ja"); len(s.state()) != 1 || len(got) != 1 || !strings.Contains(got[0].Remedy, "以前の証明書") {
		t.Errorf("a broken file: %q, %+v", s.state(), got)
	}
	serves(2)
	writeCertificate(t, dir, 3)
	if err := c.trouble(); err != nil {
		t.Errorf("a file that is good again: %v", err)
	}
	serves(3)
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := workplace(t, "http: {tls: {cert: tls.crt, key: tls.key}}\n")
	roots := x509.NewCertPool()
	roots.AddCert(writeCertificate(t, dir, 1))
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
