package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/manifest"
)

// certificate serves the certificate of two files, and reads them again when one has changed: certificates are renewed
// while the server runs. It is safe for concurrent use.
type certificate struct {
	// mu guards what follows.
	mu sync.Mutex
	// cert and key are the files.
	cert, key string
	loaded    *tls.Certificate
	stamp     [2]fileStamp
	// broken is why the files are not what is served; nil while they are.
	broken error
}

// newCertificate returns the certificate of the two files, or nil where none are named. It is an error if they are not
// a pair, or cannot be read.
func newCertificate(cert, key string) (*certificate, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("it needs both cert and key")
	}
	c := &certificate{cert: cert, key: key}
	_, err := c.get(nil)
	return c, err
}

// get returns the certificate. Files that have become unreadable leave the old one in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamp := [2]fileStamp{stampOf(c.cert), stampOf(c.key)}
	if c.loaded != nil && stamp == c.stamp {
		c.broken = inTime(c.loaded)
		return c.loaded, nil
	}
	loaded, err := loadPair(c.cert, c.key)
	if err != nil && c.loaded == nil {
		return nil, err
	}
	if err == nil {
		if err = inTime(loaded); err == nil || c.loaded == nil || inTime(c.loaded) != nil {
			c.loaded, c.stamp = loaded, stamp
		}
	}
	c.broken = err
	return c.loaded, nil
}

// maxPEM is the largest file of a certificate or a key, in bytes.
const maxPEM = 1 << 20

// loadPair reads a certificate and its key. The handshakes of all clients wait for it, so it waits for no pipe and
// reads no device.
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
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, maxPEM)
	}
	return os.ReadFile(path)
}

// inTime returns an error if clients refuse the certificate for its time.
func inTime(c *tls.Certificate) error {
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

// trouble looks at the files and says what is wrong with them, so that an old certificate does not expire unseen. A nil
// certificate has none.
func (c *certificate) trouble() error {
	if c == nil {
		return nil
	}
	_, _ = c.get(nil) // which keeps the error
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// state says what an operator should look at, for those who look after the process.
func (c *certificate) state() []string {
	if c.trouble() == nil {
		return nil
	}
	return []string{"the TLS certificate is not usable, or its files are not: the one read before stays in use (http.tls)"}
}

// problems are what somebody who operates the host should look at.
func (c *certificate) problems(language string) []console.Problem {
	err := c.trouble()
	if err == nil {
		return nil
	}
	return []console.Problem{{Kind: "certificate", Text: err.Error(), Remedy: manifest.Text{
		"en": "Mend the files of http.tls; until then the certificate before stays in use.",
		"ja": "http.tls のファイルを修正してください。それまでは以前の証明書が使われます。",
	}.In(language)}}
}

// take has c serve the certificate of other, which nobody else uses.
func (c *certificate) take(other *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cert, c.key, c.loaded, c.stamp, c.broken = other.cert, other.key, other.loaded, other.stamp, other.broken
}

// fileStamp tells whether a file has changed, also where its new content came with the old one's time.
type fileStamp struct {
	modified time.Time
	size     int64
	target   string // where its links lead: those of a mounted secret change at once, with files that look the same
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	target, _ := filepath.EvalSymlinks(path)
	return fileStamp{info.ModTime(), info.Size(), target}
}
