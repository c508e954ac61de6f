//go:build !wasip1

package pdk

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativehttp"
	"github.com/hako-run/hako/pdk/internal/updates"
)

// Outside of Wasm there is no host. These functions let handlers run under go test: HTTP requests are sent directly,
// records go to the standard logger, and progress and updates are passed to the test.

// client has its own transport: httptest.Server.Close closes the connections of http.DefaultTransport, also those of
// other tests.
var client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

func warm[In, Out any]() {}

func hostCanceled() bool { return false }

func hostLog(_ abi.LogLevel, line string) { log.Print(line) }

func hostProgress(ctx context.Context, progress, total float64, message string) {
	updates.Progress(ctx, progress, total, message)
}

func hostUpdated(ctx context.Context, uri string) { updates.Notify(ctx, uri) }

func hostSend(ctx context.Context, head *abi.HTTPRequest, body []byte) (*abi.HTTPResponse, io.ReadCloser, error) {
	if send := nativehttp.FromContext(ctx); send != nil {
		return send(ctx, head, body)
	}
	request, err := http.NewRequestWithContext(ctx, head.Method, head.URL, bytes.NewReader(body))
	if err != nil {
		return nil, nil, &abi.Error{Code: abi.CodeInvalid, Message: err.Error()}
	}
	for name, values := range head.Headers {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, &abi.Error{Code: abi.CodeNetwork, Message: err.Error()}
	}
	return &abi.HTTPResponse{Status: response.StatusCode, Headers: response.Header, URL: response.Request.URL.String()},
		response.Body, nil
}

// started is a request that a goroutine sends. It ends with the context that it was started with.
type started struct {
	stop   context.CancelFunc
	done   chan struct{}
	answer *abi.HTTPResponse
	body   io.ReadCloser
	err    error
}

func hostStart(ctx context.Context, head *abi.HTTPRequest, body []byte) (*started, error) {
	ctx, stop := context.WithCancel(ctx)
	s := &started{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if s.answer, s.body, s.err = hostSend(ctx, head, body); s.err == nil {
			s.body = stopping{s.body, stop}
		}
	}()
	return s, nil
}

// stopping is a body whose request ends when it is closed.
type stopping struct {
	io.ReadCloser
	stop context.CancelFunc
}

func (s stopping) Close() error {
	defer s.stop()
	return s.ReadCloser.Close()
}

func (s *started) wait() (*abi.HTTPResponse, io.ReadCloser, error) {
	<-s.done
	return s.answer, s.body, s.err
}

func (s *started) cancel() {
	s.stop()
	<-s.done
	if s.body != nil {
		_ = s.body.Close()
	}
}
