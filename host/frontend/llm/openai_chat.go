package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chatAPI is a client of the Chat Completions API (developers.openai.com/api/reference/resources/chat), which
// OpenAI-compatible servers implement.
type chatAPI struct{ completions api }

func newChat(spec *Spec, client *http.Client) *chatAPI {
	return &chatAPI{newOpenAI(spec, client, "/chat/completions")}
}

func (*chatAPI) dialect() dialect { return dialect{name: 64} }

func (a *chatAPI) send(ctx context.Context, x *exchange) (*Response, error) {
	answer := chatAnswer{exchange: x}
	if err := a.completions.stream(ctx, authorize(x.key), newChatRequest(x), answer.addChunk); err != nil {
		return nil, convertError(err, openAIFailure)
	}
	return answer.response()
}

// chatRequest is a request for a chat completion.
type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	MaxTokens int64         `json:"max_tokens,omitempty"` // all servers know this old name
	// MaxCompletionTokens is the new name, for servers that reject the old one.
	MaxCompletionTokens int64              `json:"max_completion_tokens,omitempty"`
	Temperature         *float64           `json:"temperature,omitempty"`
	Tools               []chatTool         `json:"tools,omitempty"`
	ToolChoice          string             `json:"tool_choice,omitempty"`
	Stream              bool               `json:"stream"`
	StreamOptions       *chatStreamOptions `json:"stream_options,omitempty"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string           `json:"type"`
	Function chatToolFunction `json:"function"`
}

type chatToolFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters"`
}

// chatMessage is a message of any role. Its content is a string or []chatPart.
type chatMessage struct {
	Role       string            `json:"role"`
	Content    any               `json:"content,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	ToolCalls  []chatMessageCall `json:"tool_calls,omitempty"`
}

// chatPart is an image or text.
type chatPart struct {
	Type     string        `json:"type"`
	Text     string        `json:"text,omitempty"`
	ImageURL *chatImageURL `json:"image_url,omitempty"`
}

type chatImageURL struct {
	URL string `json:"url"`
}

type chatMessageCall struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatCallFunction `json:"function"`
}

type chatCallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func newChatRequest(x *exchange) *chatRequest {
	r := &chatRequest{Model: x.spec.Model, Messages: chatMessages(x), Stream: true}
	if x.without["max_tokens"] {
		r.MaxCompletionTokens = x.maxTokens()
	} else {
		r.MaxTokens = x.maxTokens()
	}
	if !x.without["stream_options"] {
		r.StreamOptions = &chatStreamOptions{IncludeUsage: true}
	}
	if !x.without["temperature"] {
		r.Temperature = x.Temperature
	}
	for i := range x.tools.tools {
		tool := &x.tools.tools[i]
		r.Tools = append(r.Tools,
			chatTool{"function", chatToolFunction{tool.name, tool.Description, tool.parameters.schema}})
	}
	if x.NoTools && len(r.Tools) > 0 {
		r.ToolChoice = "none"
	}
	return r
}

func chatMessages(x *exchange) []chatMessage {
	var messages []chatMessage
	if x.System != "" {
		messages = append(messages, chatMessage{Role: "system", Content: x.System})
	}
	for i := range x.messages {
		m := &x.messages[i]
		for j := range m.Results {
			r := &m.Results[j]
			messages = append(messages,
				chatMessage{Role: "tool", Content: withoutImages(r.failed(), len(r.Images)), ToolCallID: r.CallID})
		}
		switch {
		case m.Role == RoleAssistant:
			messages = append(messages, chatAssistant(x, m))
		case m.Text != "" || len(m.Images) > 0:
			messages = append(messages, chatUser(m.split(x.spec.Images)))
		}
	}
	return messages
}

func chatUser(text string, images []Image) chatMessage {
	if len(images) == 0 {
		return chatMessage{Role: "user", Content: text}
	}
	var parts []chatPart
	for _, image := range images {
		parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImageURL{image.url()}})
	}
	if text != "" {
		parts = append(parts, chatPart{Type: "text", Text: text})
	}
	return chatMessage{Role: "user", Content: parts}
}

func chatAssistant(x *exchange, m *Message) chatMessage {
	message := chatMessage{Role: "assistant"}
	if m.Text != "" {
		message.Content = m.Text
	}
	for i := range m.Calls {
		name, arguments := x.tools.outgoing(&m.Calls[i])
		message.ToolCalls = append(message.ToolCalls,
			chatMessageCall{m.Calls[i].ID, "function", chatCallFunction{name, string(arguments)}})
	}
	return message
}

// chatChunk is an event of a response.
type chatChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content   string         `json:"content"`
			Refusal   string         `json:"refusal"`
			ToolCalls []chatCallPart `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
}

