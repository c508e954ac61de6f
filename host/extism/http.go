package extism

import (
	"context"
	"io"
	"strings"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/pdk/abi"
)

// httpRequest is the first argument of http_request; the second is the body.
type httpRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
}

// httpFunctions send requests through the HTTP broker. The ABI cannot report an error to a guest, so a failed request
// ends the call with the broker's error.
func (a *Adapter) httpFunctions() []broker.Function {
	return []broker.Function{
		a.function("http_request", two, &i64, func(ctx context.Context, s *session, p []uint64) uint64 {
			var request httpRequest
			s.decode("http_request", p[0], &request)
			body, err := s.send(ctx, &request, s.kernel.bytes("http_request", p[1]))
			if err != nil {
				panic(err)
			}
			return s.write(body)
		}),
		a.function("http_status_code", none, &i32, func(_ context.Context, s *session, _ []uint64) uint64 {
			return uint64(s.status)
		}),
		a.function("http_headers", none, &i64, func(_ context.Context, s *session, _ []uint64) uint64 {
			if s.headers == nil {
				return 0
			}
			return s.writeJSON(s.headers)
		}),
	}
}

// send sends a request and returns the body of the response.
func (s *session) send(ctx context.Context, request *httpRequest, body []byte) ([]byte, error) {
	s.status, s.headers = 0, nil
	if s.adapter.http == nil {
		return nil, &abi.Error{Code: abi.CodeNotGranted,
			Message: "plugin " + s.call.Plugin + " has no grant for HTTP requests: " +
				"ask for them in the manifest's permissions.http and have the plugin approved"}
	}
	head := &abi.HTTPRequest{Method: request.Method, URL: request.URL, Headers: map[string][]string{}}
	for name, value := range request.Headers {
		head.Headers[name] = []string{value}
	}
	response, err := s.adapter.http.Do(ctx, s.call, head, append([]byte(nil), body...))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	// One byte beyond the limit suffices to exceed it.
	answer, err := io.ReadAll(io.LimitReader(response.Body, s.kernel.limit-s.kernel.used+1))
	if err != nil {
		return nil, err
	}
	s.status, s.headers = response.Status, map[string]string{}
	for name, values := range response.Header {
		s.headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return answer, nil
}
