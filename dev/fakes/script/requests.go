package script

import (
	"bytes"
	"io"
	"net/http"

	"github.com/hako-run/hako/dev/fakes/fakehttp"
)

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// Request is one that a fake was sent.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Requests keeps what a fake was sent.
type Requests struct{ fakehttp.Log[Request] }

// Read reads the body of r and keeps r. The error is that of a body that is too long or broken.
func (q *Requests) Read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	q.Add(Request{r.URL.Path, r.Header.Clone(), bytes.Clone(body)})
	return body, nil
}
