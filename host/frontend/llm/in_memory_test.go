package llm

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
)

// inMemory serves requests with a handler and without a network, so that tests can run under synctest.
type inMemory struct{ handler http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	w := &pipedWriter{header: http.Header{}, body: writer, begun: make(chan int, 1)}
	stop := context.AfterFunc(r.Context(), func() { _ = reader.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() {
			if recover() != nil {
				w.once.Do(func() { close(w.begun) })
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			w.WriteHeader(http.StatusOK)
			_ = writer.Close()
		}()
		m.handler.ServeHTTP(w, r)
	}()
	select {
	case status, ok := <-w.begun:
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: status, Header: w.sent, Body: reader, Request: r, ProtoMajor: 1,
			ProtoMinor: 1}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type pipedWriter struct {
	header, sent http.Header
	body         *io.PipeWriter
	begun        chan int
	once         sync.Once
}

func (w *pipedWriter) Header() http.Header { return w.header }

func (w *pipedWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.sent = w.header.Clone()
		w.begun <- status
	})
}

func (w *pipedWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *pipedWriter) Flush() {}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}
