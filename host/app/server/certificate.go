package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/manifest"
)

// certificate serves the certificate in two files, and reads them again when one has changed: certificates are renewed
// while the server runs. It is safe for concurrent use.
type certificate struct {
	mu sync.Mutex // guards all fields
	// certFile and keyFile are the files.
	certFile, keyFile string
	loaded            *tls.Certificate
	stamp             [2]fileStamp
	// broken is the reason why the current files are not served; nil if they are.
	broken error
}

// newCertificate returns the certificate in two files, or nil if none are named. It fails if they are not a pair or
// cannot be read.
func newCertificate(certFile, keyFile string) (*certificate, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, errors.New("it needs both cert and key")
	}
	c := &certificate{certFile: certFile, keyFile: keyFile}
	_, err := c.get(nil)
	return c, err
}

// get implements tls.Config.GetCertificate. If the files have become unusable, it returns the certificate read before.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := [2]fileStamp{stampOf(c.certFile), stampOf(c.keyFile)}
	if c.loaded != nil && stamp == c.stamp {
		c.broken = checkValidity(c.loaded)
		return c.loaded, nil
	}
	loaded, err := loadPair(c.certFile, c.keyFile)
	if err != nil && c.loaded == nil {
		return nil, err
	}
	if err == nil {
		if err = checkValidity(loaded); err == nil || c.loaded == nil || checkValidity(c.loaded) != nil {
			c.loaded, c.stamp = loaded, stamp
		}
	}
	c.broken = err
	return c.loaded, nil
}

// maxPEM is the largest certificate or key file, in bytes.
const maxPEM = 1 << 20

// loadPair reads a certificate and its key. The handshakes of all clients wait for it, so it refuses pipes and devices.
func loadPair(cert, key string) (*tls.Certificate, error) {
	certPEM, err := readPEM(cert)
	if err != nil {
		return nil, err
	}
	keyPEM, err := readPEM(key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return &pair, err
}

func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxPEM)
	}
	return os.ReadFile(path)
}

// checkValidity returns an error if clients refuse the certificate because it has expired or is not valid yet.
func checkValidity(c *tls.Certificate) error {
	switch now := time.Now(); {
	case c.Leaf == nil:
		return nil
	case now.After(c.Leaf.NotAfter):
		return fmt.Errorf("the certificate has expired on %s", c.Leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(c.Leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", c.Leaf.NotBefore.UTC().Format(time.DateTime))
	}
	return nil
}

// err reads the files again if they have changed, and returns their error.
func (c *certificate) err() error {
	_, _ = c.get(nil) // which sets broken
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// replace serves another certificate, which nobody else uses, from now on.
func (c *certificate) replace(other *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.certFile, c.keyFile, c.loaded = other.certFile, other.keyFile, other.loaded
	c.stamp, c.broken = other.stamp, other.broken
}

// tlsCertificate is the part with the certificate of the server's addresses.
type tlsCertificate struct {
	server       *Server
	*certificate // nil: HTTP is served without TLS
}

func (t *tlsCertificate) start(context.Context) (err error) {
	t.certificate, err = newCertificate(t.server.Config.HTTP.TLSCert, t.server.Config.HTTP.TLSKey)
	if err != nil {
		return fmt.Errorf("configuration: http.tls: %w", err)
	}
	return nil
}

// config returns the TLS configuration of an address; nil: it is served without TLS.
func (t *tlsCertificate) config() *tls.Config {
	if t.certificate == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: t.get}
}

func (t *tlsCertificate) keys() []string {
	if t.certificate == nil {
		return nil // an address cannot change its protocol
	}
	return []string{"http.tls"}
}

func (t *tlsCertificate) prepare(_ context.Context, next *config.Config) (*change, error) {
	other, err := newCertificate(next.HTTP.TLSCert, next.HTTP.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("configuration: http.tls: %w", err)
	}
	return silently(func() { t.replace(other) }), nil
}

func (t *tlsCertificate) status() []string {
	if t.certificate == nil || t.err() == nil {
		return nil
	}
	return []string{
		"the TLS certificate or its files are invalid: the previous one stays in use (http.tls)",
	}
}

func (t *tlsCertificate) problems(language string) []console.Problem {
	if t.certificate == nil {
		return nil
	}
	err := t.err()
	if err == nil {
		return nil
	}
	return []console.Problem{{Kind: "certificate", Text: err.Error(), Remedy: manifest.Text{
		"en": "Correct the files of http.tls; until then the previous certificate stays in use.",
		"ja": "http.tls のファイルを修正してください。それまでは以前の証明書が使われます。",
	}.In(language)}}
}
