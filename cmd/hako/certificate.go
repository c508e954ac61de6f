package main

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/hako-run/hako/host/console"
	"github.com/hako-run/hako/host/manifest"
)

// certificate serves the certificate of two files, and reads them again when one has changed: certificates are renewed while the
// server runs. It is safe for concurrent use.
type certificate struct {
	// mu guards what follows.
	mu sync.Mutex
	// cert and key are the files.
	cert, key string
	loaded    *tls.Certificate
	stamp     [2]time.Time
	// broken is why the files are not what is served; nil while they are.
	broken error
}

// newCertificate returns the certificate of the two files, or nil where none are named. It is an error if they are not a pair, or
// cannot be read.
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
	stamp := [2]time.Time{modified(c.cert), modified(c.key)}
	if c.loaded != nil && stamp == c.stamp {
		c.broken = nil
		return c.loaded, nil
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil && c.loaded == nil {
		return nil, err
	}
	if c.broken = err; err == nil {
		c.loaded, c.stamp = &loaded, stamp
	}
	return c.loaded, nil
}

// trouble looks at the files and says what is wrong with them, so that an old certificate does not expire unseen. A nil certificate has none.
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
	return []string{"the files of the TLS certificate are not usable: the certificate read before stays in use (http.tls)"}
}

// problems are what somebody who operates the host should look at.
func (c *certificate) problems(language string) []console.Problem {
	err := c.trouble()
	if err == nil {
		return nil
	}
	return []console.Problem{{Kind: "certificate", Text: err.Error(), Remedy: manifest.Text{
		"en": "Mend the files of http.tls; until then the certificate before stays in use.", "ja": "http.tls のファイルを修正してください。それまでは以前の証明書が使われます。",
	}.In(language)}}
}

// take has c serve the certificate of other, which nobody else uses.
func (c *certificate) take(other *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cert, c.key, c.loaded, c.stamp, c.broken = other.cert, other.key, other.loaded, other.stamp, other.broken
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
