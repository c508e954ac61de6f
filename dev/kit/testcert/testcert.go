// Package testcert makes TLS certificates for 127.0.0.1, for tests. Pair returns a certificate with its key, and Write
// writes both to files.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Pair returns a self-signed certificate and its key, in PEM. It is valid between two moments relative to now.
func Pair(t testing.TB, serial int64, from, until time.Duration) (cert, key []byte) {
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

// Write writes tls.crt and tls.key into dir, which it makes, and returns a pool with the certificate. The certificate
// is valid for an hour. The files of each serial number have another modification time.
func Write(t testing.TB, dir string, serial int64) *x509.CertPool {
	t.Helper()
	cert, key := Pair(t, serial, -time.Hour, time.Hour)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stamp := time.Unix(1_000_000_000+serial, 0)
	for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
