package main

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"
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
		return c.loaded, nil
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil && c.loaded == nil {
		return nil, err
	}
	if err == nil {
		c.loaded, c.stamp = &loaded, stamp
	}
	return c.loaded, nil
}

// take has c serve the certificate of other, which nobody else uses.
func (c *certificate) take(other *certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cert, c.key, c.loaded, c.stamp = other.cert, other.key, other.loaded, other.stamp
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
