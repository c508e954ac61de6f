package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/hako-run/hako/internal/eventstream"
)

// api is a method of a provider's REST API that answers with an event stream.
type api struct {
	client *http.Client
	url    string
}

// maxLine bounds a line of a stream, in bytes.
const maxLine = 32 << 20

// stream sends a request and calls handle with the data of each event. done reports whether the stream ended with the
// mark that OpenAI's APIs have for that. The error is a *statusError if the provider reports one, or that of handle or of
// the transport.
func (a *api) stream(ctx context.Context, header http.Header, request any, handle func(data []byte) error) (done bool,
	err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("User-Agent", "hako")
	response, err := a.client.Do(r)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	for data, err := range eventstream.Events(response.Body, maxLine) {
		switch {
		case errors.Is(err, eventstream.ErrUnended) && (string(data) == "[DONE]" || json.Valid(data)):
			// Some servers leave out the blank line after the last event.
		case err != nil:
			return false, err
		}
		switch {
		case string(data) == "[DONE]":
			return true, nil
		case hasError(data):
			return false, &statusError{body: bytes.Clone(data)}
		}
		if err := handle(data); err != nil {
			return false, err
		}
	}
	return false, nil
}

// hasError reports whether an event is an error of the provider.
func hasError(event []byte) bool {
	if !bytes.Contains(event, []byte(`"error"`)) {
		return false
	}
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	return decodeEvent(event, &e) == nil && len(e.Error) > 0 && !isNull(e.Error)
}

// authorize returns the header with the key, if there is one.
func authorize(key string) http.Header {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return header
}

// convertError converts an error of stream to an *Error. failure does so for one that the provider reports.
func convertError(err error, failure func(status int, header http.Header, f apiError, cause error) *Error) error {
	var failed *Error
	if errors.As(err, &failed) {
		return failed
	}
	var status *statusError
	if errors.As(err, &status) {
		return failure(status.status, status.header, parseAPIError(status.body), err)
	}
	return newTransportError(err)
}