type chatCallPart struct {
	Index    int64            `json:"index"`
	ID       string           `json:"id"`
	Function chatCallFunction `json:"function"`
}

type chatUsage struct {
	PromptTokens     int64        `json:"prompt_tokens"`
	CompletionTokens int64        `json:"completion_tokens"`
	Details          usageDetails `json:"prompt_tokens_details"`
}

// usageDetails counts the tokens of the input that the provider's cache has.
type usageDetails struct {
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
}

// chatAnswer assembles a response from its chunks.
type chatAnswer struct {
	*exchange
	text    strings.Builder
	think   thinkFilter
	calls   []*chatCall
	model   string
	finish  string
	refused bool
	usage   chatUsage
}

// chatCall is a partially received tool call.
type chatCall struct {
	index           int64
	id, given       string // given is the model's
	begun           bool
	name, arguments strings.Builder
}

// maxCalls bounds the tool calls of a response.
const maxCalls = 256

var errManyCalls = fmt.Errorf("its answer has more than %d tool calls", maxCalls)

func (a *chatAnswer) addChunk(data []byte) error {
	var chunk chatChunk
	if err := decodeEvent(data, &chunk); err != nil {
		return err
	}
	if chunk.Model != "" {
		a.model = chunk.Model
	}
	if chunk.Usage != nil {
		a.usage = *chunk.Usage
	}
	for _, choice := range chunk.Choices {
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		a.refused = a.refused || choice.Delta.Refusal != ""
		a.addText(a.think.filter(choice.Delta.Content + choice.Delta.Refusal))
		for _, part := range choice.Delta.ToolCalls {
			if err := a.addCallPart(part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *chatAnswer) addText(text string) {
	if text != "" {
		a.text.WriteString(text)
		a.emit(Delta{Text: text})
	}
}

func (a *chatAnswer) addCallPart(part chatCallPart) error {
	call := a.callFor(part)
	if len(a.calls) > maxCalls {
		return errManyCalls
	}
	call.name.WriteString(part.Function.Name)
	call.arguments.WriteString(part.Function.Arguments)
	if !call.begun && call.name.Len() > 0 {
		call.begun = true
		a.emit(a.tools.begun(call.id, call.name.String()))
	}
	return nil
}

// callFor returns the call that a part belongs to, or begins one. Some servers send index 0 for all calls, the same ID
// for all, no IDs, or the ID only after the name.
func (a *chatAnswer) callFor(part chatCallPart) *chatCall {
	for _, call := range slices.Backward(a.calls) {
		switch {
		case call.index != part.Index:
			continue
		case call.continues(part):
			call.given = cmp.Or(call.given, part.ID)
			return call
		}
		if part.ID == "" {
			break // an earlier call has ended
		}
	}
	call := &chatCall{index: part.Index, id: newCallID(), given: part.ID}
	a.calls = append(a.calls, call)
	return call
}

// continues reports whether the part, which has the index of the call, belongs to it. Another ID begins another call,
// and so does a name after complete arguments.
func (c *chatCall) continues(part chatCallPart) bool {
	named := part.Function.Name != ""
	switch {
	case named && json.Valid([]byte(c.arguments.String())):
		return false
	case c.given == "":
		return part.ID == "" || !named || c.name.Len() == 0
	}
	return part.ID == "" || part.ID == c.given
}

func (a *chatAnswer) response() (*Response, error) {
	if a.finish == "" {
		return nil, brokenOff(errors.New("no finish_reason"))
	}
	a.addText(a.think.end())
	details := a.usage.Details
	r := &Response{Text: a.text.String(), Model: a.model, Stop: StopEnd,
		Usage: newUsage(a.usage.PromptTokens, a.usage.CompletionTokens, details.CachedTokens, details.CacheWriteTokens)}
	for _, call := range a.calls {
		r.Calls = append(r.Calls, a.incoming(call.id, call.given, call.name.String(), call.arguments.String()))
	}
	switch {
	case a.finish == "length":
		r.Stop = StopLength
	case a.finish == "content_filter":
		r.Stop = StopFiltered
	case a.refused:
		r.Stop = StopRefusal
	case len(r.Calls) > 0:
		r.Stop = StopTools // servers disagree about the finish reason
	}
	return r, nil
}
