package script

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
)

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// Request is one that a stand-in was sent.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Requests keeps what a stand-in was sent. The zero value is ready, and safe for concurrent use.
type Requests struct {
	mu  sync.Mutex
	all []Request // guarded by mu
}

// Read reads the body of r and keeps r. The error is that of a body that is too long or broken.
func (q *Requests) Read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, Request{r.URL.Path, r.Header.Clone(), bytes.Clone(body)})
	return body, nil
}

// All returns what was sent, in order.
func (q *Requests) All() []Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.all)
}
