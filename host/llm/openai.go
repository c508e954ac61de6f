package llm

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// openAIAddress is the base URL of OpenAI's API.
const openAIAddress = "https://api.openai.com/v1"

// newOpenAI returns a method of OpenAI's API, or of a compatible one.
func newOpenAI(spec *Spec, client *http.Client, path string) api {
	return api{client, strings.TrimSuffix(cmp.Or(spec.BaseURL, openAIAddress), "/") + path}
}

// authorize returns the header with the key, if there is one.
func authorize(key string) http.Header {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return header
}

// openAIError converts an error of either OpenAI API to an *Error.
func openAIError(err error) error {
	var failed *Error
	if errors.As(err, &failed) {
		return failed
	}
	var status *statusError
	if errors.As(err, &status) {
		return openAIFailure(status.status, status.header, parseAPIError(status.body), err)
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
	if strings.Contains(f.Message, deferLoading) || strings.Contains(f.Message, toolSearch) {
		f.Param = deferLoading
	}
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
