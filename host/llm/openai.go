package llm

import (
	"errors"
	"net/http"
	"slices"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// openAIAddress is the base URL of OpenAI's API.
const openAIAddress = "https://api.openai.com/v1/"

// openAIOptions returns the options of a service. The SDK's client would read the environment; its services do not.
func openAIOptions(spec *Spec, client *http.Client) []option.RequestOption {
	address := spec.BaseURL
	if address == "" {
		address = openAIAddress
	}
	return []option.RequestOption{option.WithBaseURL(address), option.WithHTTPClient(client), option.WithMaxRetries(0)}
}

// authorize returns the options that add the key, if there is one.
func authorize(key string) []option.RequestOption {
	if key == "" {
		return nil
	}
	return []option.RequestOption{option.WithAPIKey(key)}
}

// openAIError converts an error of either OpenAI API to an *Error.
func openAIError(err error) error {
	var status *statusError
	if errors.As(err, &status) {
		return openAIFailure(status.status, status.header, parseAPIError(status.body), err)
	}
	var streamed *ssestream.StreamError
	if errors.As(err, &streamed) {
		return openAIFailure(0, nil, parseAPIError(streamed.Event.Data), err)
	}
	return newTransportError(err)
}

func openAIFailure(status int, header http.Header, f apiError, cause error) *Error {
	kind := kindOf(status)
	if status == 0 {
		kind = Unavailable // an error within the stream
	}
	for _, known := range openAIKinds {
		if slices.Contains(known.codes, f.Code) || slices.Contains(known.codes, f.Type) {
			kind = known.kind
			break
		}
	}
	if (kind == Invalid || kind == Unavailable) && tooLong(f.Message) {
		kind = ContextWindow
	}
	e := newError(kind, status, header, cause)
	e.setParameter(f.Param)
	return e
}

// openAIKinds maps error codes and types to kinds, the more specific ones first.
var openAIKinds = []struct {
	kind  Kind
	codes []string
}{
	{ContextWindow, []string{"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}},
	{Auth, []string{"insufficient_quota", "billing_hard_limit_reached", "invalid_api_key", "authentication_error"}},
	{RateLimited, []string{"rate_limit_exceeded", "rate_limit_error", "tokens", "requests"}},
	{Refused, []string{"content_filter", "content_policy_violation", "invalid_prompt", "bio_policy",
		"misalignment_policy_violation"}},
	{Overloaded, []string{"server_is_overloaded", "slow_down", "overloaded_error"}},
	{Unavailable, []string{"server_error"}},
}
