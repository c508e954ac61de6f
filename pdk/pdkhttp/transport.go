// Package pdkhttp provides an http.RoundTripper, Transport, that sends requests through the host. It makes a plugin
// some megabytes larger than pdk.Fetch, because it links net/http.
package pdkhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
)

// Transport is an http.RoundTripper that sends requests through the host. The zero value is ready and safe for
// concurrent use.
type Transport struct{}

var _ http.RoundTripper = Transport{}

// Client returns an http.Client with a Transport. The host follows redirects, under the plugin's grants.
func Client() *http.Client { return &http.Client{Transport: Transport{}} }

// RoundTrip sends a request after reading its whole body. An error of the host is an *abi.Error.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		body, err = io.ReadAll(request.Body)
		if err = errors.Join(err, request.Body.Close()); err != nil {
			return nil, fmt.Errorf("read the request body: %w", err)
		}
	}
	head := &abi.HTTPRequest{Method: request.Method, URL: request.URL.String(), Headers: request.Header}
	if head.Method == "" {
		head.Method = http.MethodGet
	}
	answer, stream, err := pdk.Send(request.Context(), head, body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status)),
		StatusCode:    answer.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header(answer.Headers),
		Body:          stream,
		ContentLength: -1,
		Request:       request,
	}, nil
}
