package llm

import (
	"cmp"
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

func openAIFailure(status int, header http.Header, f apiError, cause error) *Error {
	kind := kindOf(status)
	if status == 0 {
		kind = Unavailable // an error within the stream
	}
	for _, known := range openAIKinds {
		if slices.Contains(known.codes, string(f.Code)) || slices.Contains(known.codes, string(f.Type)) {
			kind = known.kind
			break
		}
	}
	if (kind == Invalid || kind == Unavailable) && tooLong(string(f.Message)) {
		kind = ContextWindow
	}
	e := newError(kind, status, header, cause)
	if f.Message.contains(deferLoading) || f.Message.contains(toolSearch) {
		f.Param = deferLoading
	}
	e.explain(string(f.Message), string(f.Param))
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
