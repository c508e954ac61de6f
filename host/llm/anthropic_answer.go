package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// messagesAnswer assembles a response of the Messages API from its events.
type messagesAnswer struct {
	*exchange
	message   anthropic.Message
	arguments map[int64]*strings.Builder // of tool calls, by the index of their block
	ended     bool
}

func (a *messagesAnswer) addEvent(event anthropic.MessageStreamEventUnion) error {
	if err := a.message.Accumulate(event); err != nil {
		return err
	}
	switch event.Type {
	case "content_block_start":
		if block := event.ContentBlock; block.Type == "tool_use" {
			a.emit(a.tools.begun(block.ID, block.Name))
		} else if block.Text != "" {
			a.emit(Delta{Text: block.Text})
		}
	case "content_block_delta":
		if event.Delta.Text != "" {
			a.emit(Delta{Text: event.Delta.Text})
		}
		if event.Delta.PartialJSON != "" {
			a.appendArguments(event.Index, event.Delta.PartialJSON)
		}
	case "message_stop":
		a.ended = true
	}
	return nil
}

// appendArguments collects the arguments of a call, because the SDK drops them if they are not valid JSON.
func (a *messagesAnswer) appendArguments(index int64, text string) {
	if a.arguments == nil {
		a.arguments = map[int64]*strings.Builder{}
	}
	if a.arguments[index] == nil {
		a.arguments[index] = &strings.Builder{}
	}
	a.arguments[index].WriteString(text)
}

func (a *messagesAnswer) response() (*Response, error) {
	if !a.ended {
		return nil, brokenOff(errors.New("no message_stop"))
	}
	usage := a.message.Usage
	r := &Response{Model: string(a.message.Model), Stop: messagesStops[a.message.StopReason], Usage: Usage{
		Input: int(usage.InputTokens), Output: int(usage.OutputTokens),
		CacheRead: int(usage.CacheReadInputTokens), CacheWrite: int(usage.CacheCreationInputTokens),
	}}
	if r.Stop == "" {
		r.Stop = StopEnd
	}
	var text strings.Builder
	for i, block := range a.message.Content {
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use":
			r.Calls = append(r.Calls, a.call(int64(i), block))
		}
	}
	r.Text = text.String()
	r.State = a.state()
	return r, nil
}

// messagesStops maps stop reasons. Others mean StopEnd.
var messagesStops = map[anthropic.StopReason]Stop{
	anthropic.StopReasonToolUse: StopTools, anthropic.StopReasonMaxTokens: StopLength,
	anthropic.StopReasonModelContextWindowExceeded: StopLength, anthropic.StopReasonRefusal: StopRefusal,
}

func (a *messagesAnswer) call(index int64, block anthropic.ContentBlockUnion) Call {
	arguments := string(block.Input)
	if streamed := a.arguments[index]; streamed != nil {
		arguments = streamed.String()
	}
	return a.tools.incoming(block.ID, block.Name, arguments)
}

// state returns the verbatim response if the model was thinking: thinking blocks are signed and must be sent back in
// place.
func (a *messagesAnswer) state() *State {
	s := &State{provider: a.spec.Provider, model: a.spec.Model}
	thought := false
	for _, block := range a.message.Content {
		if block.Type == "text" && strings.TrimSpace(block.Text) == "" {
			continue // the API rejects blank text
		}
		thought = thought || block.Type != "text" && block.Type != "tool_use"
		part, err := json.Marshal(block.ToParam())
		if err != nil {
			return nil
		}
		s.parts = append(s.parts, part)
	}
	if !thought {
		return nil
	}
	return s
}

// messagesError converts an error to an *Error: an error response, or an error event within a stream, which the SDK
// parses.
func messagesError(err error) error {
	var status *statusError
	if errors.As(err, &status) {
		return messagesFailure(status.status, status.header, parseAPIError(status.body), err)
	}
	var streamed *anthropic.Error
	if errors.As(err, &streamed) {
		return messagesFailure(0, nil, parseAPIError([]byte(streamed.RawJSON())), err)
	}
	return newTransportError(err)
}

func messagesFailure(status int, header http.Header, f apiError, cause error) *Error {
	kind, ok := messagesKinds[anthropic.ErrorType(f.Type)]
	switch {
	case !ok && status == 0:
		kind = Unavailable
	case !ok:
		kind = kindOf(status)
	case kind == Invalid && tooLong(f.Message):
		kind = ContextWindow
	case kind == Invalid && strings.Contains(f.Message, "content filtering policy"):
		kind = Refused
	}
	e := newError(kind, status, header, cause)
	e.setParameter(messagesParameter.FindString(f.Message))
	return e
}

// messagesKinds maps the API's error types (platform.claude.com/docs/en/api/errors).
var messagesKinds = map[anthropic.ErrorType]Kind{
	anthropic.ErrorTypeInvalidRequestError: Invalid, anthropic.ErrorTypeNotFoundError: Invalid,
	"request_too_large":                    ContextWindow,
	anthropic.ErrorTypeAuthenticationError: Auth, anthropic.ErrorTypePermissionError: Auth,
	anthropic.ErrorTypeBillingError:   Auth,
	anthropic.ErrorTypeRateLimitError: RateLimited, anthropic.ErrorTypeOverloadedError: Overloaded,
	anthropic.ErrorTypeAPIError: Unavailable, anthropic.ErrorTypeTimeoutError: Unavailable,
}

// messagesParameter matches the parameter name at the start of an error message.
var messagesParameter = regexp.MustCompile(`^[a-z_]+(\.[A-Za-z0-9_]+)*:`)
